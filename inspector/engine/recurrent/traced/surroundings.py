"""What acts on a recurrence from outside its steps, or is cut off from them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from inspector.engine.recurrent.traced.cells.graph import GraphRecurrence
from inspector.engine.recurrent.traced.cells.replayed import ReplayRecurrence, ReplayStep
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.loops.cuts import cut_steps
from inspector.engine.recurrent.traced.program.made_ahead import BESIDE, made_ahead
from inspector.engine.recurrent.traced.program.paths_beside import acting_before, acting_beside
from inspector.engine.recurrent.traced.program.step_groups import Parameters


def note_surroundings(
    recurrence: ReplayRecurrence | GraphRecurrence,
    flow: Flow,
    state: Sequence[Slot],
    own: Parameters,
    trained: Parameters,
    *,
    gradients: bool,
) -> None:
    """Note which parameters act beside, before and ahead of the steps, and where the gradient is cut.

    `own`: the names of the model's parameters; `trained`: with those that weights of the steps are computed from.
    """
    recurrence.beside = acting_beside(flow, state, own)
    recurrence.upstream = acting_before(flow, trained) if gradients else None
    recurrence.ahead = made_ahead(flow, state, trained, BESIDE)
    recurrence.cuts = dict.fromkeys(cut_steps(flow, state), torch.zeros(recurrence.cell.state_size))
    recurrence.partly_cut = isinstance(recurrence.cell, ReplayStep) and recurrence.cell.cut_apart(recurrence.cuts)
