"""A process ends well after a program that reads the screen has asked it about widgets that paint themselves."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WIDGET = """
import sys
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget
from inspector.gui.widgets.described import InWords, describe_widgets

class Painted(InWords, QWidget):
    def value_in_words(self):
        return "3"

application = QApplication([])
window = QMainWindow()
if sys.argv[1] == "Qt first":
    QAccessible.queryAccessibleInterface(window)
describe_widgets()
painted = Painted(window)
said = QAccessible.queryAccessibleInterface(painted).text(QAccessible.Text.Value)
window.deleteLater()  # Qt's from now on: the interface is there when the application ends
print(said, flush=True)
"""


@pytest.mark.parametrize("first", ["Qt first", "factory first"])
def test_a_process_whose_widgets_were_read_ends_with_zero(first: str) -> None:
    """What has been freed is overwritten (glibc), so that no use of it goes unseen."""
    ended = subprocess.run(
        [sys.executable, "-c", WIDGET, first],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "MALLOC_PERTURB_": "165"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "3\n"), ended.stderr
