"""At which recorded iterations calls of modules and attention are read."""

from __future__ import annotations

from inspector.engine.watch.measure import Moment

APART = 4
"""Iterations from one at which modules are read to the next, in the preset "normal". Reading them costs more than all
numbers of the parameters of a small model: Python runs between kernels of the training, for each module. What lasts
for one iteration only may be missed; norms of gradients and updates, which tell of that, are of every recorded one."""


FURTHER = 2
"""Times as far apart as at the beginning."""


class Turns:
    """Iterations that are at least so many apart; all of them while `each` is set. After so many of a `beginning` they
    are FURTHER times as far apart: what is to be seen at all is seen by then, and the rest is how it goes on."""

    def __init__(self, apart: int, beginning: int | None = None) -> None:
        self._apart, self._left = apart, beginning
        self._last: int | None = None

    def has(self, moment: Moment, each: bool) -> bool:
        """Whether modules are read in an iteration; asked of accumulated passes again, with the same answer."""
        due = each or self._last is None or moment.iteration >= self._last + self._apart
        if due and moment.iteration != self._last:
            self._last = moment.iteration
            self._count()
        return moment.iteration == self._last

    def _count(self) -> None:
        if self._left is not None:
            self._left -= 1
            if not self._left:
                self._apart, self._left = FURTHER * self._apart, None
