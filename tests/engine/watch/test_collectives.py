"""A sum over processes: nothing of it is left to a thread of torch when the process ends."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from inspector.engine.watch.processes import collectives


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Tensor]]:
    """What torch's own side has still, as the work of a collective has its inputs: here a graph that saved them."""
    held: list[Tensor] = []

    def all_reduce(numbers: Tensor) -> None:
        held.append(numbers * torch.ones(2, requires_grad=True))
        numbers *= 2

    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    monkeypatch.setattr(collectives, "_held", [])
    yield held
    atexit.unregister(collectives.let_go)


def test_the_end_waits_until_torch_has_let_a_summed_tensor_go(
    work: list[Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait for one that is let go, and not for ever."""
    assert collectives.summed(torch.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    ended = threading.Event()
    end = threading.Thread(target=lambda: (collectives.let_go(), ended.set()))
    monkeypatch.setattr(collectives, "SECONDS", 100.0)
    end.start()
    assert not ended.wait(0.2)
    work.clear()
    assert ended.wait(30)
    end.join()
    collectives.summed(torch.tensor([1.0, 2.0]))
    monkeypatch.setattr(collectives, "SECONDS", 0.05)
    collectives.let_go()


def test_what_is_let_go_is_not_kept_and_the_end_is_registered_once(
    work: list[Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is kept until it is."""
    registered: list[object] = []
    monkeypatch.setattr(atexit, "register", registered.append)
    collectives.summed(torch.tensor([1.0, 2.0]))
    collectives.summed(torch.tensor([3.0, 2.0]))
    assert len(collectives._held) == 2
    work.clear()
    collectives.summed(torch.tensor([5.0, 2.0]))
    assert [one.tolist() for one in collectives._held] == [[10.0, 4.0]]
    assert registered == [collectives.let_go]
