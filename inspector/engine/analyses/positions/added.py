"""What a model adds to its stream, multiplies it by, or puts beside it, that depends on the step and not on what stands
there.

Two runs on one token repeated, another one in each: an operand that is the same in both, differs from step to step, and
meets one that is not the same, is an encoding of positions, whatever made it (a parameter, an embedding of 0, 1, 2 …, a
formula in `forward`). A loop over the steps meets them one by one, at one instruction of its code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.analyses.positions.counts import Counts
from inspector.engine.analyses.positions.operands import BESIDE, MULTIPLIED, Operands, Site

ROTARY = 1e-3
"""By how much cos² + sin² may differ from step to step, of its mean: half precision rounds by 5·10⁻⁴."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """(t, d) numbers of each step, at what place of the model, and how they reach the stream.

    `certain`: False where the axes alone do not say that these are steps and components (it may be a bias of scores).
    `eps`: that of their type.
    """

    rows: Tensor
    place: str
    how: str
    certain: bool
    eps: float


def encodings(first: Sequence[Operands], second: Sequence[Operands], counts: Counts) -> list[Encoding]:
    """The encodings of positions that two runs on one token repeated have in common, each once, in order.

    The cosines and sines of rotary positions are not among them. Counter-example: what a model adds to scores is a bias
    of these, and as wide as there are keys; what is as wide as there are steps is therefore not certain.
    """
    found: list[Encoding] = []
    loops: dict[Site, list[tuple[Operands, int | None]]] = {}
    for before, after in zip(first, second, strict=False):
        if before.how != after.how or len(before.digests) != len(after.digests):
            break  # the runs took different ways
        alike = [a == b and bool(a) for a, b in zip(before.digests, after.digests, strict=True)]
        both = any(alike) and not all(alike)
        if after.site is not None:
            loops.setdefault(after.site, []).append((after, alike.index(True) if both else None))
        elif both:
            for one in after.tensors:
                for made in _rows(one, after, counts) if one is not None else ():
                    _add(found, made)
    for events in loops.values():
        taken = _one_by_one(events, counts.lengths)
        if taken is not None:
            _add(found, taken)
    return _without_rotary(found)


def _add(found: list[Encoding], made: Encoding) -> None:
    if not any(
        one.how == made.how and one.rows.shape == made.rows.shape and torch.equal(one.rows, made.rows) for one in found
    ):
        found.append(made)


def _rows(one: Tensor, met: Operands, counts: Counts) -> Iterator[Encoding]:
    """Of an operand (…, t, d) or (t, …, d), or (…, d, t), that is the same in every sequence and differs between steps;
    of a picture's, (…, rows, columns, d) or (…, d, rows, columns)."""
    picture = counts.of_picture(one.shape)
    if picture is not None:
        rows = one.movedim(picture, (0, 1)).flatten(0, 1)
        rows = rows.flatten(1, -2) if rows.dim() > 2 else rows[:, None]
        if bool((rows == rows[:, :1]).all()) and _differs(rows[:, 0]):
            yield _encoding(rows[:, 0], met, certain=True)
        return
    yield from _of_steps(one, met, counts.lengths)


def _of_steps(one: Tensor, met: Operands, counts: Mapping[int, int]) -> Iterator[Encoding]:
    for axis in dict.fromkeys((one.dim() - 2, 0)):
        steps = one.shape[axis]
        if steps in counts:
            rows = one.movedim(axis, 0).reshape(steps, -1, one.shape[-1])
            square = one.shape[-1] == steps
            if bool((rows == rows[:, :1]).all()) and _differs(rows[: counts[steps], 0]):
                yield _encoding(rows[: counts[steps], 0], met, certain=not square)
                if not square:
                    return
    steps = one.shape[-1]
    if steps in counts and met.how != BESIDE and 1 < one.shape[-2] == one.numel() // steps:
        columns = one.reshape(-1, steps).T[: counts[steps]]
        if _differs(columns):
            yield _encoding(columns, met, certain=False)


def _differs(rows: Tensor) -> bool:
    return bool((rows != rows[:1]).any()) and bool(rows.isfinite().all())


def _encoding(rows: Tensor, met: Operands, *, certain: bool) -> Encoding:
    return Encoding(rows.double().cpu(), met.place, met.how, certain, torch.finfo(rows.dtype).eps)


def _one_by_one(events: Sequence[tuple[Operands, int | None]], counts: Mapping[int, int]) -> Encoding | None:
    """Of the operations of one instruction, of one step each, in order: there are as many as steps, and in all of them
    the same operand is that of the step alone."""
    which = {at for _, at in events}
    if len(events) not in counts or len(which) > 1 or None in which:
        return None
    (at,) = which
    taken = [one.tensors[at] for one, _ in events if at is not None]
    rows = [one.reshape(-1) for one in taken if one is not None]
    if len(rows) < len(events) or len({len(one) for one in rows}) > 1:
        return None
    stacked = torch.stack(rows)[: counts[len(events)]]
    return _encoding(stacked, events[0][0], certain=True) if _differs(stacked) else None


def _without_rotary(found: list[Encoding]) -> list[Encoding]:
    """All but what queries and keys are multiplied by where these are turned: cos² + sin² is the same at every step."""
    factors = [one for one in found if one.how == MULTIPLIED]
    turning = {
        id(one)
        for a in factors
        for b in factors
        if a is not b and a.rows.shape == b.rows.shape and _constant(a.rows**2 + b.rows**2, 8 * max(a.eps, b.eps))
        for one in (a, b)
    }
    return [one for one in found if id(one) not in turning]


def _constant(squares: Tensor, rounding: float) -> bool:
    return bool(((squares - squares.mean()).abs() <= (ROTARY + rounding) * squares.mean()).all())
