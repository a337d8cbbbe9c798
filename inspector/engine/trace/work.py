"""How much work a quantity is, counted before it is done: in multiplications, from the sizes of what was recorded.

The unit is a multiplication of a large product of float32 matrices, the fastest there is. What is slower (a
factorisation, a loop in Python) counts for as many as take as long; engine/session/costs.py makes seconds of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inspector.engine.trace.trace import Recurrence, Trace

CALL = 1e6
"""One operation of a loop in Python on small tensors takes as long as so many multiplications (some 20 µs)."""
CHEAP_ORDER = 50
"""Quantities of a smaller `order` that declare no work are a few passes over what was recorded."""


@dataclass(frozen=True, slots=True)
class Size:
    """The sizes of one recurrence.

    Attributes:
        steps: of the sample that is shown.
        state: entries of the whole state.
        row: multiplications that pull one gradient through one step.
        built: whether there is no closed form, so that each Jacobian is built row by row.
        parameters: numbers of all its parameters.
    """

    steps: int
    state: int
    row: int
    built: bool = False
    parameters: int = 0

    @property
    def jacobians(self) -> float:
        """What building the Jacobians of all steps takes where no closed form gives them."""
        return self.steps * (float(self.state) * self.row + 10 * CALL) if self.built else 0.0


@dataclass(frozen=True, slots=True)
class RunSize:
    """The sizes of a run: of its recurrences, and the multiplications of one call of the whole model."""

    recurrences: tuple[Size, ...]
    call: float
    steps: int


OfRecurrence = Callable[[Size], float]
OfRun = Callable[[RunSize], float]


def every_product(size: Size, lags: int) -> float:
    """The products of all Jacobians up to so many lags, all directions of every start."""
    return size.steps * min(size.steps, lags) / 2 * size.state * size.row


def over_each(work: OfRecurrence | None) -> OfRun | None:
    """The work of a quantity of each recurrence, for the whole run."""
    return None if work is None else lambda run: sum(map(work, run.recurrences))


def run_size(trace: Trace) -> RunSize:
    """The sizes of a run that was recorded. A parameter is taken to be multiplied once in every step of every sample.

    Counter-example: an embedding is only looked up, so that a model with a large vocabulary counts for too much.
    """
    sizes = tuple(_size(one, trace.look_at) for one in trace.recurrences if one.length(trace.look_at))
    numbers = sum(value.numel() for value in trace.subject.model.parameters())
    steps = trace.batch.steps
    return RunSize(sizes, float(numbers) * steps * trace.batch.size + CALL * steps, steps)


def _size(recurrence: Recurrence, sample: int) -> Size:
    cell = recurrence.cell
    numbers = sum(value.numel() for value in cell.parameters().values())
    return Size(recurrence.length(sample), cell.state_size, cell.row_cost(), bool(cell.method), numbers)
