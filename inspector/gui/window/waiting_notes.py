"""Notes that wait for the end of a run outlive the window in which they were written.

When it closes, its own runs end, and their notes are written. What another process still writes (a training that is
watched) is remembered among the settings, and the next window writes it when that has ended.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.gui.state.settings import Settings
from inspector.records import BadRecordError, Note, Noted, decode, encode

if TYPE_CHECKING:  # panels are imported when the window stands
    from inspector.gui.panels.overview import Overview

KEY, MOST = "waiting notes", 200
"""Where they are among the settings, and how many are remembered: the latest."""


def take_waiting(settings: Settings, panel: Overview) -> None:
    """Hand what was remembered to an overview that has just been made."""
    if not (known := _read(settings)):
        return
    settings.set_text(KEY, "")
    panel.wait_for(known)


def remember_waiting(settings: Settings, panel: Overview) -> None:
    """Write what can be written, and remember the rest; the window's worker has ended."""
    if not panel.waiting:
        return
    panel.write_waiting()
    left = [*_read(settings), *panel.waiting][-MOST:]
    settings.set_text(KEY, "\n".join(f"{path}\t{_line(Note(where, text))}" for path, where, text in left))


def _line(note: Note) -> str:
    return encode(note).decode("utf-8", "surrogatepass")  # JSON: a line break of the text is escaped in it


def _read(settings: Settings) -> list[tuple[Path, Noted, str]]:
    found = []
    for line in settings.text(KEY).split("\n"):
        path, _, record = line.partition("\t")
        with suppress(BadRecordError):
            note = decode(record)
            if isinstance(note, Note) and path:
                found.append((Path(path), note.where, note.text))
    return found
