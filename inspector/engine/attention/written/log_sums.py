"""Weights as exp(scores − logsumexp of them), with something beside them in that sum (a sink), so that rows sum to less
than 1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from inspector.engine.attention.written import scores
from inspector.engine.attention.written.facts import Facts
from inspector.engine.attention.written.gated_sums import GatedSums
from inspector.engine.attention.written.sums import NOTHING, Args, Kwargs


class LogSums(GatedSums):
    """What `GatedSums` sees, and scores minus the logarithm of a sum of their exponentials."""

    __slots__ = ()

    def log_summed(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """logsumexp(scores), and logaddexp of that and a sink."""
        known = [(self.facts.of(one) or NOTHING) for one in args[:2]]
        if any(one.scored is not None and one.origin is None for one in known):
            self._note_sum(out)

    def softened(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """softplus, of which logaddexp(sum, 0) may be written."""
        is_sum = bool(args) and self._is_sum(args[0])
        self.made(args, kwargs, out)
        if is_sum:
            self._note_sum(out)

    def _note_sum(self, out: Any) -> None:
        if isinstance(out, Tensor):
            self.facts.note(out, Facts(scored=scores.LOG_SUM, given=self.facts.given(out)))

    def _is_sum(self, tensor: object) -> bool:
        """Whether it is such a logarithm itself, and not something that was made of it (a bound of the scores, say, so
        that what is divided by it is divided again)."""
        known = self.facts.of(tensor)
        return known is not None and known.scored == scores.LOG_SUM and known.given == self.facts.given(tensor)

    def subtracted(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """scores − that."""
        known = self.facts.of(args[0]) or NOTHING
        share = len(args) > 1 and known.scored is not None and self._is_sum(args[1])
        super().subtracted(args, kwargs, out)
        if share and isinstance(out, Tensor) and scores.for_each_row(args[1], out):
            self.facts.note(out, replace(self.facts.of(out) or known, scored=scores.LOG_SHARE))

    def powers(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """exp of these is weights already, which nothing divides later."""
        known = self.facts.of(args[0] if args else kwargs.get("input"))
        super().powers(args, kwargs, out)
        if known is not None and known.scored == scores.LOG_SHARE and isinstance(out, Tensor):
            self.facts.note(out, replace(self.facts.of(out) or known, scored=scores.QUOTIENT))
