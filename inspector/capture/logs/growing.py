"""An array of numbers that grows at its end, packed: eight bytes a number, not a Python object each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
FIRST = 16


class Growing:
    """float64 numbers. A view that `view` handed out keeps its numbers when the end is cut and written again."""

    def __init__(self, values: Floats | None = None) -> None:
        self._room: Floats = np.empty(0) if values is None else values.astype(np.float64)
        self._count = len(self._room)
        self._shown = 0

    def __len__(self) -> int:
        return self._count

    def extend(self, values: Floats) -> None:
        """Append numbers."""
        stop = self._count + len(values)
        if stop > len(self._room) or self._count < self._shown:
            room = np.empty(max(FIRST, stop, self._count + self._count // 2))
            room[: self._count] = self._room[: self._count]
            self._room, self._shown = room, 0
        self._room[self._count : stop] = values
        self._count = stop

    def cut(self, count: int) -> None:
        """Keep the first numbers only."""
        self._count = min(self._count, count)

    def pad(self, count: int) -> None:
        """NaN up to a length."""
        if count > self._count:
            self.extend(np.full(count - self._count, np.nan))

    @property
    def now(self) -> Floats:
        """The numbers as they are now, to be read at once: what is cut may be overwritten."""
        return self._room[: self._count]

    def view(self) -> Floats:
        """The numbers so far, read-only."""
        self._shown = max(self._shown, self._count)
        found = self._room[: self._count]
        found.flags.writeable = False
        return found
