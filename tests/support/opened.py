"""A window as a person opens it, closed again whatever a test does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from in_process_worker import InProcessWorker
from PySide6.QtCore import qInstallMessageHandler

from inspector.gui.app import begin, make_window
from inspector.gui.window.main_window import Window


@contextmanager
def opened(qtbot: Any, *, process: bool = False, background: bool = True, overview: bool = False) -> Iterator[Window]:
    """The window, begun with nothing open; the handlers that it installs are taken off again.

    Its workers are threads of this process; with `process` they are processes, as a user has them. Without `background`
    what a run has left is computed only where it is asked for: most of a test's time where nothing of it is looked at.
    Without `overview` what is opened is shown in the panels that are in front, as somebody has it who switched that off.
    """
    hooks = sys.excepthook
    with pytest.MonkeyPatch.context() as patch:
        if not process:
            patch.setattr("inspector.gui.app.WorkerProcess", InProcessWorker)
        window = make_window()
        qtbot.addWidget(window)
        if not background:
            window.session.background.budget = -1.0  # not even what costs nothing
        window.choose_overview(on=overview)
        window.show()
        begin(window, [], demo=False)
        sys.excepthook = hooks
        yield window
        window.close()
        window.session.wait_for_end()  # a thread that works on would meet the next test
    qInstallMessageHandler(None)


def needs_process(request: pytest.FixtureRequest) -> bool:
    """Whether a test asks for a worker that can be killed, or hangs."""
    return request.node.get_closest_marker("process") is not None


def finish(window: Window, qtbot: Any) -> None:
    """Wait until nothing runs any more."""
    waiting = ("", "Opening", "Running", "Cancelling")
    qtbot.waitUntil(
        lambda: not window.session.running and window.session.sentence.partition(" ")[0] not in waiting, timeout=60_000
    )
    qtbot.waitUntil(lambda: window.session.background.idle, timeout=60_000)
    qtbot.wait(60)
