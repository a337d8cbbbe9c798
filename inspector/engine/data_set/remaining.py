"""About how long the sequences that are left will take, from a group that was run as they will be."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from inspector.records import counted, duration

LONG_SECONDS = 3.0
"""Less than that is not told."""


@dataclass(slots=True)
class Remaining:
    """What is told once: `total` sequences in all, None where that is not known.

    Sequences that are left are taken to be as long as those that were run. Counter-example: a data set that is sorted
    by length takes longer, or shorter, than is told.
    """

    total: int | None
    done: int = 0
    told: bool = False
    seconds: float = 0.0
    """About what the sequences that were left then take, where that was found."""
    _since: float = field(default_factory=lambda: time.perf_counter())

    def ran(self, done: int, *, alike: bool) -> None:
        """So many have been read and run by now; `alike`: those since the last call as the rest will be."""
        now, more = time.perf_counter(), done - self.done
        if alike and more and self.total is not None and not self.seconds:
            self.seconds = (now - self._since) / more * max(0, self.total - done)
        self.done, self._since = done, now

    def words(self) -> str:
        """What is told, "" where nothing is, or was before."""
        if self.told or self.seconds < LONG_SECONDS or self.total is None:
            return ""
        self.told = True
        return f"The {counted(self.total, 'sequence', ',')} will take about {duration(self.seconds)} more."
