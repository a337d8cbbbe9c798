"""Further ways of writing attention: products under other names, keys picked by an index, functions of each score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from inspector.engine.attention.written import judging, masking, picked, scores
from inspector.engine.attention.written.contraction import of_sum
from inspector.engine.attention.written.facts import Facts, Origin
from inspector.engine.attention.written.sums import NOTHING, Args, Kwargs
from inspector.engine.attention.written.unfollowed import Unfollowed

OF_ANY = (
    "entrywise", "logarithm", "inner", "vectors", "added_product", "looked_up", "averaged", "convolved", "made_sparse",
    "copied", "log_summed",
)  # fmt: skip
"""Handlers that look only where something is known of an argument."""


class OtherWays(Unfollowed):
    """What `ByHand` sees, and less common ways of the same."""

    __slots__ = ()

    def concerns(self, handler: Callable[..., None]) -> Callable[[Any, Any], bool] | None:
        """See ByHand."""
        own = getattr(handler, "__self__", None) is self
        name = handler.__name__ if own else ""
        if name in OF_ANY:
            return self._of_any
        if name == "summed":
            return lambda args, out: self._remembered(args, out) or self.facts.knows(args[:1])
        if name in ("indexed", "selected_rows"):
            before = super().concerns(handler)
            return lambda args, out: self._picked_by(args, out) or (before is not None and before(args, out))
        return super().concerns(handler)

    def _of_any(self, args: Any, _out: Any) -> bool:
        return self.facts.knows(args[:3])

    def _picked_by(self, args: Any, _out: Any) -> bool:
        key = args[1]
        return self.facts.knows((*key, *args[2:]) if type(key) is tuple else (key, *args[2:]))

    # --- products

    def inner(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """inner(a, b): sums of products along the last axes."""
        one, two = args[:2]
        self.tensordot((one, two, ([one.dim() - 1], [two.dim() - 1])), {}, out)

    def vectors(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """vecdot(a, b, dim): (a * b).sum(dim) of real numbers."""
        if self._any(*args[:2]) and not out.is_complex():
            self.consider(of_sum(args[0], args[1], (kwargs.get("dim", -1),), False, out))

    def chained(self, args: Args, _kwargs: Kwargs, out: Tensor) -> None:
        """multi_dot([a, b, c]): a product with the product of the others."""
        given = args[0] if isinstance(args[0], (list, tuple)) else args
        if len(given) > 1 and self._any(*given):
            rest = given[1] if len(given) == 2 else torch.linalg.multi_dot(list(given[1:]))
            self.product((given[0], rest), {}, out)

    def added_product(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """addcmul(sum, a, b): one more product of a loop over keys; addmv(0, matrix, vector)."""
        if len(args) < 3 or kwargs.get("value", 1) != 1 or kwargs.get("alpha", 1) != 1:
            return
        before, one, two = args[:3]
        if one.dim() == 2 and two.dim() == 1 and out.dim() == 1 and out.shape == one.shape[:1]:
            self.product((one, two), {}, out) if not bool(before.detach().any()) else None
            return
        piece = one * two
        self.multiplied((one, two), {}, piece)
        self.added((before, piece), {}, out)

    def layer(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """linear(weights, values): values that were computed are no layer."""
        weight = kwargs.get("weight", args[1] if len(args) > 1 else None)
        if isinstance(weight, Tensor) and not judging.is_parameter(weight) and weight.dim() == 2 and self._any(*args):
            self.product((args[0], weight.mT), {}, out)
        else:
            super().layer(args, kwargs, out)

    # --- what weights are made of

    def entrywise(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """A function of each score by itself. Of logarithms an exponential makes weights."""
        known = self.facts.of(args[0]) if args else None
        if known is None or not isinstance(out, Tensor) or out.shape != args[0].shape:
            return
        if known.scored is not None and known.origin is None:
            self.facts.note(out, replace(known, scored=scores.after_function(known.scored)))

    def logarithm(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """The logarithm of something positive that was made of scores, whose exponential is that again."""
        self.entrywise(args, kwargs, out)
        known = self.facts.of(out)
        if known is not None and known.scored == scores.FUNCTION:
            self.facts.note(out, replace(known, scored=scores.LOGARITHM))

    def powers(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """An exponential: of logarithms it is what these were of."""
        known = self.facts.of(args[0] if args else kwargs.get("input"))
        super().powers(args, kwargs, out)
        if known is not None and known.scored == scores.LOGARITHM:
            after = self.facts.of(out) or NOTHING
            self.facts.note(out, replace(after, scored=scores.FUNCTION))

    def sigmoid(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """A sigmoid of scores goes on as a function of them where it is multiplied by other numbers."""
        known = self.facts.of(args[0] if args else kwargs["input"])
        super().sigmoid(args, kwargs, out)
        after = self.facts.of(out)
        if known is not None and known.scored is not None and after is not None:
            self.facts.note(out, replace(after, scored=scores.after_function(known.scored)))

    def _scaled(self, known: Facts, source: Tensor, other: Tensor, out: Tensor) -> None:
        origin = known.origin
        if origin is not None and origin.kind == "sigmoid" and known.scored is not None and source.shape == out.shape:
            self.facts.note(out, Facts(masked=known.masked, scored=known.scored))
            return
        factor = self.facts.of(other)
        second = None if factor is None else factor.origin
        if second is not None and origin is not None and self._two_axes(origin, second, source, out):
            both = Origin("scaled", origin.place, origin.module, origin.shape, origin.axis, parts=(origin, second))
            self.facts.note(out, Facts(masked=known.masked, origin=both))
            return
        super()._scaled(known, source, other, out)

    def _two_axes(self, one: Origin, two: Origin, source: Tensor, out: Tensor) -> bool:
        """Whether a product is of softmaxes of one shape over its queries and over its keys."""
        kinds = one.kind == two.kind == "softmax" and one.shape == two.shape
        return kinds and one.axis != two.axis and source.shape == out.shape

    def summed(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A sum of weights over heads too."""
        super().summed(args, kwargs, out)
        self.averaged(args, kwargs, out)

    def averaged(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """mean(weights, dim) or a sum over another axis than that of the keys: one map of several heads."""
        known = self.facts.of(args[0]) if args else None
        origin = None if known is None else known.origin
        dims = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if known is None or origin is None or origin.kind != "softmax" or dims is None or not isinstance(out, Tensor):
            return
        count = args[0].dim()
        over = {one % count for one in ((dims,) if isinstance(dims, int) else dims)}
        if tuple(args[0].shape) != origin.shape or origin.axis in over or out.dim() not in (count, count - len(over)):
            return
        axis = origin.axis - (sum(one < origin.axis for one in over) if out.dim() < count else 0)
        masked = known.masked
        for one in sorted(over) if masked is not None else ():
            masked = masked.expand(args[0].shape).all(one, keepdim=True) if masked is not None else None
        if masked is not None:
            masked = masked.expand([1 if n in over else size for n, size in enumerate(args[0].shape)]).reshape(
                out.shape
            )
        mixed = Origin("mixed", origin.place, origin.module, tuple(out.shape), axis, parts=(origin,))
        self.facts.note(out, Facts(masked=masked, origin=mixed, own=known.own))

    def _plus(self, one: Any, two: Any, out: Tensor) -> None:
        super()._plus(one, two, out)
        for source, other in ((one, two), (two, one)):
            known, after = self.facts.of(source), self.facts.of(out)
            origin = None if known is None else known.origin
            if origin is None or origin.kind != "softmax" or after is None or after.origin is not origin:
                continue
            if isinstance(other, Tensor) and other.dim() > 1 and out.shape == source.shape:
                more = Origin("scaled", origin.place, origin.module, tuple(out.shape), origin.axis, parts=(origin,))
                self.facts.note(out, Facts(masked=known.masked if known else None, origin=more))

    def compared(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """scores == their largest: 1 at the key that has it."""
        if not isinstance(out, Tensor) or len(args) < 2 or not all(isinstance(one, Tensor) for one in args[:2]):
            return
        one, two = args[:2]
        sizes = list(zip(one.shape, two.shape, strict=False))
        each = one.dim() == two.dim() and sum(a != b for a, b in sizes) == 1 and all(b in (a, 1) for a, b in sizes)
        if each and one.is_floating_point():
            known = self.facts.of(one) or NOTHING
            masked = known.masked
            self.facts.note(out, Facts(made=True, masked=masked, own=self.keys.of_weights(one) or ""))

    def chosen(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """where(scores == their largest, 1, 0) too."""
        super().chosen(args, kwargs, out)
        given = masking.arguments(args, kwargs, ("condition", "input", "other"))
        known = self.facts.of(given.get("condition"))
        numbers = [masking.constant(given.get(name)) for name in ("input", "other")]
        if known is not None and known.made and numbers == [1.0, 0.0] and isinstance(out, Tensor):
            self.facts.note(out, known)

    # --- keys that an index picks

    def largest(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """argmax and max of scores; of ids they are no keys."""
        scored = args[0] if args else kwargs.get("input")
        if isinstance(scored, Tensor) and scored.is_floating_point():
            super().largest(args, kwargs, out)

    def routed(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """topk: of one it is the largest."""
        if (args[1] if len(args) > 1 else kwargs.get("k")) == 1:
            dim = kwargs.get("dim", args[2] if len(args) > 2 else -1)
            self.largest((args[0] if args else kwargs["input"], dim), {}, out.indices)
        super().routed(args, kwargs, out)

    def ordered(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """argsort, sort and argmin of scores, of which the first are taken."""
        whole = args[1] if len(args) > 1 else kwargs.get("dim", -1)
        indices = out if isinstance(out, Tensor) else getattr(out, "indices", None)
        if isinstance(whole, int) and isinstance(indices, Tensor):
            self.largest((args[0], whole), {}, indices)

    def selected_rows(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """index_select(values, dim, index) of hard attention too."""
        super().selected_rows(args, kwargs, out)
        given = masking.arguments(args, kwargs, ("input", "dim", "index"))
        self._hard_rows(given["input"], given["dim"], given["index"], out)

    def looked_up(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """embedding(index, values)."""
        given = masking.arguments(args, kwargs, ("input", "weight"))
        self._hard_rows(given["weight"], 0, given["input"], out)

    def indexed(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """values[index] too, and rows of the identity."""
        source, key = args[:2]
        super().indexed(args, kwargs, out)
        if isinstance(key, Tensor) and isinstance(out, Tensor):
            self._hard_rows(source, 0, key, out)

    def _hard_rows(self, source: Tensor, dim: int, index: Tensor, out: Tensor) -> None:
        known = self.facts.of(index)
        if known is None or known.origin is None or known.origin.kind != "hard":
            return
        if picked.is_identity(source, dim):
            picked.one_hot(self.facts, index, out)
        elif index.dim() == 1:
            self._picks(picked.rows(self.facts, source, dim, index, out))
