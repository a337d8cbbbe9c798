"""What tests of a window that opens models do and ask."""

from __future__ import annotations

from pathlib import Path

from opened import finish
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton

from inspector.gui.dialogs.model_dialog import OpenModelDialog
from inspector.gui.window.main_window import Window


def press_open(dialog: OpenModelDialog, qtbot: object) -> None:
    button = next(b for b in dialog.findChildren(QPushButton) if b.text().replace("&", "") == "Open")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def boxes(qapp: QApplication) -> list[QMessageBox]:
    return [w for w in qapp.topLevelWidgets() if isinstance(w, QMessageBox) and w.isVisible()]


def still_reads(window: Window, qtbot: object, kinds: list[str]) -> None:
    """The input bar, F5 and the title are those of the model that is open, and it runs."""
    assert window.session.subject == "char-elman"
    assert [window.input.kind.itemText(i) for i in range(window.input.kind.count())] == kinds
    window.activateWindow()  # shortcuts are those of the window in front
    qtbot.waitUntil(window.isActiveWindow, timeout=5000)
    qtbot.keyClick(window, Qt.Key.Key_F5)
    assert window.session.running and window.session.spec.value == "Alice"
    finish(window, qtbot)
    assert window.session.capture.labels("step") == tuple("Alice") and window.session.capture.status == "done"
    assert "Alice" in window.windowTitle()


def kinds_of(window: Window) -> list[str]:
    return [window.input.kind.itemText(i) for i in range(window.input.kind.count())]


def type_into(window: Window, qtbot: object, text: str) -> None:
    window.input.line.clear()
    qtbot.keyClicks(window.input.line, text)


def weights_folder(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(b"PK\x03\x04" if name.endswith(".pt") else b"{}")
    return folder
