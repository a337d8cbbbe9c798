"""A window as a person opens it, closed again whatever a test does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from PySide6.QtCore import qInstallMessageHandler

from inspector.gui.app import begin, make_window
from inspector.gui.window.main_window import Window


@contextmanager
def opened(qtbot: Any) -> Iterator[Window]:
    """The window, begun with nothing open; the handlers that it installs are taken off again."""
    hooks = sys.excepthook
    window = make_window()
    qtbot.addWidget(window)
    window.show()
    begin(window, [], demo=False)
    sys.excepthook = hooks
    yield window
    window.close()
    qInstallMessageHandler(None)


def finish(window: Window, qtbot: Any) -> None:
    """Wait until nothing runs any more."""
    waiting = ("", "Opening", "Running", "Cancelling")
    qtbot.waitUntil(
        lambda: not window.session.running and window.session.sentence.partition(" ")[0] not in waiting, timeout=60_000
    )
    qtbot.wait(60)
