"""Handlers of the torch functions of which people write attention; see the package's docstring."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from inspector.engine.attention.put_together import of_keys, of_parts
from inspector.engine.attention.rows import margin_or_none_allowed
from inspector.engine.attention.written import judging, largest, masking, picked, scores, unreached
from inspector.engine.attention.written.concerned import Concerned, is_outer
from inspector.engine.attention.written.facts import Facts, Origin, same_memory
from inspector.engine.attention.written.sums import NOTHING, Args, Kwargs


class ByHand(Concerned):
    """The attention of one run that its model computes itself: what makes weights, and what passes them on."""

    __slots__ = ()

    # --- what makes weights

    def softmax(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """A softmax over any axis."""
        if not out.is_floating_point() or not out.dim() or out.is_meta:
            return
        dim = kwargs.get("dim", args[1] if len(args) > 1 and isinstance(args[1], int) else -1)
        given = args[0] if args else kwargs["input"]
        self.weights("softmax", given, out, -1 if dim is None else dim, lost=kwargs.get("out") is not None)

    def gumbel(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """gumbel_softmax(logits, tau, hard, eps, dim): the weights are those that were drawn."""
        self.weights("softmax", args[0] if args else kwargs["logits"], out, kwargs.get("dim", -1))

    def softmin(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """A softmax of the negative scores."""
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        with torch.enable_grad():  # masks among the scores are told by their graph
            scores = -(args[0] if args else kwargs["input"])
        self.weights("softmax", scores, out, dim)

    def sigmoid(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """A sigmoid over positions: others are gates, of which nothing is said."""
        scores = args[0] if args else kwargs["input"]
        known = self.facts.of(scores)
        origin = Origin("sigmoid", "", "", tuple(out.shape), -1)
        masked = masking.forbidden(known, scores, out) if out.is_floating_point() and known is not None else None
        self.facts.note(out, Facts(masked=masked, origin=origin))

    def weights(self, kind: str, scores: Tensor, out: Tensor, dim: int, *, lost: bool = False) -> None:
        """Note that a result may be weights, with the masks of its scores, which may be `lost` under it."""
        place, module = self.where()
        known, axis = self.facts.of(scores), dim % out.dim()
        size = out.shape[axis]
        last = known is not None and known.features == size and axis == out.dim() - 1
        origin = Origin(
            kind, _of_outer(place, module), module, tuple(out.shape), axis, last, judging.is_parameter(scores)
        )
        self.origins.append(origin)
        if lost and same_memory(scores, out):
            masked = None if known is None or known.masked is None else known.masked & (out == 0)
            self.facts.note(out, Facts(masked=masked, origin=origin, own="" if known is None else known.own))
            return
        known, origin.unclear = unreached.asked(known, scores)
        masked = masking.forbidden(known, scores, out)
        after = Facts(masked=masked, origin=origin, own="" if known is None else known.own)
        if known is not None and known.masked is not None and masking.finite(known, scores):
            applied = known.masked.expand(scores.shape)
            least = margin_or_none_allowed(scores.detach().movedim(axis, -1), applied.movedim(axis, -1))
            after = replace(after, margins=least.unsqueeze(-1).movedim(-1, axis))
        if scores.shape == out.shape:
            after = replace(after, highest=largest.before_shift(known, scores, axis))
        if self.selected.products and scores.grad_fn is not None:
            origin.scores = scores.detach(), scores.grad_fn
            after = replace(after, entries=torch.arange(out.numel(), device=out.device).reshape(out.shape))
        self.facts.note(out, after)
        if kind == "softmax" and not self._over_all(out):
            self.blocks.softmax(scores, out)

    def _over_all(self, out: Tensor) -> bool:
        """Whether it has all positions along both of its last axes: it is no block of them."""
        return tuple(out.shape[-2:]) == (self.selected.padded, self.selected.padded)

    def made(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A quotient, an exponential, a clamp: their results may be weights by their values."""
        source = args[0] if args else kwargs.get("input")
        if len(args) > 1 and self.linear.uses and isinstance(args[1], Tensor):
            self.divided(source, 1.0 / args[1].detach(), out)
        if isinstance(out, Tensor) and out.is_floating_point() and out.dim():
            known = self.facts.of(source) or NOTHING
            if isinstance(source, Tensor) and known.worth:
                scored = scores.after_function(known.scored)
                self.facts.pass_on(source, out, replace(known, made=True, scored=scored))
            else:
                self.facts.note(out, Facts(made=True))

    def powers(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """An exponential: of scores it is weights once it is divided by something for each query."""
        source = args[0] if args else kwargs.get("input")
        known = self.facts.of(source)
        self.made(args, kwargs, out)
        if isinstance(source, Tensor) and isinstance(out, Tensor):
            self.blocks.power(source, out)
        if known is not None and known.scored is not None:
            self.facts.note(out, replace(self.facts.of(out) or NOTHING, scored=scores.POWER))

    def quotient(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A quotient, perhaps of exponentials and a number for each query."""
        source = args[0] if args else kwargs.get("input")
        known = self.facts.of(source)
        self.factored_quotient(args, out)
        self.made(args, kwargs, out)
        after = self.facts.of(out)
        if known is None or after is None or known.scored is None or not isinstance(source, Tensor):
            return
        each = len(args) > 1 and scores.for_each_row(args[1], source)
        scored = scores.QUOTIENT if each and known.scored == scores.POWER else known.scored
        self.facts.note(out, replace(after, scored=scored))

    def one_hot(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """one_hot of the keys with the largest scores."""
        picked.one_hot(self.facts, args[0] if args else kwargs["tensor"], out)

    def scattered(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """scatter(zeros, dim, index, value), in place or not."""
        given = masking.arguments(args, kwargs, ("input", "dim", "index", "src"))
        picked.put_back(self.facts, given, out)
        if given["dim"] in (-1, out.dim() - 1) and masking.constant(given.get("src", given.get("value"))) is not None:
            picked.one_hot(self.facts, given["index"], out)

    def largest(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """argmax or max along an axis: perhaps the index of a key."""
        picked.largest(self.facts, args, kwargs, out, self.keys.of_weights)

    # --- what passes them on

    def passed(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """A cast, a copy, a reshape, a difference with the largest score."""
        if args and isinstance(args[0], Tensor):
            self.facts.pass_on(args[0], out)
            self.results.pass_on(args[0], out)
            self.blocks.passed(args[0], out)

    def dropped(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """A dropout: the weights are shown as they were before."""
        known = self.facts.of(args[0]) if args else None
        self.results.pass_on(args[0] if args else None, out)
        if known is None or out is args[0] or not (known.made or known.origin is not None):
            return
        source = args[0].detach()
        changed = not torch.equal(source, out.detach())
        clean = known.clean if known.clean is not None else source if changed else None
        self.facts.pass_on(args[0], out, replace(known, clean=clean))

    def masked(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """masked_fill(x, mask, value), in place or not."""
        given = masking.arguments(args, kwargs, ("input", "mask", "value"))
        source = given["input"] if "input" in given else given.get("self")
        known = masking.filled(self.facts.of(source), given["mask"], given["value"], out.shape)
        if known is not None:
            self.facts.note(out, known)

    def chosen(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """where(condition, a, b), one of both a constant that forbids."""
        given = masking.arguments(args, kwargs, ("condition", "input", "other"))
        if len(given) < 3 or not isinstance(out, Tensor) or not isinstance(given["condition"], Tensor):
            return
        condition, one, other = given["condition"].bool(), given["input"], given["other"]
        for source, fill, mask in ((one, other, ~condition), (other, one, condition)):
            known = masking.filled(self.facts.of(source), mask, fill, out.shape)
            if known is not None and known.worth:
                self.facts.note(out, replace(known, features=0))
                return

    def lower(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """tril(x, diagonal): zeros above a diagonal."""
        masking.triangle(self.facts, torch.tril, masking.arguments(args, kwargs, ("input", "diagonal")), out)

    def upper(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """triu(x, diagonal): zeros below a diagonal."""
        masking.triangle(self.facts, torch.triu, masking.arguments(args, kwargs, ("input", "diagonal")), out)

    def assigned(self, args: Args, _kwargs: Kwargs, _out: Any) -> None:
        """scores[mask] = −∞."""
        target, at, value = args[:3]
        if isinstance(at, Tensor) and at.dtype == torch.bool and at.shape == target.shape:
            known = masking.filled(self.facts.of(target), at, value, target.shape)
            if known is not None:
                self.facts.note(target, known)

    def added(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A sum: one of both may be a mask."""
        if not isinstance(out, Tensor) or not out.is_floating_point() or len(args) < 2:
            return
        self._plus(args[0], masking.times(args[1], kwargs.get("alpha", 1)), out)

    def subtracted(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A difference: of scores and their largest, or with a mask of large numbers."""
        if isinstance(out, Tensor) and out.is_floating_point() and len(args) > 1:
            other = args[1]
            known = self.facts.of(other)
            weights = known is not None and known.origin is not None
            plain = isinstance(other, Tensor) and (other.requires_grad or other.dim() < 1 or weights)
            times = -kwargs.get("alpha", 1)
            self._plus(args[0], other if plain or not isinstance(other, Tensor) else other.detach() * times, out)
            largest.subtracted(self.facts, args[0], other, out)

    def _plus(self, one: Any, two: Any, out: Tensor) -> None:
        if self.pieces.sums:
            found = self.pieces.plus(one, two, out)
            if found is not None:
                self.weighs(found)
        if self._several(one, two, out):
            return
        for source, mask in ((one, two), (two, one)):
            known = self.facts.of(source)
            if not isinstance(source, Tensor):
                continue
            after = masking.added(known, mask, out)
            if after is not known and after is not None:
                self.facts.note(out, masking.moved(after, source, out))
                return
            if known is not None:
                self.facts.pass_on(source, out, known)
                if (known.scored is not None or known.unclear) and source.shape == out.shape:
                    return

    def _several(self, one: Any, two: Any, out: Tensor) -> bool:
        """Note a sum or difference of two softmaxes of one shape, or of two parts of one: whether it is one."""
        known = [self.facts.of(part) for part in (one, two)]
        origins = [part.origin for part in known if part is not None and part.origin is not None]
        if len(origins) < 2 or one.shape != two.shape:
            return False
        if origins[0] is origins[1] and one.numel() >= math.prod(origins[0].shape):
            return False
        parts = tuple(dict.fromkeys(part for one in origins for part in (one.parts or (one,))))
        if any(part.kind != "softmax" for part in parts):
            return False
        masks = [part.masked.expand(out.shape) for part in known if part is not None and part.masked is not None]
        both = masks[0] & masks[1] if len(masks) == 2 else None
        first = origins[0]
        origin = Origin("several", first.place, first.module, tuple(out.shape), first.axis, parts=parts)
        self.facts.note(out, Facts(masked=both, origin=origin))
        return True

    def multiplied(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A product: with a mask of zeros and ones; or of weights and values, which a sum follows."""
        if len(args) < 2 or not isinstance(out, Tensor) or not out.dim():
            return
        left, right = args[0], args[1]
        if self.divided(left, right, out, by_product=True) or self.divided(right, left, out, by_product=True):
            return
        if is_outer(left, right):
            self._remember(left, right, out)
        for source, other in ((left, right), (right, left)):
            known = self.facts.of(source)
            if known is not None and known.scored is not None and known.origin is None and isinstance(source, Tensor):
                self._of_scores(known, source, other, out)
            elif known is not None and known.worth and isinstance(source, Tensor):
                weights = known.made or known.origin is not None
                # A factor that makes more entries of the weights is values, whose first ones are often all 0.
                mask = weights and source.shape == out.shape and masking.zeros_and_ones(other)
                after = masking.multiplied(known, other, out) if mask else known
                if mask:
                    self.products.pop(id(out), None)  # its sum is what the weights are divided by, not one of values
                if not isinstance(other, Tensor) or other.dim() == 0 or mask:
                    self.facts.pass_on(source, out, after)
                elif weights:
                    self._multiplies(known, left, right, out)
                    self._scaled(known, source, other, out)

    def _of_scores(self, known: Facts, source: Tensor, other: Any, out: Tensor) -> None:
        """A product of scores, or of weights made of them, with a decay, a mask, one over a sum; or values."""
        if isinstance(other, Tensor) and other.dim():
            self._remember(source, other, out)
        if source.shape != out.shape:
            return
        fixed = isinstance(other, Tensor) and other.dim() > 1 and not other.requires_grad
        values = other.detach() if fixed else None
        mask = values is not None and bool(((values == 0) | (values == 1)).all())
        each = not mask and scores.for_each_row(other, source)
        scored = scores.QUOTIENT if each and known.scored == scores.POWER else known.scored
        if values is not None and not each and bool((values == 0).any()):
            known = replace(known, masked=masking.union(known.masked, values == 0, out.shape))
        self.facts.pass_on(source, out, replace(known, scored=scored))

    def _multiplies(self, known: Facts, left: Any, right: Any, out: Tensor) -> None:
        if known.origin is not None and not known.origin.reason:
            piece = any(isinstance(one, Tensor) and self.facts.whole(one) is not None for one in (left, right))
            same = left.shape == right.shape
            known.origin.reason = judging.GATE if same else judging.PIECES if piece else judging.SCALED
        self._remember(left, right, out)
        for piece, value in ((left, right), (right, left)):
            if isinstance(piece, Tensor) and isinstance(value, Tensor):
                self.pieces.product(piece, value, out)

    def _scaled(self, known: Facts, source: Tensor, other: Tensor, out: Tensor) -> None:
        """A softmax times as many other numbers (a window around a position, Luong et al. 2015, equation 10) may still
        be weights of what is summed next; that of a gate is not."""
        first, factor = known.origin, self.facts.of(other)
        weighs = factor is not None and factor.origin is not None
        if first is None or first.kind != "softmax" or source.shape != out.shape or weighs:
            return
        origin = Origin(
            "scaled", first.place, first.module, tuple(out.shape), first.axis, first.features, first.fixed,
            parts=(first,),
        )  # fmt: skip
        self.facts.note(out, Facts(masked=known.masked, origin=origin))

    def layer(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A linear layer: its last axis has a weight of its own for each position."""
        weight = kwargs.get("weight", args[1] if len(args) > 1 else None)
        if isinstance(out, Tensor) and out.dim():
            known = self.facts.of(args[0]) if args else None
            self.results.pass_on(args[0] if args else kwargs.get("input"), out)
            ends = None if known is None else known.ends
            if known is not None and known.origin is not None:
                known.origin.reason = known.origin.reason or judging.LAYER
            scored = self._additive(out, weight) if isinstance(weight, Tensor) else None
            given = self.facts.given(args[0]) if args else 0
            self.facts.note(
                out, Facts(features=out.shape[-1], weight=id(weight), ends=ends, scored=scored, given=given)
            )

    def mapped(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """A function of each position by itself: what was put together is still known."""
        known = self.facts.of(args[0]) if args else None
        if known is None or not isinstance(out, Tensor):
            return
        if known.scored is not None:
            self.facts.note(out, replace(known, scored=scores.after_function(known.scored)))
        elif known.ends is not None:
            self.facts.note(out, Facts(ends=known.ends))

    def padded(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """pad(x, (…, 1, n)): zeros in place of a first key."""
        given = masking.arguments(args, kwargs, ("input", "pad", "mode", "value"))
        pads, zeros = tuple(given["pad"]), not given.get("value") and given.get("mode", "constant") == "constant"
        if zeros and out.dim() == 3 and len(pads) == 4 and pads[:3] == (0, 0, 1) and out.is_floating_point():
            self.facts.note(out, Facts(ends=of_keys(self.selected, out, 1, fixed=True)))

    def stacked(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """stack or cat: of results of layers with different weights, or of one layer at several positions."""
        given = kwargs.get("tensors", args[0] if args else ())
        parts = [
            part for part in given if part.numel()
        ]  # a cache of keys begins as a tensor (0,) to which they are added
        known = [self.facts.of(part) for part in parts]
        weights = {one.weight for one in known if one is not None and one.weight}
        if len(parts) < 2:
            return
        dim, stacked = kwargs.get("dim", args[1] if len(args) > 1 else 0), out.dim() > parts[0].dim()
        ends = of_parts(self.selected, parts, dim % out.dim(), stacked, out) if isinstance(dim, int) else None
        if ends is not None or len(weights) == len(parts):
            self.facts.note(out, Facts(experts=len(weights) == len(parts), ends=ends))

    def routed(self, args: Args, _kwargs: Kwargs, _out: Any) -> None:
        """topk of weights."""
        known = self.facts.of(args[0]) if args else None
        if known is not None and known.origin is not None:
            known.origin.reason = judging.ROUTED


def _of_outer(place: str, module: str) -> str:
    """The place of the module in which a softmax module is."""
    return place.rpartition(".")[0] or place if module in ("Softmax", "Softmin", "Softmax2d") else place
