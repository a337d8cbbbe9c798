"""What one choice in a panel needs is imported after the start, in a thread: the choice does not wait for it."""

from __future__ import annotations

import subprocess
import sys

ASKED = "scipy.cluster.hierarchy"
WINDOW = f"""
import sys
from PySide6.QtCore import QTimer
from inspector.gui import app
from inspector.gui.state.session import Session
from inspector.gui.window import later_imports

app.has_display = lambda: True  # none is needed
later_imports.LATER_MS = {{wait}}
Session.start_worker = lambda session: None
plain, began = app.begin, []

def begin(window, *rest):
    plain(window, *rest)
    began.append("{ASKED}" in sys.modules)
    def look():
        if "{ASKED}" in sys.modules or {{wait}} > 1000:
            window.close_unasked()
    timer = QTimer(window, interval=50)
    timer.timeout.connect(look)
    timer.start()

app.begin = begin
code = app.run([], new_window=True)
print(code, began, "{ASKED}" in sys.modules)
"""


def printed(wait: int) -> str:
    """What a window prints at its end that imports so many milliseconds after its start."""
    done = subprocess.run(
        [sys.executable, "-c", WINDOW.format(wait=wait)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_similarity_is_imported_after_the_start_without_being_asked_for() -> None:
    assert printed(0) == "0 [False] True"


def test_a_window_that_closes_before_that_imports_nothing() -> None:
    assert printed(60_000) == "0 [False] False"
