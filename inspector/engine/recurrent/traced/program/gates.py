"""Gates of a hand-written step: results of squashing functions, under the names of the user's variables."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from inspector.engine.cells.gate_info import ACTIVATION
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.derived_gates import derived_gate
from inspector.engine.recurrent.traced.program.gate_pieces import pieces_of
from inspector.engine.recurrent.traced.program.hard_gates import hard_gate
from inspector.engine.recurrent.traced.program.near import Near
from inspector.engine.recurrent.traced.program.output_gates import read_inside, towards_output
from inspector.engine.recurrent.traced.record.gate_names import Spelt, applied, as_name, held_by
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind, Traits
from inspector.engine.recurrent.traced.record.recorder import CLAMPS
from inspector.engine.recurrent.traced.record.source_names import target_of

OFTEN = 256
"""Classes of iterations between checks for cancellation: each costs up to a millisecond."""
MOST_KEPT = 64
"""Classes of iterations up to which what leads to a state is kept: it is asked for up to twenty times. Where each of
thousands of steps is a class of its own, that would take memory by their number."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate: its signal ("gate/r", "candidate") and its value after every iteration that has it.

    `bound`: the function that keeps a hard gate between 0 and 1; `outward`: no state reads it, only the output;
    `text`: what it is in the user's code ("f", "sigmoid(f + 1)"), "" where a family describes it.
    """

    signal: str
    values: list[Tensor | None]
    last: int
    tensors: list[Tensor] = field(default_factory=list)
    bound: str = ""
    outward: bool = False
    text: str = ""


def gates_of(flow: Flow, state: Sequence[Slot], batch: int) -> list[Gate]:
    """The gates that lead to the new values of these slots, or by which these are scaled on their way to the output, in
    the order in which they are computed."""
    own = {number for held in flow.held for number in held.tolist()}
    widths = {slot.values[0].numel() // batch for slot in state}
    count = len(flow.loop.iterations)
    found: dict[tuple[object, str], Gate] = {}
    inward: set[tuple[object, str]] = set()
    for n, (i, members) in enumerate(flow.twins.members.items()):
        if n % OFTEN == 0:
            flow.tick()
        ops = flow.loop.iterations[i]
        near, read = _around(flow, state, i)
        for label, j, tensor, signal, bound, text in _signals(flow, i, near, own):
            made = ops[j][1].traits
            fitting = _fits(tensor, batch, widths, made)
            values = flow.twins.results(members, j, ops[j][1].output(tensor))
            shown = _held(flow, i, j, tensor)
            edited = None if shown is None else flow.twins.results(members, shown, 0)
            inward |= {(label, signal)} if id(tensor) in read or shown is not None else set()
            gate: Gate | None = None
            for m, (step, value) in enumerate(zip(members.tolist(), values, strict=True)):
                fits = fitting if value.shape == tensor.shape else _fits(value, batch, widths, made)
                is_state = id(value) in own or (edited is not None and id(edited[m]) in own)
                if fits and not is_state:
                    gate = gate or found.setdefault(
                        (label, signal), Gate(signal, [None] * count, j, bound=bound, text=text)
                    )
                    gate.values[step] = value if edited is None else edited[m]
                    gate.tensors.append(value)
    return numbered([replace(one, outward=key not in inward) for key, one in found.items() if _steady(one)])


def found_gates(flow: Flow, state: Sequence[Slot], batch: int) -> Iterator[tuple[str, int, int, Tensor]]:
    """(signal, iteration, operation, tensor) of every gate value, under the names that `gates_of` gives."""
    names = {id(value): gate.signal for gate in gates_of(flow, state, batch) for value in gate.tensors}
    own = {id(value) for slot in flow.slots for value in slot.values}
    for i in range(len(flow.loop.iterations)):
        for _, j, tensor, *_ in _signals(flow, i, _around(flow, state, i)[0], own):
            if id(tensor) in names:
                yield names[id(tensor)], i, j, tensor


def _around(flow: Flow, state: Sequence[Slot], i: int) -> tuple[set[int], set[int]]:
    """(operations of iteration i that lead to the new values or scale them towards the output, ids of all that
    operations leading to any state are given)."""
    inner = leading_to(flow, flow.slots, i, through_others=True)
    return leading_to(flow, state, i) | towards_output(flow, state, i, inner), read_inside(flow, i, inner)


def leading_to(flow: Flow, state: Sequence[Slot], i: int, *, through_others: bool = False) -> set[int]:
    """Operations of iteration i that the new values are computed from; by default not through those of other slots."""
    slots = () if through_others else flow.slots
    if i not in flow.twins.members or len(flow.twins.members) > MOST_KEPT:
        return _near(flow, state, i, slots)
    key = (tuple(map(id, state)), i, through_others)
    known = flow.leading.get(key)
    if known is None:
        flow.leading[key] = known = (tuple(state), _near(flow, state, i, slots))
    return known[1]


def _near(flow: Flow, state: Sequence[Slot], i: int, slots: Sequence[Slot]) -> set[int]:
    other = {id(s.values[i + 1]) for s in slots if s not in state and s.made[i] >= 0}
    todo = [slot.made[i] for slot in state if slot.made[i] >= 0]
    ops, near = flow.loop.iterations[i], set[int]()
    while todo:
        j = todo.pop()
        if j in near:
            continue
        near.add(j)
        for given in ops[j][1].inputs:
            made = None if id(given) in other else flow.made_here(given, i, j)
            todo += [] if made is None else [made]
            todo += flow.last_writer(given, (i, j))
    return near


def steps_of(flow: Flow, state: Sequence[Slot]) -> set[int]:
    """Numbers of the recorded calls that lead from each state to the next one."""
    bits = sum(1 << slot.index for slot in state)
    found: set[int] = set()
    for i, members in flow.twins.members.items():
        for j in leading_to(flow, state, i):
            if flow.reach[i][j] & bits:
                found.update(flow.twins.calls(members, j).tolist())
    return found


Signal = tuple[object, int, Tensor, str, str, str]
"""(label, number, tensor, signal, bound, text) of a gate; `bound` and `text`: see `Gate`."""


def _signals(flow: Flow, i: int, near: set[int], states: set[int]) -> Iterator[Signal]:
    """Every gate, or its pieces where the code takes it apart. `states`: ids of the tensors that are states."""
    ops = flow.loop.iterations[i]
    parts, around = states | _joined(flow, i), Near(ops, near)
    for j in around.numbers:
        op = ops[j][1]
        hard = hard_gate(around, j)
        if hard is not None and id(ops[hard[0]][1].outputs[0]) not in parts:
            yield from _named(flow, i, hard[0], "gate/", around, frozenset(), hard[1])
            continue
        derived = derived_gate(around, j)
        if derived is not None:
            yield from _named(flow, i, derived[0], "gate/", around, frozenset(), derived[1])
        prefix = _prefix(op)
        if prefix is not None and op.outputs:
            yield from _named(flow, i, j, prefix, around, parts, "")


def _named(flow: Flow, i: int, j: int, prefix: str, near: Near, parts: Container[int], bound: str) -> Iterator[Signal]:
    """The gate that operation j makes, or its pieces, under their names."""
    ops = flow.loop.iterations[i]
    label, op = ops[j]
    held, changed = _variable(near, j), _changed(flow, i, j, near)
    called = held or applied(op)
    if held is None and not prefix.startswith("gate/"):  # a tanh(cn) beside a cn is not cn
        called = Spelt(as_name(called.text, op.name.rstrip("_")), called.text)
    pieces = list(pieces_of(near, j, op.outputs[0], called.name))
    if pieces:
        for number, piece, own in pieces:
            text = f"a part of {called.text}" if own.startswith(f"{called.name}.") else own
            yield (label, own), number, piece, prefix + own, bound, text
    elif held is not None:
        yield label, changed, ops[changed][1].outputs[0], prefix + held.name, bound, held.text
    elif not any(id(given) in parts for given in op.inputs):  # tanh(c) in the output is not a gate
        yield label, j, op.outputs[0], prefix + called.name, bound, called.text


def _changed(flow: Flow, i: int, j: int, near: Near) -> int:
    """The copy of an operation's result that is written into afterwards, as `f = f.clone(); f[:, :2] = 1`; else j.

    What multiplies the state is the copy. Counter-example: of two such copies the first is shown.
    """
    if not flow.changed:
        return j
    ops = near.ops
    result = ops[j][1].outputs[0]
    for k in near.readers(result, j):
        op = ops[k][1]
        if op.traits.name == "clone" and op.inputs[0] is result:
            return k if flow.writers(op.outputs[0], (i, len(ops))) else j
    return j


def _variable(near: Near, j: int) -> Spelt | None:
    """The variable that an operation's result is assigned to, directly or as `sigmoid(a).detach()`; None for none."""
    while True:
        op = near.ops[j][1]
        if op.in_place or target_of(op.chain) is not None:
            return held_by(op)
        follows = near.readers(op.outputs[0], j)
        if len(follows) != 1 or not _same_entries(near.ops[follows[0]][1]):
            return None
        j = follows[0]


def _same_entries(op: Op) -> bool:
    """Whether an operation's result has the values of its input: dropout's has not, unless it is idle."""
    if not op.traits.keeps_entries or not op.outputs or not op.outputs[0].is_floating_point():
        return False
    return op.traits.kind is not Kind.DROPOUT or torch.equal(op.outputs[0], op.inputs[0])


def _joined(flow: Flow, i: int) -> set[int]:
    """Ids of the tensors that are concatenated, unchanged, to the new value of a state: h and c of one tensor."""
    ops = flow.loop.iterations[i]
    found, seen = set[int](), set[int]()
    todo = [slot.made[i] for slot in flow.slots if slot.made[i] >= 0]
    while todo:
        j = todo.pop()
        op = ops[j][1]
        if j in seen:
            continue
        seen.add(j)
        if op.traits.kind is not Kind.JOIN and not op.traits.keeps_entries and op.function not in CLAMPS:
            continue
        found |= set(map(id, op.inputs))
        makers = (flow.made_here(given, i, j) for given in op.inputs)
        todo += [k for k in makers if k is not None]
    return found


def _prefix(op: Op) -> str | None:
    if op.traits.kind is not Kind.SQUASH:
        return None
    return "gate/" if op.traits.unit else "" if op.traits.symmetric else ACTIVATION


def _held(flow: Flow, i: int, j: int, tensor: Tensor) -> int | None:
    """The operation by which an edit replaced a value that operation j made, or None.

    The recorder stores it directly after that one, at the same instruction; a `full_like` of the user's own is at
    another.
    """
    ops = flow.loop.iterations[i]
    chain = ops[j][1].chain
    for k in range(j + 1, len(ops)):
        op = ops[k][1]
        if op.function not in CLAMPS or op.chain != chain:
            return None
        if op.inputs[0] is tensor:
            return k
    return None


def _fits(tensor: Tensor, batch: int, widths: set[int], made: Traits) -> bool:
    """A gate has a value for every entry of a state, or at least one axis only beside the batch's.

    Softmax over any other axis than the units is attention. Counter-examples: attention over as many positions as there
    are units is taken for a gate; a gate of two axes of its own (heads × units of another width) is not shown.
    """
    if not tensor.is_floating_point() or (batch > 1 and batch not in tensor.shape):
        return False
    if tensor.numel() // batch in widths:
        return True
    axes = [size for size in tensor.shape if size != 1]
    return not made.normalises and len(axes) <= (1 if batch == 1 else 2)


def _steady(gate: Gate) -> bool:
    shapes = {tuple(value.shape) for value in gate.values if value is not None}
    return len(shapes) == 1


def numbered(gates: list[Gate]) -> list[Gate]:
    """The same with names that occur twice numbered."""
    seen: dict[str, int] = {}
    out = []
    for gate in sorted(gates, key=lambda gate: gate.last):
        n = seen[gate.signal] = seen.get(gate.signal, 0) + 1
        out.append(replace(gate, signal=gate.signal if n == 1 else f"{gate.signal}#{n}"))
    return out


def idle_steps(gates: list[Gate]) -> dict[str, Tensor]:
    """{signal: (t,) True at iterations without the gate} of those that some iterations lack."""
    without = {gate.signal: torch.tensor([value is None for value in gate.values]) for gate in gates}
    return {signal: steps for signal, steps in without.items() if bool(steps.any())}


@torch.no_grad()
def stacked(gate: Gate, batch: int, like: Tensor) -> Tensor:
    """(t, b, n); NaN at iterations without the gate."""
    values = [value for value in gate.values if value is not None]
    if len(values) < len(gate.values) or len({value.dtype for value in values}) > 1:
        nothing = torch.full(values[0].shape, torch.nan, dtype=like.dtype, device=values[0].device)
        values = [nothing if value is None else value.to(like.dtype) for value in gate.values]
    together = torch.stack(values)
    if batch > 1:
        together = together.movedim(list(together.shape[1:]).index(batch) + 1, 1)
    return together.reshape(len(values), batch, -1).to(like.dtype)
