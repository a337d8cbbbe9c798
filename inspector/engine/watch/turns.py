"""At which recorded iterations calls of modules and attention are read."""

from __future__ import annotations

from inspector.engine.watch.measure import Moment

APART = 4
"""Iterations from one at which modules are read to the next, in the preset "normal". Reading them costs more than all
numbers of the parameters of a small model: Python runs between kernels of the training, for each module. What lasts
for one iteration only may be missed; norms of gradients and updates, which tell of that, are of every recorded one."""


class Turns:
    """Iterations that are at least so many apart; all of them while `each` is set."""

    def __init__(self, apart: int) -> None:
        self._apart = apart
        self._last: int | None = None

    def has(self, moment: Moment, each: bool) -> bool:
        """Whether modules are read in an iteration; asked of accumulated passes again, with the same answer."""
        due = each or self._last is None or moment.iteration >= self._last + self._apart
        if due:
            self._last = moment.iteration
        return moment.iteration == self._last
