"""One recorded step as a map of its state alone: run again from other states, everything else as it was recorded."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import jacrev, vmap

from inspector.engine.devices.present import has_float64
from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.cells.replayed import ReplayRecurrence, ReplayStep
from inspector.engine.recurrent.traced.program.instructions import Program
from inspector.engine.recurrent.traced.program.state_layout import Steps
from inspector.engine.recurrent.traced.record.operator_traits import traits_of

CHUNK = 64
"""States whose Jacobians are computed together."""


class AutonomousStep:
    """F(s) of one sample, (n, s) from (n, s), with its Jacobian; inputs of the step and the other samples stay fixed.

    `outside` are the program's tensors from outside, `whole` (b, s) the states of the batch before the step. In float64
    where no operation of the step specifies another type.
    """

    def __init__(
        self, cell: ReplayStep, program: Program, outside: Sequence[Tensor], whole: Tensor, column: int
    ) -> None:
        self.cell, self.program, self.column = cell, program, column
        wide = all(has_float64(one.device) for one in outside)
        self.dtype = torch.float64 if wide and not names_a_type(program) else whole.dtype
        self.whole = whole.to(self.dtype)
        self.outside = [one.to(self.dtype) if one.is_floating_point() else one for one in outside]

    def step(self, state: Tensor) -> Tensor:
        """(s,) from (s,)."""
        return self.cell.advance(self.program, self.column, state, self.whole, self.outside)

    def __call__(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """F(s) (n, s) and ∂F/∂s (n, s, s) at states (n, s)."""

        def twice(state: Tensor) -> tuple[Tensor, Tensor]:
            after = self.step(state)
            return after, after

        derivative = jacrev(twice, has_aux=True)
        with torch.enable_grad():
            if self.program.writes:  # vmap cannot write batched values into an unbatched tensor
                pairs = [derivative(state) for state in states]
                jacobian, after = (torch.stack(found) for found in zip(*pairs, strict=True))
            else:
                jacobian, after = vmap(derivative, chunk_size=CHUNK)(states)
        return after.detach(), jacobian.detach()


def names_a_type(program: Program) -> bool:
    """True where an operation of the program specifies the floating type of its result."""
    return any(
        traits_of(one.name).names_type
        or any(kind == "is" and isinstance(what, torch.dtype) for kind, what, _ in one.leaves)
        for one in program.instructions
    )


def step_at(recurrence: ReplayRecurrence, t: int, column: int) -> AutonomousStep:
    """Processing step t as it was recorded."""
    cell = _cell(recurrence)
    group = cell.groups[int(cell.which[t])]
    return AutonomousStep(cell, group.program, group.one(int(cell.index[t])), recurrence.states[t], column)


def step_at_mean(recurrence: ReplayRecurrence, steps: Tensor, column: int, *, scale: float = 1.0) -> AutonomousStep:
    """The step with its inputs from outside fixed at `scale` times their mean over the steps (n,); 0 is no input.

    Raises Unsupported where the steps run different operations, or where an input is not numeric.
    """
    cell = _cell(recurrence)
    if len(cell.groups) != 1:
        raise Unsupported("The steps run different operations, so their inputs have no mean.")
    group = cell.groups[0]
    return AutonomousStep(
        cell, group.program, _means(group, cell.index[steps], scale), recurrence.states[int(steps[0])], column
    )


def _means(group: Steps, index: Tensor, scale: float) -> list[Tensor]:
    found = []
    for one, shared in zip(group.outside, group.shared, strict=True):
        if not shared and not one.is_floating_point():
            raise Unsupported("Some inputs of the steps are not numeric, so they have no mean.")
        found.append(one if shared else _mean(one[index], scale))
    return found


def _mean(rows: Tensor, scale: float) -> Tensor:
    """In float64 where the device has it, else computed in main memory and rounded to the rows' type."""
    mean = scale * rows.cpu().double().mean(0)
    return mean.to(rows.device) if has_float64(rows.device) else mean.to(rows)


def _cell(recurrence: ReplayRecurrence) -> ReplayStep:
    assert isinstance(recurrence.cell, ReplayStep)
    return recurrence.cell
