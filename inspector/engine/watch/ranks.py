"""Several processes that train one model: what each measured is put together by one collective a recorded iteration."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.engine.watch.measure import Measure, Moment


class Ranks:
    """One process alone."""

    def share(self, moment: Moment, following: int, measures: Sequence[Measure]) -> int:
        """Complete the sums of a recorded iteration; returns the iteration that all record next."""
        return following
