"""Notes that wait for the end of a run outlive the window in which they were written.

Each is remembered among the settings as it begins to wait, and until its capture has it, so that the next window writes
it. When a window closes, its own runs end, and their notes are written; what another process still writes (a training
that is watched), and what a full disk did not take, stays remembered. Where the settings cannot be written either, the
window asks before it closes; where nobody can be asked (SIGTERM, Ctrl+C, the end of a run that came after the question)
they go to any folder that has room, and stderr says where. What was lost with its capture goes to stderr too.
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
from inspector.gui.state.remembered_notes import Pending, Remembered
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.plain_text import plain_box
from inspector.records import counted
from inspector.transport.terminal import complain

if TYPE_CHECKING:  # panels are imported when the window stands
    from inspector.gui.panels.overview import Overview

ELSEWHERE, DISCARD = "Save elsewhere…", "Discard"
FILE = "inspector-notes"


def take_waiting(settings: Settings, panel: Overview) -> None:
    """Hand what is remembered to an overview that has just been made; it stays remembered until it is written."""
    panel.wait_for(_remembered(settings, panel).all())


def may_close(window: QWidget, settings: Settings, panel: Overview) -> bool:
    """Whether the window may close: where notes that wait cannot be remembered, it is asked what is to become of them.
    The answer may be that it stays open."""
    pending, remembered = panel.pending, _remembered(settings, panel)
    unsafe = remembered.unsafe(pending.all)
    why = remembered.add(unsafe) if unsafe else ""
    while why:
        chosen = _asked(window, unsafe, why)
        if chosen is None:
            return False
        if not chosen:
            remembered.drop(unsafe)
            pending.all = [one for one in pending.all if one not in unsafe]
            return True
        why = _saved(Path(chosen), unsafe)
        pending.elsewhere = not why
    return True


def remember_waiting(settings: Settings, panel: Overview) -> None:
    """Write what can be written, and remember the rest; the window's worker has ended. What the window has said to be
    lost is not said by the next one again."""
    pending, remembered = panel.pending, _remembered(settings, panel)
    said = list(pending.lost)
    pending.write_all()
    if pending.lost:
        complain(f"The capture of {counted(len(pending.lost), 'note')} is gone: {_in_a_line(pending.lost)}")
    remembered.drop(said)
    unsafe = remembered.unsafe(pending.all)
    if unsafe and remembered.add(unsafe) and not pending.elsewhere:
        complain(_rescued(unsafe))


def _remembered(settings: Settings, panel: Overview) -> Remembered:
    if panel.pending.remembered is None:
        panel.pending.remembered = Remembered(settings)
    return panel.pending.remembered


def _asked(window: QWidget, notes: Sequence[Pending], why: str) -> str | None:
    """The file to which they are to be saved, "" for nowhere; None where the window is to stay open."""
    it = "it" if len(notes) == 1 else "them"
    names = ", ".join(dict.fromkeys(one.path.name for one in notes))
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
    return f"{counted(len(notes), 'note')} could not be kept anywhere: {_in_a_line(notes)}"


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
    return "\n".join(f"{one.path}\n{one.where.words}\n{one.text}\n" for one in notes)


def _in_a_line(notes: Sequence[Pending]) -> str:
    return "; ".join(f"{one.where.words}: {one.text}" for one in notes)
