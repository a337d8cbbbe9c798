"""Masks that are written into a part of the scores, and scores and softmaxes that are put beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from inspector.engine.attention.written import masking
from inspector.engine.attention.written.by_hand import ByHand
from inspector.engine.attention.written.facts import Facts, Origin
from inspector.engine.attention.written.sums import NOTHING, Args, Kwargs


class PutTogether(ByHand):
    """What `ByHand` sees, with masks of a part of the scores, and results that are joined."""

    __slots__ = ()

    def assigned(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """scores[anything] = a number that forbids; a buffer[:, from:to] = the result of some queries."""
        if self.results.of(args[2]) is not None and isinstance(args[0], Tensor):
            self.results.written(args[0][args[1]], args[2])
        else:
            self.filled_in(args, kwargs, out)

    def copied_into(self, args: Args, _kwargs: Kwargs, _out: Any) -> None:
        """buffer[:, from:to].copy_(the result of some queries)."""
        if len(args) > 1 and isinstance(args[0], Tensor) and self.results.of(args[1]) is not None:
            self.results.written(args[0], args[1])

    def _assigns(self, args: Any, _out: Any) -> bool:
        return len(args) > 2 and (masking.forbids(args[2]) or self.results.of(args[2]) is not None)

    def filled_in(self, args: Args, kwargs: Kwargs, _out: Any) -> None:
        """A number that forbids in a part of scores: by a key, along an axis, at indices; or fill_ of the part."""
        target = args[0]
        value = kwargs.get("value", kwargs.get("values", args[-1]))
        if not isinstance(target, Tensor) or not target.is_floating_point() or not masking.forbids(value):
            return
        into = _out if isinstance(_out, Tensor) else target
        base = into if into._base is None else into._base
        where = _places(base, into, args[1:-1] if "value" not in kwargs and "values" not in kwargs else args[1:])
        if where is not None:
            known = self.facts.of(base) or self.facts.of(target) or NOTHING
            self.facts.note(base, replace(known, masked=masking.union(known.masked, where, base.shape)))

    def padded(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """pad(scores, pads, value=a number that forbids) too."""
        super().padded(args, kwargs, out)
        given = masking.arguments(args, kwargs, ("input", "pad", "mode", "value"))
        if given.get("value") is not None and masking.forbids(given["value"]) and out.is_floating_point():
            there = torch.zeros(given["input"].shape, dtype=torch.bool, device=out.device)
            masked = F.pad(there, tuple(given["pad"]), value=True)
            known = self.facts.of(given["input"]) or NOTHING
            before = known.masked
            if before is not None:
                masked = masked | F.pad(before.expand(there.shape), tuple(given["pad"]), value=False)
            self.facts.note(out, Facts(masked=masked, scored=known.scored))

    def stacked(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """cat of the softmaxes of some queries each, or of some sequences; stack of products of single weights."""
        super().stacked(args, kwargs, out)
        given = kwargs.get("tensors", args[0] if args else ())
        dim = kwargs.get("dim", args[1] if len(args) > 1 else 0)
        if not isinstance(dim, int) or len(given) < 2:
            return
        if not stacked_apart(given, out):
            self._masks_beside(given, dim % out.dim(), out)
            self.results.beside(given, dim % out.dim())
        elif given[0].dim() < out.dim():
            self.results.stacked(given, dim % out.dim(), out)
        product = self.pieces.stacked(given, dim % out.dim(), out) if self.pieces.sums else None
        if product is not None:
            self._remember(*product, out)
        known = [self.facts.of(one) for one in given]
        if not stacked_apart(given, out) and all(one is not None and one.origin is not None for one in known):
            self._joined([one for one in known if one is not None], given, dim % out.dim(), out)

    def _masks_beside(self, given: Sequence[Tensor], dim: int, out: Tensor) -> None:
        """cat of masked scores and others (a sink without a key): masks stay where they were."""
        known = [self.facts.of(one) for one in given]
        if all(one is None or one.masked is None or one.origin is not None for one in known):
            return
        masks = [_wide(None if one is None or one.origin is not None else one.masked, part, 0.0, 0, "masked")
                 for one, part in zip(known, given, strict=True)]  # fmt: skip
        scored = next((one.scored for one in known if one is not None and one.masked is not None), None)
        before = self.facts.of(out) or NOTHING
        self.facts.note(out, replace(before, masked=torch.cat(masks, dim), scored=before.scored or scored))

    def _joined(self, known: Sequence[Facts], given: Sequence[Tensor], dim: int, out: Tensor) -> None:
        """Note that a result has rows of several softmaxes."""
        origins = [one.origin for one in known if one.origin is not None]
        first = origins[0]
        if any(one.kind != "softmax" or one.axis != first.axis or one.taken for one in origins) or dim == first.axis:
            return
        if any(one.shape != tuple(part.shape) for one, part in zip(origins, given, strict=True)):
            return

        def together(name: str, fill: float) -> Tensor | None:
            every = [getattr(one, name) for one in known]
            if all(one is None for one in every):
                return None
            return torch.cat(
                [_wide(one, part, fill, first.axis, name) for one, part in zip(every, given, strict=True)], dim
            )

        origin = Origin("softmax", first.place, first.module, tuple(out.shape), first.axis, first.features, first.fixed,
                        parts=tuple(origins))  # fmt: skip
        own = known[0].own if len({one.own for one in known}) == 1 else ""
        highest, margins = together("highest", torch.nan), together("margins", torch.inf)
        facts = Facts(masked=together("masked", 0.0), origin=origin, highest=highest, margins=margins, own=own)
        self.facts.note(out, facts)


def stacked_apart(given: Sequence[Tensor], out: Tensor) -> bool:
    """Whether tensors were stacked along a new axis, or have not as many axes as what they were put together to."""
    return any(one.dim() != out.dim() for one in given)


def _wide(one: Tensor | None, part: Tensor, fill: float, axis: int, name: str) -> Tensor:
    """What is known of a part, or a constant, with its shape (1 along the keys, but for masks)."""
    shape = list(part.shape)
    if name != "masked":
        shape[axis] = 1
    if one is not None:
        return one.expand(shape)
    return torch.full(shape, fill, dtype=torch.bool if name == "masked" else part.dtype, device=part.device)


def _places(base: Tensor, into: Tensor, key: Sequence[Any]) -> Tensor | None:
    """True in a tensor of the shape of `base` where a number was written into `into`, a part of it. None where that is
    not known."""
    if not base.is_contiguous() or base.is_meta:
        return None
    there = torch.zeros(base.shape, dtype=torch.bool, device=base.device)
    part = there.as_strided(into.shape, into.stride(), into.storage_offset() - base.storage_offset())
    if not key:
        part.fill_(True)
    elif isinstance(key[0], int) and not isinstance(key[0], bool) and len(key) == 2:
        part.index_fill_(key[0], key[1], True)
    elif len(key) == 1:
        part[key[0] if not isinstance(key[0], list) else tuple(key[0])] = True
    else:
        return None
    return there
