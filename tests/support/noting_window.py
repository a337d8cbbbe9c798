"""A window in a process of its own that shows a capture which is being written, and in which a note waits.

    python noting_window.py DISK ANSWER

DISK is a small file system with the settings and `a.inspect`; it is filled to the last byte before the note is written.
A line on stdout says so. ANSWER is the button that is pressed when the window asks something, and its file's place.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from with_parent import ends_with_parent

from inspector.capture import Writer
from inspector.records import Frame, Noted, RunStart

LARGEST = 64 * 2**20
"""Bytes of a file system that may be filled: any other one is somebody's disk."""


def fill(disk: Path) -> None:
    """To the last byte, as another program does that goes on writing."""
    whole = os.statvfs(disk)
    if whole.f_blocks * whole.f_frsize > LARGEST:
        raise SystemExit(f"{disk} is on a file system of more than {LARGEST} bytes, which is not filled.")
    with (disk / "of another").open("ab", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue


def answer(button: str, file: str) -> None:
    """Press a button of each question, and choose a file where one is asked for."""
    from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox

    QFileDialog.getSaveFileName = staticmethod(lambda *_: (file, ""))  # type: ignore[method-assign]
    box: Any = QApplication.activeModalWidget()
    if isinstance(box, QMessageBox):
        sys.stdout.write(f"asked: {box.text()}\n")
        sys.stdout.flush()
        next(one for one in box.buttons() if one.text().replace("&", "") == button).click()


def writing(disk: Path) -> Writer:
    """A capture that is being written."""
    writer = Writer(disk / "a.inspect", RunStart(run="r", title="t"))
    writer.write(Frame(index=0))
    writer.flush()
    return writer


def noted(window: Any, disk: Path, button: str) -> bool:
    """Whether a note waits now and the disk is full; False while no capture is shown."""
    from PySide6.QtCore import QTimer

    overview = window.panels.made.get("overview")
    if overview is None or overview.capture is None:
        return False
    fill(disk)
    overview.write_note(Noted(frame=0), "two\nlines of some worth")
    sys.stdout.write("waiting\n")
    sys.stdout.flush()
    if button:
        QTimer.singleShot(0, window.close)
    if button == "Cancel":
        QTimer.singleShot(3000, window.close_unasked)
    return True


def main() -> None:
    """As the command opens it."""
    ends_with_parent()
    from PySide6.QtCore import QTimer

    from inspector.gui import app

    disk, button, file = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    writer = writing(disk)
    make, waits = app.make_window, []

    def made(python: str | None = None) -> Any:
        window = make(python)
        timer = QTimer(window, interval=50)
        timer.timeout.connect(
            lambda: answer(button, file) if waits else waits.extend([1] * noted(window, disk, button))
        )
        timer.start()
        return window

    app.make_window = made
    code = app.run([str(disk / "a.inspect")], new_window=True)
    sys.stdout.write(f"ended {code}, writing {writer.path.name}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
