"""How many processes a sweep takes at a time."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.engine.model.subject import adopt
from inspector.engine.pipeline.batches import make_batch
from inspector.engine.session.sweep import room


def test_as_many_as_cores_memory_and_frames_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.sys, "platform", "linux")
    monkeypatch.setattr(room.os, "sched_getaffinity", lambda _pid: range(8), raising=False)
    monkeypatch.setattr(room, "main_memory", lambda: 3_500_000_000)
    said = "3 at a time, on 8 cores, about 1.0 GB each, with 3.5 GB free; --workers N says otherwise."
    assert room.processes(0, 100, 1e9, "cpu", 1) == (3, said)
    assert room.processes(0, 2, 1e9, "cpu", 1)[0] == 2, "no more than there are frames"
    assert room.processes(0, 100, 1e8, "cpu", 1)[0] == 8
    assert room.processes(0, 100, 1e8, "cpu", 3)[0] == 2
    assert room.processes(0, 100, 1e11, "cpu", 1)[0] == 1
    assert room.processes(0, 100, 1e8, "cuda:0", 1)[0] == 1, "a device is shared by none"
    assert room.processes(5, 100, 1e9, "cpu", 1) == (5, "5 at a time, about 1.0 GB each, with 3.5 GB free.")
    monkeypatch.setattr(room, "main_memory", lambda: None)
    assert room.processes(0, 100, 1e9, "cpu", 1)[0] == 8


def test_a_larger_model_takes_more() -> None:
    sizes = []
    for hidden in (8, 512):
        subject = adopt(nn.GRU(3, hidden, batch_first=True))
        sizes.append(room.bytes_of_frame(subject, make_batch(subject, torch.zeros(5, 3), 0, 0)))
    weights = sum(value.nbytes for value in nn.GRU(3, 512).parameters())
    assert sizes[1] - sizes[0] > 2 * weights and sizes[0] > room.PROCESS_BYTES
