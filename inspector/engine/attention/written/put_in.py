"""Masks that a function of several tensors puts in, entry by entry: minimum, clamp, lerp, masked_scatter, where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from inspector.engine.attention.written import masking, scores, unreached
from inspector.engine.attention.written.joined import PutTogether
from inspector.engine.attention.written.sums import NOTHING, Args, Kwargs


class PutIn(PutTogether):
    """What `PutTogether` sees, with large negative numbers that are taken out of another tensor."""

    __slots__ = ()

    def replaced(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """minimum, maximum, lerp and the like: of the scores, and of what takes their place."""
        self._put([*args, *kwargs.values()], out, passing=True)

    def _put(self, arguments: list[Any], out: Any, *, passing: bool) -> None:
        """Note what was put in; `passing`: what is known of the scores is known of the result, too."""
        if not isinstance(out, Tensor) or not out.is_floating_point() or not out.dim() or out.is_meta:
            return
        given = [one for one in arguments if isinstance(one, Tensor)]
        source = self._scores_among(given, out)
        known = None if source is None else self.facts.of(source)
        if source is None or (known is not None and known.origin is not None):
            return
        masked = masking.put_in(known, source, [one for one in given if one is not source], out)
        if masked is not None or (passing and known is not None):
            before = known or NOTHING
            scored = scores.after_function(before.scored)
            self.facts.note(out, replace(before, masked=masked, scored=scored, features=0))

    def _scores_among(self, given: list[Tensor], out: Tensor) -> Tensor | None:
        """That of which anything is known; else the one that has a graph, else the first of the result's shape."""
        alike = [one for one in given if one.shape == out.shape and one.is_floating_point()]
        known = [one for one in alike if (self.facts.of(one) or NOTHING).worth]
        return next(iter([*known, *(one for one in alike if one.requires_grad), *alike]), None)

    def clamped(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """clamp(scores, max=mask): also what a quotient or an exponential is."""
        self.made(args, kwargs, out)
        if sum(isinstance(one, Tensor) for one in (*args, *kwargs.values())) < 2:
            return
        after = self.facts.of(out)
        if after is None or after.origin is not None:
            return
        self.replaced(args, kwargs, out)
        masks = self.facts.of(out)
        self.facts.note(out, replace(after, masked=None if masks is None else masks.masked))

    def largest(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """max of two tensors too."""
        two = (len(args) > 1 and isinstance(args[1], Tensor)) or "other" in kwargs
        (self.replaced if two else super().largest)(args, kwargs, out)

    def chosen(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """where(may, scores, numbers), whose numbers need not be one."""
        super().chosen(args, kwargs, out)
        if (
            len(args) == 3
            and all(isinstance(one, Tensor) for one in args)
            and (self.facts.of(out) or NOTHING).masked is None
        ):
            self._put(list(args), out, passing=False)

    # --- a softmax that is written out

    def subtracted(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """scores − their largest: these are asked for masks before, since the largest one depends on all of them."""
        if len(args) > 1 and isinstance(args[0], Tensor) and scores.for_each_row(args[1], args[0]):
            self._ask(args[0], args[1])
        super().subtracted(args, kwargs, out)

    def powers(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """exp(scores)."""
        source = args[0] if args else kwargs.get("input")
        if isinstance(source, Tensor) and source.dim() > 1:
            self._ask(source)
        super().powers(args, kwargs, out)

    def _ask(self, source: Tensor, largest: Tensor | None = None) -> None:
        known = self.facts.of(source)
        low = unreached.low(source, None if known is None else known.masked)
        if low is None or (largest is not None and not bool((largest.detach() >= source.detach()).all())):
            return
        after, unclear = unreached.asked(known, source)
        if unclear or after is not known:
            self.facts.note(source, replace(after or NOTHING, unclear=unclear))
