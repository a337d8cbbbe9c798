"""Gates that a model computes for all steps ahead of its loop, and reads one step at a time (SRU, QRNN and others)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.gates import Gate, leading_to
from inspector.engine.recurrent.traced.program.output_gates import towards_output
from inspector.engine.recurrent.traced.record.gate_names import Spelt, applied
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.source_names import assigned

DEEPEST = 8
"""Views through which a value is followed back to its operation: models use two or three (chunk, transpose, unbind).
Counter-example: a gate taken out through nine views in a row is not shown."""


def gates_ahead(flow: Flow, state: Sequence[Slot], batch: int) -> list[Gate]:
    """Sigmoids from before the loop of which each step reads a piece of a state's size as a factor.

    Counter-example: sigmoid features, as many as the state has entries, from which a step subtracts something, are
    shown as a gate; the numbers are still right, as the piece is what the step read.
    """
    widths = {slot.values[0].numel() // batch for slot in state}
    count = len(flow.loop.iterations)
    found: dict[str, Gate] = {}
    inward: set[str] = set()
    for i, members in flow.twins.members.items():
        near = leading_to(flow, state, i)
        inner = leading_to(flow, flow.slots, i, through_others=True)
        for j, n, tensor, signal, text in _read(flow, i, near | towards_output(flow, state, i, inner)):
            if tensor.numel() // batch not in widths or (batch > 1 and batch not in tensor.shape):
                continue
            gate = found.setdefault(signal, Gate(signal, [None] * count, j, text=text))
            inward |= {signal} if j in inner else set()
            for step, value in zip(members.tolist(), flow.twins.inputs(members, j, n), strict=True):
                gate.values[step] = value
    return [replace(gate, outward=signal not in inward) for signal, gate in found.items()]


def _read(flow: Flow, i: int, near: set[int]) -> Iterator[tuple[int, int, Tensor, str, str]]:
    """(operation, number of its input, tensor, signal, text) of every piece of a gate that iteration i scales with."""
    ops = flow.loop.iterations[i]
    for j in sorted(near):
        op = ops[j][1]
        if not op.traits.scales:
            continue
        for n, tensor in enumerate(op.inputs):
            made = _made_by(flow, i, tensor) if tensor.is_floating_point() else None
            if made is not None:
                yield j, n, tensor, f"gate/{made.name}", made.text


def _made_by(flow: Flow, i: int, tensor: Tensor) -> Spelt | None:
    """The sigmoid before the loop of which a tensor is a piece; None where it is not one."""
    name = ""
    for _ in range(DEEPEST):
        op = _maker(flow, i, tensor)
        if op is None:
            return None
        names, whole = assigned(op.chain)
        number = op.output(tensor)
        inside = flow.source.get(id(tensor)) is not None
        if not name and whole and not inside and len(names) in (1, len(op.outputs)):
            name = names[number if len(names) > 1 else 0]
        if op.traits.unit and not op.traits.normalises:
            return None if inside else Spelt(name, name) if name else applied(op)
        if not op.traits.rearranges or not op.inputs:
            return None
        tensor = op.inputs[0]
    return None


def _maker(flow: Flow, i: int, tensor: Tensor) -> Op | None:
    """The operation that made a tensor, in this iteration or before the loop."""
    place = flow.source.get(id(tensor))
    if place is not None:
        return flow.op(place) if place[0] == i else None
    table = flow.twins.table
    call = table.maker(id(tensor))
    return None if call is None else table.op(call)
