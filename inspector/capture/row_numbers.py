"""Missing rows of an index, detected from their numbers, which have no gap where no row was removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inspector.records import RowCounts

NOUNS = {
    "run": ("entry about the run", "entries about the run"), "channels": ("channel", "channels"),
    "frames": ("frame", "frames"), "pages": ("page", "pages"), "notes": ("note", "notes"),
}  # fmt: skip
"""Nouns for the rows of a table, singular and plural."""


class RowNumbers:
    """The numbers of the rows that were read, table by table."""

    def __init__(self) -> None:
        self._due: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self.begun = False
        """Whether it is known where the numbers begin."""
        self.ended = False
        """Whether it is known where the numbers of a run that has ended end."""

    def note(self, counts: RowCounts) -> None:
        """Note the writer's counts: first where the numbers begin, then how far they go."""
        if not self.begun:
            self._due.update(counts.first)
            self.begun = True
        else:
            self.ended = True
        self._last.update(counts.last)

    def follow(self, table: str, numbers: Iterable[int]) -> list[str]:
        """Note rows in their order; returns a message for each gap, and for each repeated or misplaced row."""
        said = []
        for number in numbers:
            due = self._due.get(table, number)
            if number > due:
                said.append(missing(table, due, number - 1))
            elif number < due:
                said.append(f"{NOUNS[table][0].capitalize()} {number} of the index is not where it was written.")
            self._due[table] = max(due, number + 1)
        return said

    def missing_at_the_end(self) -> Mapping[str, str]:
        """By table, the message about rows that the writer counted and that do not exist."""
        ends = {table: (self._due.get(table, last + 1), last) for table, last in self._last.items()}
        return {table: missing(table, due, last) for table, (due, last) in ends.items() if due <= last}


def missing(table: str, first: int, last: int) -> str:
    """The message about missing rows."""
    one, many = NOUNS.get(table, ("row", "rows"))
    if first == last:
        return f"1 {one} is missing from the index (number {first})."
    return f"{last - first + 1:,} {many} are missing from the index (numbers {first}–{last})."
