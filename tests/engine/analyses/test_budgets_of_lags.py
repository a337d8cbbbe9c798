"""How many starts and directions of products over steps the budgets allow."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.engine.analyses.lag_budgets import FEWEST, LARGEST, PROBES, PathBudget
from inspector.engine.analyses.past_ablation import without_past
from inspector.engine.errors import Unsupported
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace


@pytest.mark.parametrize("steps", [2, 3, FEWEST, FEWEST + 1])
def test_few_steps_have_every_start_however_large_the_state(steps: int) -> None:
    for size in (2, LARGEST, 8 * LARGEST):
        assert PathBudget.of(steps, size).starts == tuple(range(steps - 1))


def test_many_steps_of_a_large_state_have_the_fewest_starts_from_end_to_end() -> None:
    starts = PathBudget.of(10_000, LARGEST).starts
    assert len(starts) == FEWEST and starts[0] == 0 and starts[-1] == 10_000 - 2


def test_a_sequence_too_long_for_one_comparison_is_refused_with_that_reason() -> None:
    trace = Trace(Subject(nn.Identity()), Batch(torch.zeros(1, 6, 1), torch.tensor([6])))
    trace.loss, trace.loss_carried = torch.ones(1, 6), torch.ones(1, 6, dtype=torch.bool)
    with pytest.raises(Unsupported, match="the sequence is too long"):
        without_past(trace, 10, Emitter([]))  # type: ignore[arg-type]


def test_all_directions_are_taken_where_the_budget_has_room_for_the_fewest_starts() -> None:
    """8 starts of 8 lags of s directions at 2 s² multiplications: 4e9 have room for s up to 314."""
    assert PathBudget.of(9, 314).directions == 314
    assert PathBudget.of(9, 315).directions == PROBES
