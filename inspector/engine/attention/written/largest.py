"""The largest score of each query, as the model had it before it subtracted that, and of the keys that are shown.

A softmax is the same for scores from which each row's largest was subtracted, as many models do against overflow: their
largest is 0 then, which says nothing. A softmax may also have entries that are no keys (a sink, Xiao et al. 2023): the
largest score of the others is ln Σ e^s + ln of their largest weight.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.attention.written.facts import Facts, FactTable, Origin


def subtracted(facts: FactTable, source: object, other: object, out: Tensor) -> None:
    """Note a difference of scores and the largest of each row, or of all of them."""
    if not isinstance(source, Tensor) or not isinstance(other, Tensor) or not out.numel() or not out.dim():
        return
    if source.shape != out.shape or other.dtype != out.dtype or not _is_largest(other, out):
        return
    known = facts.of(out) if source is out else facts.of(source)
    before = None if known is None else known.shift
    shift = other.detach() if before is None else other.detach() + before
    facts.note(out, replace(known or Facts(), shift=shift.clone()))


def _is_largest(other: Tensor, out: Tensor) -> bool:
    """Whether what is left has 0 as its largest entry along an axis along which one number was subtracted."""
    if other.numel() == 1:
        return bool(out.detach().amax() == 0)
    if other.dim() != out.dim():
        return False
    for axis in (n for n, size in enumerate(other.shape) if size == 1):
        rows = out.detach().movedim(axis, -1)
        top = rows[(0,) * (rows.dim() - 1)].amax()  # one row, before all are read
        if bool(top == 0) or bool(top.isnan()):
            tops = rows.amax(-1)
            if bool(((tops == 0) | tops.isnan()).all()):
                return True
    return False


def before_shift(known: Facts | None, scores: Tensor, axis: int) -> Tensor:
    """The largest score of each row, of size 1 along the axis, what was subtracted from it added again."""
    highest = scores.detach().amax(axis, keepdim=True)
    shift = None if known is None else known.shift
    return highest if shift is None or shift.expand(scores.shape).stride(axis) else highest + shift.expand_as(highest)


def of_keys(facts: FactTable, known: Facts, origin: Origin, left: Tensor, axis: int) -> Tensor | None:
    """The largest score of the weights `left`, whose keys lie along an axis, where they are not all entries of their
    softmax; None where that is not known."""
    highest = known.highest
    if highest is None or origin.kind != "softmax" or left.shape[axis] >= origin.shape[origin.axis]:
        return highest
    whole = facts.whole(left)
    if whole is None or tuple(whole.shape) != origin.shape or left.dim() != len(origin.shape) or axis != origin.axis:
        return None
    every = left.detach().as_strided(whole.shape, whole.stride, whole.offset)
    if any(a != b for n, (a, b) in enumerate(zip(left.shape, every.shape, strict=True)) if n != axis):
        return None
    share = left.detach().double().amax(axis, keepdim=True) / every.double().amax(axis, keepdim=True)
    highest = highest.narrow(axis, 0, 1)  # the same for all entries of a view
    return (highest.expand_as(share).double() + share.log()).to(torch.promote_types(highest.dtype, torch.float32))
