"""Several gates that are computed as one tensor and taken apart: by chunk, split, unbind or index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.source_names import assigned

Ops = Sequence[tuple[object, Op]]


def pieces_of(ops: Ops, j: int, tensor: Tensor, near: set[int], called: str) -> Iterator[tuple[int, Tensor, str]]:
    """(operation, piece, name) of the pieces of the value that operation j makes, also of another shape of it.

    Named by the variables that they are assigned to; pieces without one that are multiplied are `called`.0, `called`.1,
    as long as the value is not read as a whole and all have one shape.
    """
    taken, whole = _taken(ops, j, tensor, near)
    named = []
    for k in taken:
        op = ops[k][1]
        names, complete = assigned(op.chain, stored=False)
        if complete and len(names) == len(op.outputs):
            named += [(k, piece, name) for piece, name in zip(op.outputs, names, strict=True)]
    if named or whole:
        yield from named
        return
    found = [(k, piece) for k in taken for piece in ops[k][1].outputs if _scales(ops, k, piece, near)]
    if len(found) > 1 and len({tuple(piece.shape) for _, piece in found}) == 1:
        yield from ((k, piece, f"{called}.{n}") for n, (k, piece) in enumerate(found))


def _taken(ops: Ops, j: int, tensor: Tensor, near: set[int]) -> tuple[list[int], bool]:
    """The operations that take pieces of a value, and whether anything else reads it as a whole."""
    found: list[int] = []
    whole, values = False, {id(tensor)}
    for k in sorted(near):
        op = ops[k][1]
        if k <= j or not any(id(one) in values for one in op.inputs):
            continue
        if op.traits.kind is Kind.PIECE and id(op.inputs[0]) in values:
            found.append(k)
        elif op.traits.rearranges:
            values |= set(map(id, op.outputs))
        else:
            whole = True
    return found, whole


def _scales(ops: Ops, made: int, piece: Tensor, near: set[int]) -> bool:
    """Whether a piece multiplies something, or makes the 1 - z that does."""
    return any(
        k > made and ops[k][1].traits.scales and any(one is piece for one in ops[k][1].inputs) for k in sorted(near)
    )
