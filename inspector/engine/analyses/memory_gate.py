"""Which gate of a recurrence carries the state over, and at which value: families declare it, for others it is tested.

An LSTM keeps its state with f = 1 (and writes nothing with i = 0). Single update gates are defined in both directions:
PyTorch's GRU and h' = z h + (1 − z) n keep the state with 1, Cho et al. (2014) and simplified gated units with 0. So
nothing is taken from names, nor from a correlation: a gate is the memory gate where its values, or one minus them, are
the factor on the old state at every step that is looked at. Where none is, none is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.cells.gate_info import MemoryGate
from inspector.engine.trace.trace import Recurrence

LOOKED_AT = 256
CLOSE = 1e-4
"""Relative error at which an equation fits (a float32 step reaches 1e-6)."""
UNIT = "gate/"
"""Prefix of the signals whose values are between 0 and 1."""
WITHIN = "the direction is that of torch's own cell; the step around it acts on the state as well"
OF_TORCH = (("gate/forget", "gate/input"), ("gate/update", ""))
"""What keeps, and what writes, in torch's own cells: known, so needs no test."""


FOUND = "memory gate"
"""Where the result is stored: several quantities ask for it, and the direct path of a state that has many older values
beside it is long to compute."""


def memory_gate_of(recurrence: Recurrence) -> MemoryGate | None:
    """The memory gate of a recurrence, or None where no gate is the factor on a part of the state."""
    if recurrence.cell.memory_gate is not None:
        return recurrence.cell.memory_gate
    if FOUND not in recurrence.stored:
        recurrence.stored[FOUND] = _tested(recurrence)
    found: MemoryGate | None = recurrence.stored[FOUND]
    return found


def _tested(recurrence: Recurrence) -> MemoryGate | None:
    count = min(LOOKED_AT, int(recurrence.lengths[0]))
    block = recurrence.block(0, count, slice(0, 1))
    untouched = ~recurrence.cell.replaced(count)
    gates = {signal: values.double() for signal, values in block.gates.items()}
    if not any(signal.startswith(UNIT) for signal in gates):
        return None
    direct = block.direct()
    for part in _memory_first(recurrence):
        found = _of_part(block, direct, gates, part, untouched)
        if found is not None:
            return found
    return _of_a_cell_within(recurrence)


def _memory_first(recurrence: Recurrence) -> list[str]:
    """The parts of the state; what the rest of the model sees comes last, since memory is what lies beside it."""
    parts = recurrence.cell.parts
    return sorted(parts, key=lambda name: name == recurrence.cell.main)


@dataclass(frozen=True, slots=True)
class _Step:
    """Steps of one part in float64, (n, width) each; `factor` is its direct path where that is known."""

    before: Tensor
    after: Tensor
    factor: Tensor | None

    def of(self, gate: Tensor) -> Tensor:
        """What is written, if `gate` is the factor on the old state."""
        return self.after - gate * self.before


def _of_part(
    block: StepBlock, direct: Tensor | None, gates: Mapping[str, Tensor], part: str, untouched: Tensor
) -> MemoryGate | None:
    """The one gate that is the factor on this part; None where none or several could be. `untouched` (t,): the steps
    in which no value was replaced."""
    before, after = (block.part(part, states).double() for states in (block.previous, block.following))
    factor = None if direct is None else block.part(part, direct).double()
    fitting = {name: values for name, values in gates.items() if values.shape == before.shape}
    known = torch.isfinite(after) & torch.isfinite(before)
    for values in fitting.values():
        known &= torch.isfinite(values)
    rows = known.flatten(1).all(1) & untouched
    if not bool(rows.any()):
        return None
    step = _Step(before[rows], after[rows], None if factor is None else factor[rows])
    fitting = {name: values[rows] for name, values in fitting.items()}
    found = [
        MemoryGate(name, high, part=part)
        for name, gate in fitting.items() if name.startswith(UNIT) and not _halves(gate)
        for high, kept in ((True, gate), (False, 1 - gate)) if _keeps(step, kept, name, fitting)
    ]  # fmt: skip
    if len(found) != 1:
        return None
    (one,) = found
    return replace(one, writes=_writes(step.of(one.kept(fitting)), one.signal, fitting))


def _halves(gate: Tensor) -> bool:
    """Whether a gate is 1/2 throughout, as with weights of 0: it and one minus it are the same."""
    return float((gate - 0.5).abs().max()) <= CLOSE


def _keeps(step: _Step, kept: Tensor, name: str, gates: Mapping[str, Tensor]) -> bool:
    """Whether `kept` is the factor on the old state: by the direct path, or by the equation of the step.

    The equation decides nothing where the old state is 0.
    """
    if step.factor is not None:
        return _same(step.factor, kept)
    if float(step.before.abs().max()) == 0:
        return False
    rest = step.of(kept)
    others = {other: values for other, values in gates.items() if other != name}
    products = [(1 - kept) * values for values in others.values()]
    products += [a * b for _, a, _, b in _pairs(others)]
    return any(_same(rest, product, to=step.after) for product in products)


def _writes(rest: Tensor, keeping: str, gates: Mapping[str, Tensor]) -> str:
    """The gate by which content is written, as in an LSTM: what is written is that gate times one other value.

    "" where that is not so, and where both are gates, since it is not known then which is the content.
    """
    others = {name: values for name, values in gates.items() if name != keeping}
    found = {
        next((name for name in (a, b) if name.startswith(UNIT)), "")
        for a, first, b, second in _pairs(others)
        if _same(rest, first * second) and a.startswith(UNIT) != b.startswith(UNIT)
    }
    return found.pop() if len(found) == 1 else ""


def _pairs(values: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor, str, Tensor]]:
    names = list(values)
    for n, first in enumerate(names):
        for second in names[:n]:
            yield first, values[first], second, values[second]


def _same(one: Tensor, other: Tensor, to: Tensor | None = None) -> bool:
    size = float((one if to is None else to).norm())
    return float((one - other).norm()) <= CLOSE * size if size else float(other.norm()) == 0


def _of_a_cell_within(recurrence: Recurrence) -> MemoryGate | None:
    """That of the one torch cell that is a part of the step, where the factor on the state is not it alone."""
    inside = recurrence.cell.inner_gates
    found = [(keeps, writes) for keeps, writes in OF_TORCH if keeps in inside]
    if len(found) != 1 or any("#" in signal for signal in inside):
        return None
    ((keeps, writes),) = found
    return MemoryGate(keeps, True, writes, _memory_first(recurrence)[0], WITHIN)
