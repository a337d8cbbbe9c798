"""Notes that wait for the end of a run outlive the window in which they were written.

When it closes, its own runs end, and their notes are written. What another process still writes (a training that is
watched), and what a full disk did not take, is remembered among the settings, and the next window writes it. Where the
settings cannot be written either, the window asks before it closes; where nobody can be asked (SIGTERM, Ctrl+C, the end
of a run that came after the question) they go to any folder that has room, and stderr says where.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from inspector.capture import CaptureError, write_atomically
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.plain_text import plain_box
from inspector.records import BadRecordError, Note, Noted, counted, decode, encode
from inspector.transport.terminal import complain

if TYPE_CHECKING:  # panels are imported when the window stands
    from inspector.gui.panel.overview.pending_notes import Pending
    from inspector.gui.panels.overview import Overview

KEY, MOST = "waiting notes", 200
"""Where they are among the settings, and how many are remembered: the latest."""
ELSEWHERE, DISCARD = "Save elsewhere…", "Discard"
FILE = "inspector-notes"


def take_waiting(settings: Settings, panel: Overview) -> None:
    """Hand what was remembered to an overview that has just been made."""
    if not (known := _read(settings)):
        return
    settings.set_text(KEY, "")
    panel.wait_for(known)


def may_close(window: QWidget, settings: Settings, panel: Overview) -> bool:
    """Whether the window may close: notes that wait are remembered now, and where they cannot be, it is asked what is
    to become of them. The answer may be that it stays open."""
    if not panel.pending.all:
        return True
    remembered = settings.text(KEY)
    _remember(settings, panel.pending.all)
    why = settings.not_written()
    settings.set_text(KEY, remembered)  # they are still here, and may be written before the end
    while why:
        chosen = _asked(window, panel.pending.all, why)
        if chosen is None:
            return False
        if not chosen:
            panel.pending.all = []
            return True
        why = _saved(Path(chosen), panel.pending.all)
        panel.pending.elsewhere = not why
    return True


def remember_waiting(settings: Settings, panel: Overview) -> None:
    """Write what can be written, and remember the rest; the window's worker has ended."""
    if not panel.pending.all:
        return
    panel.pending.write_all()
    if not panel.pending.all:
        return
    _remember(settings, panel.pending.all)
    if settings.not_written() and not panel.pending.elsewhere:
        complain(_rescued(panel.pending.all))


def _remember(settings: Settings, notes: Sequence[Pending]) -> None:
    left = [*_read(settings), *notes][-MOST:]
    settings.set_text(KEY, "\n".join(f"{path}\t{_line(Note(where, text))}" for path, where, text in left))


def _asked(window: QWidget, notes: Sequence[Pending], why: str) -> str | None:
    """The file to which they are to be saved, "" for nowhere; None where the window is to stay open."""
    it = "it" if len(notes) == 1 else "them"
    names = ", ".join(dict.fromkeys(path.name for path, _, _ in notes))
    said = f"{counted(len(notes), 'note')} may be lost: {names} cannot take {it} yet. {why}"
    box = plain_box(window, "inspector", f"{said} Save {it} elsewhere before the window closes?")
    box.setIcon(QMessageBox.Icon.Warning)
    box.setStandardButtons(QMessageBox.StandardButton.Cancel)
    elsewhere = box.addButton(ELSEWHERE, QMessageBox.ButtonRole.AcceptRole)
    discard = box.addButton(DISCARD, QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(elsewhere)
    box.exec()
    if box.clickedButton() is discard:
        return ""
    if box.clickedButton() is not elsewhere:
        return None
    path, _ = QFileDialog.getSaveFileName(window, "Save the notes", f"{FILE}.txt", "Text (*.txt)")
    return (path if Path(path).suffix else f"{path}.txt") if path else None


def _saved(path: Path, notes: Sequence[Pending]) -> str:
    """Why they could not be written to a file, "" where they were."""
    try:
        write_atomically(path, _as_text(notes).encode("utf-8", "replace"))
    except CaptureError as problem:
        return str(problem)
    return ""


def _rescued(notes: Sequence[Pending]) -> str:
    """Write them to the first folder that takes them; a sentence that says where, or has their words."""
    for folder in _folders():
        path = folder / f"{FILE}-{os.getpid()}.txt"
        with suppress(OSError):
            if folder.is_dir() and not os.path.lexists(path) and not _saved(path, notes):
                path.chmod(0o600)
                return f"Notes that could not be kept where they belong are in {path}."
    texts = "; ".join(f"{where.words}: {text}" for _, where, text in notes)
    return f"{counted(len(notes), 'note')} could not be kept anywhere: {texts}"


def _folders() -> Iterable[Path]:
    with suppress(OSError):  # none of the folders for temporary files can be written
        yield Path(tempfile.gettempdir())
    with suppress(RuntimeError):
        yield Path.home()
    yield from (Path("/var/tmp"), Path("/dev/shm"))
    with suppress(OSError):
        yield Path.cwd()


def _as_text(notes: Sequence[Pending]) -> str:
    """For reading: of each its capture, what it is about, and its words."""
    return "\n".join(f"{path}\n{where.words}\n{text}\n" for path, where, text in notes)


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
