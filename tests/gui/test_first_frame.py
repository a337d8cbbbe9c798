"""What is seen first needs Qt alone, is there while the rest is imported, and goes when the window has come."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from inspector.gui.app import make_window
from inspector.gui.widgets.theme import DARK, LIGHT
from inspector.gui.window import first_frame

HEAVY = ("numpy", "pyqtgraph", "torch", "inspector.capture", "inspector.records", "inspector.gui.window.main_window")


@pytest.fixture
def alone(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that has a display and has not imported the window."""
    monkeypatch.delitem(sys.modules, "inspector.gui.app", raising=False)
    monkeypatch.setattr(first_frame, "has_display", lambda: True)
    collecting = gc.isenabled()
    yield
    first_frame.take_away()
    qapp.processEvents()
    if collecting:
        gc.enable()


def test_it_needs_qt_alone() -> None:
    code = (
        "import sys, inspector.gui.window.first_frame as first\nfirst.FirstFrame(first.LIGHT if first.the_application() "
        f"else None).grab()\nprint([name for name in {HEAVY} if name in sys.modules])"
    )
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


def test_widgets_are_described_before_there_is_any(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise Qt crashes as the program ends, where an interface was asked for before."""
    told: list[str] = []
    monkeypatch.setattr(first_frame, "describe_widgets", lambda: told.append("described"))
    assert first_frame.the_application() is qapp and told == ["described"]


@pytest.mark.usefixtures("alone")
def test_it_is_seen_while_modules_are_imported_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_to_import.py").write_text("raise ValueError('not here')")
    painted = threading.Event()
    (tmp_path / "slow_to_import.py").write_text(
        "import threading\nthread = threading.current_thread()\nimport sys\nsys.painted.wait(5)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "painted", painted, raising=False)
    monkeypatch.setattr(first_frame, "MODULES", ("slow_to_import", "broken_to_import", "never_asked_for"))
    begun: list[bool] = []
    monkeypatch.setattr(first_frame, "_begin_worker", lambda: begun.append("slow_to_import" not in sys.modules))
    real = first_frame.FirstFrame.paintEvent
    monkeypatch.setattr(first_frame.FirstFrame, "paintEvent", lambda self, event: (real(self, event), painted.set())[0])
    first_frame.import_behind_it()
    assert painted.is_set() and sys.modules["slow_to_import"].thread is not threading.current_thread()
    (frame,) = first_frame._frames
    assert begun == [True], "the worker begins before what the window needs is imported"
    assert (
        frame.isVisible()
        and not gc.isenabled()
        and not any(thread.name == "inspector-first-imports" for thread in threading.enumerate())
    )
    first_frame.take_away()
    assert not frame.isVisible() and not first_frame._frames
    monkeypatch.delitem(sys.modules, "slow_to_import")


def test_without_a_display_or_once_the_window_is_imported_there_is_none(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_frame, "MODULES", ("no_such_module",))
    monkeypatch.setattr(first_frame, "has_display", lambda: False)
    first_frame.import_behind_it()
    monkeypatch.setattr(first_frame, "has_display", lambda: True)
    monkeypatch.setitem(sys.modules, "inspector.gui.app", sys)
    first_frame.import_behind_it()
    assert not first_frame._frames


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_it_has_the_colours_of_the_theme(qapp: QApplication, theme: object) -> None:
    frame = first_frame.FirstFrame(theme)
    drawn = frame.grab().toImage()
    colours = {drawn.pixelColor(x, y).name() for x in range(0, drawn.width(), 2) for y in range(0, drawn.height(), 2)}
    assert drawn.pixelColor(4, 4).name() == theme.window and theme.text in colours and len(colours) > 20
    frame.deleteLater()


def test_before_there_are_panels_rows_at_the_top_keep_their_height(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    window = make_window()
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitExposed(window)
    rows = (window.input, window.sequences)
    assert all(row.height() <= max(row.sizeHint().height(), row.minimumSizeHint().height()) + 2 for row in rows)
    window.close()
    window.session.wait_for_end()


def test_a_demo_whose_display_cannot_be_opened_begins_again_without_a_window() -> None:
    code = (
        "import os, sys\nfrom inspector.gui.runtime.again_without import again_without_a_window\n"
        "from PySide6.QtWidgets import QApplication\n"
        "with again_without_a_window():\n    application = QApplication([])\n"
        "print(application.platformName(), sys.argv[1:])\n"
    )
    environment = {**os.environ, "QT_QPA_PLATFORM": "xcb", "DISPLAY": ":no-such-display"}
    done = subprocess.run(
        [sys.executable, "-c", code, "demo"], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout.strip()) == (0, "offscreen ['demo']"), done.stderr
