"""Functions that sum values with weights inside, which are not followed: the reason says which one it was."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from inspector.engine.attention.written.facts import Facts
from inspector.engine.attention.written.log_sums import LogSums
from inspector.engine.attention.written.sums import Args, Kwargs

INSIDE = "{} weighs and sums values with it inside, which is not followed, so there is no map"
SPARSE = "it is made a sparse tensor, whose products are not followed, so there is no map"


class Unfollowed(LogSums):
    """What `LogSums` sees, and which function read a softmax whose sums are not seen."""

    __slots__ = ()

    def bagged(self, args: Args, kwargs: Kwargs, _out: Any) -> None:
        """embedding_bag(…, per_sample_weights=weights)."""
        self._read_by("embedding_bag", [*args[2:], *kwargs.values()])

    def convolved(self, args: Args, _kwargs: Kwargs, _out: Any) -> None:
        """conv1d(values, weights), or of weights with a kernel."""
        self._read_by("a convolution", args[:2])

    def made_sparse(self, args: Args, _kwargs: Kwargs, _out: Any) -> None:
        """weights.to_sparse()."""
        known = self.facts.of(args[0]) if args else None
        if known is not None and known.origin is not None:
            known.origin.reason = known.origin.reason or SPARSE

    def copied(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """repeat_interleave and repeat: of which softmax it is, for what reads it."""
        known = self.facts.of(args[0]) if args else None
        if known is not None and known.origin is not None and isinstance(out, Tensor) and self.facts.of(out) is None:
            self.facts.note(out, Facts(repeats=known.origin))

    def _read_by(self, name: str, given: Any) -> None:
        for one in given:
            known = self.facts.of(one)
            origin = None if known is None else known.origin or known.repeats
            if origin is not None:
                origin.reason = origin.reason or INSIDE.format(name)
