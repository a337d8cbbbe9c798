"""Notes of a person in a capture: read from its index, and appended to that of a run that has ended.

Nothing else in the capture changes: a note is one more row, after those of the run, and no number is touched.
"""

from __future__ import annotations

import os
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.capture.in_turn import in_turn
from inspector.capture.layout import INDEX, MAJOR, CaptureError
from inspector.capture.reader import Capture
from inspector.capture.target import in_use
from inspector.capture.writer import Writer
from inspector.records import Note, Noted, encode
from inspector.records.note import MOST_CHARACTERS

MARK = " #"
"""Between the name of a run with its time, and what tells it from another one of that name and time."""


def notes(view: Any) -> list[Note]:
    """The notes of an open capture as they are now, in the order in which they were first written; a log has none."""
    found: dict[float, Note] = {}
    for number, note in enumerate(one for one in getattr(view, "notes", ()) if isinstance(one, Note)):
        if not note.of:
            found[note.written if note.written not in found else -number - 1.0] = note
        elif note.of in found and note.text:
            found[note.of] = replace(found[note.of], text=note.text)
        else:
            found.pop(note.of, None)
    return list(found.values())


def add_note(capture: Any, where: Noted, text: str) -> Note:
    """Append a note to the capture that is open for reading; it is read from there as soon as it is refreshed.

    Raises CaptureError where that cannot be: the text is empty or too long, the capture is packed, read-only, of an
    older format, being written, or no capture at all (a log of another tool). Then nothing has changed.
    """
    return _append(capture, Note(where, checked(text), time.time()))


def add_once(capture: Any, note: Note) -> None:
    """Append a note that was written earlier, unless the capture has it: another process may append the same.

    Raises CaptureError as `add_note`.
    """
    _append(capture, note, once=True)


def run_of(capture: Any) -> str:
    """Of which run a capture is. Its folder would not tell: another run may have taken that, and a copy has another.

    Nor does its name, which a script may give to several runs: how the run was begun is in it, and its first page.
    """
    start = capture.start
    begun = encode(replace(start, places=()))  # which may come in several pieces
    return f"{start.run} {start.created!r}{MARK}{zlib.crc32(begun):08x}/{capture.first_page}"


def is_of_run(capture: Any, run: str) -> bool:
    """Whether a capture is of a run that `run_of` told, here or in an earlier version, which had the name and the time
    alone. Of a run that had no page yet its first one says nothing."""
    name, _, told = run.rpartition(MARK) if MARK in run else (run, "", "")
    own, _, marks = run_of(capture).rpartition(MARK)
    (begun, _, page), (own_begun, _, own_page) = told.partition("/"), marks.partition("/")
    return name == own and (not told or begun == own_begun) and (not page or not own_page or page == own_page)


def checked(text: str) -> str:
    """What is kept of a note that somebody wrote. Raises CaptureError where it is empty or too long."""
    if not (kept := text.strip()):
        raise CaptureError("A note has at least one character.")
    return _not_too_long(kept)


def change_note(capture: Any, note: Note, text: str) -> Note:
    """Give a note of the capture other words; without any it is removed. What it said stays in the index, unread.

    Raises CaptureError as `add_note`, and where the capture has no such note.
    """
    if not any(one.written == note.written and one.where == note.where for one in notes(capture)) or not note.written:
        raise CaptureError("There is no such note: it was removed, or belongs to another capture.")
    return _append(capture, Note(note.where, text.strip(), time.time(), of=note.written))


def _append(capture: Any, note: Note, *, once: bool = False) -> Note:
    _not_too_long(note.text)
    if why := why_no_notes(capture):
        raise CaptureError(why)
    with Writer(capture.path, capture.start, again=True) as writer:
        if once:  # no other process writes from here on
            capture.refresh()
        if not (once and _has(capture, note)):
            writer.write(note if note.written else replace(note, written=time.time()))
    return note


def _has(capture: Any, note: Note) -> bool:
    """Whether it was written there, whatever it says now."""
    same = (one for one in capture.notes if one.where == note.where and one.text == note.text and not one.of)
    return any(one.written == note.written or not note.written for one in same)


def _not_too_long(text: str) -> str:
    if len(text) > MOST_CHARACTERS:
        raise CaptureError(f"A note has {len(text):,} characters; at most {MOST_CHARACTERS:,} are kept.")
    return text


def why_no_notes(capture: Any) -> str:
    """Why nothing can be noted in what is open now, as one sentence; "" where it can."""
    return why_not_added(capture, "note")


def why_not_added(capture: Any, what: str = "result") -> str:
    """Why nothing can be added now to the capture of a run, as one sentence; "" where it can."""
    if why := why_read_only(capture, what):
        return why
    if is_being_written(capture):
        return f"{capture.path.name} is being written; a {what} can be added when that has ended."
    return ""


def why_read_only(capture: Any, what: str = "note") -> str:
    """Why nothing can ever be noted in what is open, as one sentence; "" where it can, now or when a run has ended."""
    if not isinstance(capture, Capture):
        return f"{what.capitalize()}s are kept in captures: what is shown is none, and its files are left as they are."
    name, index = capture.path.name, capture.path / INDEX
    if not capture.path.exists():
        return f"{name} is no longer there: no {what} can be added."
    if not capture.path.is_dir():
        return f"{name} is a packed capture, which is read-only: {what}s are kept in the capture that it was made of."
    if capture.format_version < MAJOR:
        return f"{name} has format {capture.format_version}, which is read-only: no {what} can be added."
    if not (os.access(index, os.W_OK) and os.access(capture.path, os.W_OK)):
        return f"{name} is read-only: no {what} can be added."
    return ""


def is_being_written(capture: Any) -> bool:
    """Whether a process that is alive writes the capture."""
    return isinstance(capture, Capture) and is_written_at(Path(capture.path))


def is_written_at(path: Path) -> bool:
    """Whether a process that is alive writes the capture in a folder, which is not opened for that."""
    return path.is_dir() and in_use(path / INDEX)


def would_wait(path: Path) -> bool:
    """Whether a note in the capture in a folder would have to wait: it is being written, or a writer begins or ends,
    which one that was stopped may do for long."""
    if not path.is_dir():
        return False
    with in_turn(path, 0.0) as alone:
        return not alone or is_written_at(path)
