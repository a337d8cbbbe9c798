"""The arrays of a capture, each made of its rows when it is first asked for.

A capture of 50,000 frames has as many arrays of each channel, of which a window shows a few. Until then an array is the
rows of its pages as SQLite gave them: the collector need not look at such tuples, where it takes 0.1 s for the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from inspector.capture.assemble import Assembly
from inspector.capture.parsing import page_of
from inspector.records import Channel

Key = tuple[str, int]
"""(channel, frame)"""
Row = tuple[Any, ...]
"""Of a page, which was checked (`parsing.require_page`)."""

MOST_ROWS = 16
"""With so many pages an array is made at once, where the capture is opened: 10,000 pages of each of 30 channels would
hold up whoever asks for the extents of all, and there are few such arrays."""


class Arrays:
    """By (channel, frame), in the order of their first pages. `described` gives the channel that a row was written
    under, `empty` an array without pages."""

    def __init__(self, described: Callable[[int], Channel], empty: Callable[[Channel], Assembly]) -> None:
        self._described, self._empty = described, empty
        self._rows: dict[Key, Row | list[Row] | None] = {}
        """A row, or several; None for an array that is made."""
        self._made: dict[Key, Assembly] = {}

    def add(self, key: Key, row: Row) -> None:
        """One more page."""
        made = self._made.get(key)
        if made is not None:
            self._give(made, row)
            return
        before = self._rows.get(key)
        if before is None:
            self._rows[key] = row
        elif isinstance(before, list):
            before.append(row)
            if len(before) >= MOST_ROWS:
                self.get(key)
        else:
            self._rows[key] = [before, row]

    def get(self, key: Key) -> Assembly | None:
        """The array; None where it has no page."""
        found = self._made.get(key)
        rows = self._rows.get(key)
        if found is not None or rows is None:
            return found
        each = rows if isinstance(rows, list) else [rows]
        made = self._empty(self._described(each[0][1]))
        for row in each:
            self._give(made, row)
        self._made[key], self._rows[key] = made, None
        return made

    def _give(self, made: Assembly, row: Row) -> None:
        channel = self._described(row[1])
        if made.channel is not channel:
            made.describe(channel)
        made.add(page_of(row))

    def __getitem__(self, key: Key) -> Assembly:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[Key]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def is_made(self, key: Key) -> bool:
        """Whether it was asked for: of others nothing was read."""
        return key in self._made

    @property
    def made(self) -> Iterable[Assembly]:
        """Those that were asked for."""
        return self._made.values()
