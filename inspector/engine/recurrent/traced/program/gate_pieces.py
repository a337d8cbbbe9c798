"""Several gates that are computed as one tensor and taken apart: by chunk, split, unbind or index."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from inspector.engine.recurrent.traced.program.near import Near, Onwards
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.source_names import assigned


def pieces_of(near: Near, j: int, tensor: Tensor, called: str) -> Iterator[tuple[int, Tensor, str]]:
    """(operation, piece, name) of the pieces of the value that operation j makes, also of another shape of it.

    Named by the variables that they are assigned to; those without one that are multiplied are `called`.0, `called`.1,
    by their position. Without any named piece they are shown as long as the value is not read as a whole and all have
    one shape. A piece that is taken apart itself is shown by its own pieces.
    """
    ops = near.ops
    taken, whole = _taken(near, j, tensor)
    every = [(k, piece, *_named(near, k, piece)) for k in taken for piece in ops[k][1].outputs]
    scaling = [_scales(near, k, piece) for k, piece, *_ in every]
    if not any(name for *_, name in every):
        shapes = {tuple(piece.shape) for (_, piece, *_), scales in zip(every, scaling, strict=True) if scales}
        if whole or len(shapes) != 1 or sum(scaling) < 2:
            return
    number = 0
    for (k, piece, shown, name), scales in zip(every, scaling, strict=True):
        own = list(pieces_of(near, k, piece, name or f"{called}.{number}"))
        if own:
            yield from own
        elif name:
            yield shown, (piece if shown == k else ops[shown][1].outputs[0]), name
        elif scales:
            yield k, piece, f"{called}.{number}"
        number += scales


def _named(near: Near, j: int, piece: Tensor) -> tuple[int, str]:
    """(the operation whose result is assigned, the variable) of a piece, also as `g[:, :1].squeeze(1)`; "" for none."""
    op = near.ops[j][1]
    names, complete = assigned(op.chain, stored=False)
    if complete:
        return j, names[op.output(piece)] if len(names) == len(op.outputs) else ""
    if again := near.returning(piece, j):  # `contiguous` may return what it is given
        return _named(near, again[0], piece)
    follows = near.readers(piece, j)
    following = near.ops[follows[0]][1] if len(follows) == 1 else None
    if following is None or not following.traits.keeps_entries or len(following.outputs) != 1:
        return j, ""
    return _named(near, follows[0], following.outputs[0])


def _taken(near: Near, j: int, tensor: Tensor) -> tuple[list[int], bool]:
    """The operations that take pieces of a value, and whether anything else reads it as a whole."""
    found: list[int] = []
    whole, values, readers = False, {id(tensor)}, Onwards(near, tensor, j)
    for k in readers:
        op = near.ops[k][1]
        if op.traits.kind is Kind.PIECE and id(op.inputs[0]) in values:
            found.append(k)
        elif op.traits.rearranges:
            values |= set(map(id, op.outputs))
            readers.follow(op.outputs)
        else:
            whole = True
    return found, whole


def _scales(near: Near, made: int, piece: Tensor) -> bool:
    """Whether a piece multiplies something, or makes the 1 - z that does."""
    return any(near.ops[k][1].traits.scales for k in near.readers(piece, made))
