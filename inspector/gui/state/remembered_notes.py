"""Notes that wait for the end of a run, among the settings from when they were written until a capture has them.

A window may be killed, and several windows have the same settings: each reads what is there now before it changes that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inspector.gui.state.settings import Settings
from inspector.records import BadRecordError, Note, Noted, decode, encode
from inspector.records.json_text import read_json

KEY = "waiting notes"
"""Where they are among the settings, one in a line."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The folder of the capture, what the note is about, its text, when it was written (0: an earlier version did not
    say so), and of which run the capture is ("": the same), since another one may have its place by then."""

    path: Path
    where: Noted
    text: str
    written: float = 0.0
    run: str = ""


class Remembered:
    """Those of all windows that have the same settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._safe: set[Pending] = set()

    def all(self) -> list[Pending]:
        """What is remembered now."""
        self._settings.change_text(KEY, lambda text: text)
        found = [note for line in self._settings.text(KEY).split("\n") if (note := decoded(line)) is not None]
        self._safe |= set(found)
        return found

    def add(self, notes: Sequence[Pending]) -> str:
        """Remember them too: why that cannot be, as a sentence; "" where it is done."""
        lines = [encoded(one) for one in notes]
        self._settings.change_text(KEY, lambda text: _joined([*text.split("\n"), *lines]))
        why = self._settings.not_written()
        if not why:
            self._safe |= {_absolute(one) for one in notes}
        return why

    def drop(self, notes: Iterable[Pending]) -> None:
        """They do not wait any more. A line that cannot be read stays: a later version may have written it."""
        if gone := {_absolute(one) for one in notes}:
            self._safe -= gone
            self._settings.change_text(
                KEY, lambda text: _joined(line for line in text.split("\n") if decoded(line) not in gone)
            )

    def has(self, note: Pending) -> bool:
        """Whether a note still waits: another window may have settled it."""
        return _absolute(note) in self.all()

    def unsafe(self, notes: Iterable[Pending]) -> list[Pending]:
        """Those that could not be written among the settings: they are lost with the window."""
        return [one for one in notes if _absolute(one) not in self._safe]


def encoded(note: Pending) -> str:
    """A note as one line of ASCII, whatever bytes the name of its folder has."""
    record = encode(Note(note.where, note.text, note.written)).decode("utf-8", "surrogatepass")
    return json.dumps({"path": str(_absolute(note).path), "run": note.run, "note": record})


def decoded(line: str) -> Pending | None:
    """A note of a line, also of earlier versions (path, tab, record); None where it has none."""
    try:
        found = read_json(line)
        path, run, record = found["path"], found["run"], found["note"]
    except (ValueError, TypeError, KeyError):
        path, _, record = line.partition("\t")
        run = ""
    try:
        note = decode(record)
    except (BadRecordError, TypeError, AttributeError):
        return None
    if not (isinstance(note, Note) and isinstance(path, str) and path and isinstance(run, str)):
        return None
    return Pending(Path(path), note.where, note.text, note.written, run)


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(dict.fromkeys(line for line in lines if line))


def _absolute(note: Pending) -> Pending:
    return replace(note, path=Path(os.path.abspath(note.path)))  # noqa: PTH100 - links stay as they are
