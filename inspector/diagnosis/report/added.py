"""What was added to a capture after its run: notes of persons, and results of cures that were tried."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inspector.analysis.cures import tried
from inspector.diagnosis.report.contents import Written
from inspector.records import Finding


def notes_of(view: Any) -> list[Written]:
    """The notes that a capture holds, in the order in which they were written; of a view without notes none."""
    found = []
    for note in getattr(view, "notes", ()):
        where = note.where
        found.append(Written(where.words, note.text, where.finding, where.place, note.written))
    return found


def tried_of(view: Any) -> list[str]:
    """What came of the cures that were tried, a sentence each, and how the copies were trained."""
    return [f"{one.sentence} ({one.method})" for one in tried(view)]


def split(notes: Iterable[Written], finding: Finding) -> tuple[Written, ...]:
    """The notes about one finding."""
    return tuple(note for note in notes if note.finding and (note.finding, note.place) == (finding.id, finding.place))
