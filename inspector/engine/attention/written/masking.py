"""Masks where they are applied: masked_fill, where, an addition of large negative numbers, a product with 0 and 1.

A mask is told from real scores by the operation that applied it, and by −∞, never by its size alone: scores of −10⁴
that a model computes are scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeGuard

import torch
from torch import Tensor

from inspector.engine.attention.rows import LARGE
from inspector.engine.attention.written.facts import Facts, FactTable
from inspector.engine.attention.written.judging import is_parameter

FILLED = -10.0
"""A constant at or below this that takes the place of scores is a mask, whether or not it is large enough."""

SMALLEST = torch.finfo(torch.float32).tiny
"""Weights below this are none where a mask was applied, also in double precision."""


def filled(facts: Facts | None, mask: Tensor, value: object, shape: torch.Size) -> Facts | None:
    """Facts of a tensor with these values in place of those under a mask, or None where the mask forbids nothing."""
    number = constant(value)
    known = facts or Facts()
    forbids = number is not None and (number <= FILLED or (number == 0.0 and (known.made or known.origin is not None)))
    if not forbids:
        return facts
    return replace(known, masked=union(known.masked, mask.bool(), shape))


def constant(value: object) -> float | None:
    """The number that a value is or that fills a tensor; None for others."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, Tensor) or value.is_meta or value.numel() == 0 or value.requires_grad:
        return None
    first = value.detach().reshape(-1)[0]
    if value.numel() > 1 and not bool((value.detach() == first).all()):
        return None
    return float(first)


def forbids(value: object) -> bool:
    """Whether a value is one number that takes the place of scores as a mask does."""
    if isinstance(value, Tensor) and value.numel() != 1:
        return False
    number = constant(value)
    return number is not None and number <= FILLED


def added(facts: Facts | None, mask: object, out: Tensor) -> Facts | None:
    """Facts of a sum with another tensor, which may be a mask of zeros and large negative numbers.

    One number beside 0, as the −100 between the parts of a shifted window (Liu et al. 2021), need not be large.
    """
    activations = facts is not None and facts.features and getattr(mask, "shape", None) == out.shape
    if activations or not may_be_mask(mask, out):
        return facts
    least = float(mask.detach().amin())
    if not least <= FILLED:
        return facts
    low = mask.detach() <= max(least, LARGE)
    if least > LARGE and not bool((low | (mask.detach() == 0)).all()):
        return facts
    known = facts or Facts()
    return replace(known, masked=union(known.masked, low, out.shape))


def times(mask: object, factor: float) -> object:
    """A tensor that is added so many times (`alpha`, `beta`), as far as it may be a mask."""
    if factor == 1 or not isinstance(mask, Tensor) or mask.requires_grad or mask.is_meta:
        return mask
    return mask.detach() * factor


def multiplied(facts: Facts, mask: object, out: Tensor) -> Facts:
    """Facts of a product with another tensor, which may be a mask of zeros and ones."""
    if not zeros_and_ones(mask):
        return facts
    zeros = mask.detach() == 0
    return replace(facts, masked=union(facts.masked, zeros, out.shape)) if bool(zeros.any()) else facts


def zeros_and_ones(mask: object) -> TypeGuard[Tensor]:
    """Whether a factor of weights may be a mask: it has no other numbers, and is nothing that is learned."""
    if not isinstance(mask, Tensor) or mask.requires_grad or mask.is_meta or is_parameter(mask):
        return False
    return mask.dtype == torch.bool or bool(((mask.detach() == 0) | (mask.detach() == 1)).all())


def moved(facts: Facts, source: Tensor, out: Tensor) -> Facts:
    """Facts of a sum, whose mask may have more axes than the scores."""
    if facts.masked is None or source.shape == out.shape:
        return facts
    return replace(facts, margins=None, clean=None, highest=None, entries=None, shift=None)


def put_in(known: Facts | None, source: Tensor, others: Iterable[object], out: Tensor) -> Tensor | None:
    """Where a function of several tensors, entry by entry, took a large negative number out of one that is no score
    (minimum with a mask, lerp, masked_scatter), in place of those of `source`; with the mask that was known of it."""
    before = None if known is None else known.masked
    scores, low = out.detach(), out.detach() <= LARGE
    if source.shape == out.shape and source is not out:
        low = low & (scores != source.detach())
    taken = [one.detach() for one in others if _is_number(one)]
    if not taken or not bool(low.any()):
        return before
    found = torch.zeros_like(low)
    for one in taken:
        found |= low & torch.isin(scores, one[one <= LARGE].to(scores.dtype))
    return union(before, found, out.shape) if bool(found.any()) else before


def _is_number(one: object) -> TypeGuard[Tensor]:
    """Whether it is a tensor of numbers that were not computed from anything that is learned."""
    return isinstance(one, Tensor) and one.is_floating_point() and not one.requires_grad and not one.is_meta


def triangle(known: FactTable, half: Callable[[Tensor, int], Tensor], given: dict[str, Any], out: Tensor) -> None:
    """Note what tril or triu (`half`) of scores or weights leaves out; `given`: its arguments by name."""
    facts = known.of(given["input"])
    if facts is not None and (facts.made or facts.origin is not None or facts.scored is not None):
        kept = half(torch.ones(out.shape[-2:], dtype=torch.bool, device=out.device), given.get("diagonal", 0))
        known.pass_on(given["input"], out, replace(facts, masked=union(facts.masked, ~kept, out.shape)))


def union(one: Tensor | None, other: Tensor, shape: torch.Size) -> Tensor:
    """Both masks together, each of which broadcasts to `shape`."""
    return other if one is None else one | other.expand(shape) if one.dim() > other.dim() else one | other


def forbidden(facts: Facts | None, scores: Tensor, weights: Tensor) -> Tensor | None:
    """True where a key is masked: by a mask that was applied, or by −∞, and without any weight. None for none.

    A finite mask that the largest scores reach leaves its keys some weight; those are shown as they are. Less than the
    smallest normal number is none.
    """
    scores, weights = scores.detach(), weights.detach()
    none = weights < max(SMALLEST, torch.finfo(weights.dtype).tiny)  # exp(−100) is no 0, but less than that
    given = None if facts is None else facts.masked
    lowest = scores.amin()  # NaN where a score is: −∞ may be among the others
    if not bool((lowest == -torch.inf) | lowest.isnan()):
        return None if given is None else given & none
    infinite = scores == -torch.inf
    empty = none | weights.isnan()
    return (infinite if given is None else infinite | given) & empty


def finite(facts: Facts | None, scores: Tensor) -> bool:
    """Whether masked scores are finite numbers."""
    if facts is None or facts.masked is None:
        return False
    scores = scores.detach()
    return bool(scores.amin() > -torch.inf) or bool(((scores > -torch.inf) & facts.masked).any())


def may_be_mask(mask: object, out: Tensor) -> TypeGuard[Tensor]:
    """Whether it is worth reading: activations that have a gradient, and parameters, are no masks."""
    if (
        not isinstance(mask, Tensor)
        or not mask.is_floating_point()
        or mask.numel() == 0
        or mask.is_meta
        or is_parameter(mask)
    ):
        return False
    return not mask.requires_grad or mask.shape != out.shape


def arguments(args: tuple[Any, ...], kwargs: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of a call by name."""
    return dict(zip(names, args, strict=False)) | dict(kwargs)
