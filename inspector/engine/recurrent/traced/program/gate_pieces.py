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

    Named by the variables that they are assigned to; those without one that are multiplied are `called`.0, `called`.1,
    by their position. Without any named piece they are shown as long as the value is not read as a whole and all have
    one shape. A piece that is taken apart itself is shown by its own pieces.
    """
    taken, whole = _taken(ops, j, tensor, near)
    every = [(k, piece, *_named(ops, k, piece, near)) for k in taken for piece in ops[k][1].outputs]
    scaling = [_scales(ops, k, piece, near) for k, piece, *_ in every]
    if not any(name for *_, name in every):
        shapes = {tuple(piece.shape) for (_, piece, *_), scales in zip(every, scaling, strict=True) if scales}
        if whole or len(shapes) != 1 or sum(scaling) < 2:
            return
    number = 0
    for (k, piece, shown, name), scales in zip(every, scaling, strict=True):
        own = list(pieces_of(ops, k, piece, near, name or f"{called}.{number}"))
        if own:
            yield from own
        elif name:
            yield shown, (piece if shown == k else ops[shown][1].outputs[0]), name
        elif scales:
            yield k, piece, f"{called}.{number}"
        number += scales


def _named(ops: Ops, j: int, piece: Tensor, near: set[int]) -> tuple[int, str]:
    """(the operation whose result is assigned, the variable) of a piece, also as `g[:, :1].squeeze(1)`; "" for none."""
    op = ops[j][1]
    names, complete = assigned(op.chain, stored=False)
    if complete:
        return j, names[op.output(piece)] if len(names) == len(op.outputs) else ""
    same = (k for k in range(j + 1, len(ops)) if any(out is piece for out in ops[k][1].outputs))
    if (again := next(same, None)) is not None:  # `contiguous` may return what it is given
        return _named(ops, again, piece, near)
    follows = [k for k in sorted(near) if k > j and any(given is piece for given in ops[k][1].inputs)]
    following = ops[follows[0]][1] if len(follows) == 1 else None
    if following is None or not following.traits.keeps_entries or len(following.outputs) != 1:
        return j, ""
    return _named(ops, follows[0], following.outputs[0], near)


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
