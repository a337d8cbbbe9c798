"""Masks as attention functions take them, reduced to what they forbid: nothing, the causal triangle, or some keys."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.attention.rows import LARGE, forbidding
from inspector.engine.attention.selected_sample import SelectedSample


@dataclass(frozen=True, slots=True)
class Settled:
    """A mask in the form in which it is stored.

    Attributes:
        causal: it is the triangle of as many queries as keys; `mask` is None then.
        mask: None where it allows everything, boolean (True = may attend) where it only forbids, else additive.
        first_query: keys before the first query where it is the triangle of the last queries of more keys, else 0.
        finite: the largest number by which it forbids keys, where that is finite; None where it is −∞ or boolean.
    """

    causal: bool = False
    mask: Tensor | None = None
    first_query: int = 0
    finite: float | None = None


def settle(selected: SelectedSample, mask: Tensor, below: float, source: Tensor | None) -> Settled:
    """What a folded mask forbids, from `selected` where the same `source` was given before.

    below: a finite additive mask at or below this forbids a key, see rows.forbidding.
    """
    if source is None:
        return _settled(mask.detach(), below)
    version = -1 if source.is_inference() else source._version  # torch does not count writes in inference mode
    key = (version, tuple(mask.shape), below)
    known = selected.masks.get(id(source))
    if known is not None and known[0] is source and known[1] == key:
        assert isinstance(known[2], Settled)
        return known[2]
    found = _settled(mask.detach(), below)
    if version >= 0:
        while len(selected.masks) >= 4:
            selected.masks.pop(next(iter(selected.masks)))
        selected.masks[id(source)] = (source, key, found)
    return found


def limit(mask: Tensor, query: Tensor, key: Tensor, scale: float) -> float:
    """Where a finite additive mask begins to forbid; a boolean one has no such limit."""
    return 0.0 if mask.dtype == torch.bool else forbidding(query, key, scale)


def unreached(mask: Tensor | None, causal: bool, length: int, below: float) -> bool:
    """True when no row may attend to a key from `length` on."""
    if causal or mask is None or mask.shape[-1] == 1:
        return causal
    beyond = mask[..., length:]
    return not bool((beyond if beyond.dtype == torch.bool else beyond > below).any())


def written_out(mask: Tensor, query: Tensor, keys: int) -> Tensor:
    """A torch.nn.attention.bias.CausalBias as the boolean mask (q, k) that it represents; others unchanged."""
    bias = sys.modules.get("torch.nn.attention.bias")  # importing it would load torch's compiler, which takes a second
    if bias is None or not isinstance(mask, bias.CausalBias):
        return mask
    queries = query.shape[-2]
    diagonal = keys - queries if mask.variant == bias.CausalVariant.LOWER_RIGHT else 0
    return torch.ones(queries, keys, dtype=torch.bool, device=query.device).tril(diagonal)


def _settled(mask: Tensor, below: float) -> Settled:
    finite = None
    if mask.dtype != torch.bool:
        forbidden, finite = mask <= below, _largest_finite(mask)
        if not bool(((mask == 0) | forbidden).all()):
            return Settled(mask=mask.clone(), finite=finite)
        mask = ~forbidden
    if bool(mask.all()):
        return Settled()
    queries, keys = mask.shape[-2:]
    before = keys - queries
    if queries > 1 and before >= 0:
        triangle = torch.ones(queries, keys, dtype=torch.bool, device=mask.device).tril(before)
        if bool((mask == triangle).all()):
            return (
                Settled(mask=mask.clone(), first_query=before, finite=finite)
                if before
                else Settled(causal=True, finite=finite)
            )
    return Settled(mask=mask.clone(), finite=finite)


def _largest_finite(mask: Tensor) -> float | None:
    """The largest of the finite numbers that are meant to forbid."""
    low = mask[(mask <= LARGE) & mask.isfinite()]
    return float(low.max()) if low.numel() else None
