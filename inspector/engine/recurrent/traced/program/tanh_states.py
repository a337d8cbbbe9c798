"""Which parts of a hand-written state are a tanh: of every entry, at every step; of the others why not.

As of torch's own modules the state of an Elman network has the bounds of its tanh, and neither the mix of a GRU nor the
product of an LSTM has: they are near ±1 for other reasons, and pass gradients beside the tanh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from inspector.analysis.saturation import GATE
from inspector.engine.cells.gate_info import ACTIVATION
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.gates import Gate
from inspector.engine.recurrent.traced.program.state_layout import Part
from inspector.engine.recurrent.traced.program.tanh_marks import TANH, Marks, functions_forward
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.values import Numbers

MOST = 4096
"""Iterations that are followed one by one, where masks or indices decide which entry is what. Counter-example: a masked
state of 5,000 steps has no bound; without a mask all that ran the same operations are followed once."""
OFTEN = 64
"""Iterations between checks for cancellation."""
TOO_MANY = f"it is chosen by a mask at each step, which is followed up to {MOST:,} steps"
MIXED = {
    Kind.SUM: "a sum", Kind.PRODUCT: "a product", Kind.QUOTIENT: "a quotient", Kind.BLEND: "a mix of several values",
    Kind.MATRIX: "a product with a matrix", Kind.DROPOUT: "what dropout left", Kind.CREATION: "a constant",
    Kind.RANDOM: "a random number", Kind.REDUCTION: "made of several entries", Kind.CELL: "a gated cell's state",
    Kind.FUSED: "a gated layer's state",
}  # fmt: skip


def tanh_parts(
    flow: Flow, state: Sequence[Slot], parts: Mapping[str, Part], lengths: Tensor
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The parts of the state of which every entry is a tanh at every step, and the others with the reason why not;
    older values are left out."""
    found = {part.slot: "" for part in parts.values() if not part.lag}
    by_index = {slot.index: slot for slot in state}
    newest = {part.slot: (name, part, by_index[part.slot]) for name, part in parts.items() if not part.lag}
    for number, (_, _, slot) in newest.items():
        if min(slot.made) < 0:
            found[number] = f"step {slot.made.index(min(slot.made))} leaves it as it was"
    following = _Following(flow, lengths, found, newest)
    for members in flow.twins.members.values():
        following.steps(members)
    own = tuple(name for number, (name, _, _) in newest.items() if not found[number])
    return own, {name: found[number] for number, (name, _, _) in newest.items() if found[number]}


def other_squashes(flow: Flow, gates: Sequence[Gate]) -> tuple[str, ...]:
    """The signals of candidates that softsign or hardtanh makes: they are within ±1 and are no tanh."""
    found: list[str] = []
    for gate in gates:
        value = next((one for one in gate.values if one is not None), None)
        place = None if value is None or gate.signal.startswith((GATE, ACTIVATION)) else flow.source.get(id(value))
        while place is not None and (op := flow.op(place)).traits.kind is not Kind.SQUASH:
            through = op.traits.rearranges or op.traits.keeps_entries
            place = flow.source.get(id(op.inputs[0])) if through and op.inputs else None
        if place is not None and flow.op(place).traits.name != "tanh":
            found.append(gate.signal)
    return tuple(found)


class _Following:
    """What is still open, iteration by iteration."""

    def __init__(
        self, flow: Flow, lengths: Tensor, found: dict[int, str], newest: Mapping[int, tuple[str, Part, Slot]]
    ) -> None:
        self.flow, self.lengths, self.found, self.newest = flow, lengths, found, newest
        self.count, self.functions = 0, functions_forward()

    def steps(self, members: Numbers) -> None:
        """Steps that ran the same operations: the first stands for all, unless numbers of their own decide."""
        marks = self._step(int(members[0]))
        if marks is None:
            return
        calls = self.flow.twins.calls
        alike = not marks.by_value and all(self.flow.twins.table.fixed(calls(members, j)) for j in marks.moved)
        for i in () if alike else members[1:].tolist():
            if self._step(i) is None:
                return

    def _step(self, i: int) -> Marks | None:
        """The marks of an iteration, once its values are judged; None where nothing is open any more."""
        if all(self.found.values()):
            return None
        self.count += 1
        if self.count % OFTEN == 0:
            self.flow.tick()
        if self.count > MOST:
            self.found.update({number: why or TOO_MANY for number, why in self.found.items()})
            return None
        marks = Marks(self.flow, i, self.functions)
        real = self.lengths > i
        for number, (_, part, slot) in self.newest.items():
            if not self.found[number]:
                entries = part.rows(marks.of(slot.values[i + 1]) == TANH).cpu()
                if not bool(entries[real].all()):
                    self.found[number] = self._why(i, slot, marks, whole=not bool(entries[real].any()))
        return marks

    def _why(self, i: int, slot: Slot, marks: Marks, *, whole: bool) -> str:
        """What made the value, or the entries of it, that are no tanh."""
        value: Tensor | None = slot.values[i + 1]
        j: int | None = slot.made[i]
        op = self.flow.op((i, slot.made[i]))
        while j is not None and (op.traits.rearranges or op.traits.kind is Kind.JOIN or op.traits.name == "setitem"):
            value = next((one for one in op.inputs if one.is_floating_point() and not _all_tanh(marks, one)), None)
            j = None if value is None else self.flow.made_here(value, i, j)
            op = op if j is None else self.flow.op((i, j))
        name = op.name.strip("_")
        what = MIXED.get(op.traits.kind) if j is not None else "a value from before the step"
        told = f"{what} ({name})" if what and j is not None else what or f"a result of {name}"
        return f"at step {i} {'it is' if whole else 'a part of it is'} {told}, not a tanh"


def _all_tanh(marks: Marks, value: Tensor) -> bool:
    return bool((marks.of(value) == TANH).all())
