"""One pass over the rows of an attention computes what the run has chosen, and nothing twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from listed import Listed
from torch import nn

from inspector.engine.attention import one_pass
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Page

STEPS = 40


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    assert "attention/entropy" in QUANTITIES  # the registry imports its files when it is asked
    calls = dict.fromkeys(one_pass.STATISTICS, 0)

    def counting(signal: str, function: Any) -> Any:
        def counts(block: Any) -> Any:
            calls[signal] += 1
            return function(block)

        return counts

    table = {signal: (counting(signal, function), own) for signal, (function, own) in one_pass.STATISTICS.items()}
    monkeypatch.setattr(one_pass, "STATISTICS", table)
    return calls


def run(computed: list[str], chosen: list[str]) -> dict[str, np.ndarray]:
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, 2, STEPS, 4, dtype=torch.float64, generator=generator) for _ in range(2))
    subject, batch = Subject(nn.Identity()), Batch(torch.zeros(1, STEPS, 1), torch.tensor([STEPS]))
    trace = Trace(subject, batch, chosen=frozenset(chosen))
    trace.attentions.append(Attention("layer", "Self", query, key, 0.5, causal=True, kept=0))
    sink = Listed()
    for one in computed:
        QUANTITIES[one].run(trace, Emitter(sink))
    found: dict[str, np.ndarray] = {}
    for record in sink:
        if isinstance(record, Page) and record.channel.removeprefix("layer:") in one_pass.STATISTICS:
            whole = found.setdefault(record.channel, np.full((2, STEPS), np.nan))
            whole[:, record.offset[1] : record.offset[1] + record.array.shape[1]] = record.array
    return found


def test_maps_alone_compute_no_statistic(counted: dict[str, int]) -> None:
    run(["attention/maps"], ["attention/maps"])
    assert set(counted.values()) == {0}


def test_one_pass_serves_all_that_was_chosen(counted: dict[str, int]) -> None:
    chosen = ["attention/maps", "attention/entropy", "attention/sink_mass"]
    run(chosen, chosen)
    blocks = counted["attention/entropy"]
    assert blocks and counted["attention/sink_mass"] == blocks
    assert not any(times for signal, times in counted.items() if signal not in chosen)


def test_without_a_choice_one_pass_serves_all(counted: dict[str, int]) -> None:
    run(["attention/maps", *counted], [])
    assert len(set(counted.values())) == 1 and counted["attention/entropy"]


def test_what_was_not_chosen_is_computed_when_it_is_asked_for(counted: dict[str, int]) -> None:
    every = list(counted)
    later = run(["attention/maps", *every], ["attention/maps"])
    whole = run(every, every)
    assert len(whole) == len(every) == len(later)
    for name, values in whole.items():
        np.testing.assert_array_equal(later[name], values)
