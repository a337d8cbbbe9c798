"""Gates of cells that run at some steps only: which values are theirs, and what the other steps do with the state."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.cells.gate_info import MemoryGate
from inspector.engine.trace.trace import Recurrence


def computed(recurrence: Recurrence, signal: str, real: Tensor, start: int) -> Tensor:
    """(t, b) True at the real steps of a block, whose first processing step is `start`, that compute a signal."""
    idle = recurrence.cell.idle.get(signal)
    return real if idle is None else real & ~idle[start : start + len(real), None]


def kept(recurrence: Recurrence, found: MemoryGate, block: StepBlock, start: int) -> Tensor:
    """(t, b, h) the factor on the old state: 1 where a step does not compute the gate and leaves the state as it is.

    NaN where such a step changes the state: what it keeps of it is not known.
    """
    values = found.kept(block.gates)
    rested = _rested(recurrence, found, block, found.signal, start)
    return values if rested is None else values.masked_fill(rested, 1.0)


def written(recurrence: Recurrence, found: MemoryGate, block: StepBlock, start: int) -> Tensor:
    """(t, b, h) the gate by which content is written: 0 where a step does not compute it and leaves the state."""
    values = block.gates[found.writes]
    rested = _rested(recurrence, found, block, found.writes, start)
    return values if rested is None else values.masked_fill(rested, 0.0)


def _rested(recurrence: Recurrence, found: MemoryGate, block: StepBlock, signal: str, start: int) -> Tensor | None:
    idle = recurrence.cell.idle.get(signal)
    if idle is None:
        return None
    part = recurrence.cell.parts[found.part]
    same: Tensor = block.previous[..., part] == block.following[..., part]
    return same & idle[start : start + len(same), None, None]
