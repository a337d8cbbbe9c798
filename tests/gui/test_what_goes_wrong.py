"""What went wrong is said where a person looks: files that could not be loaded, a crash of the window before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import opened
from pytestqt.qtbot import QtBot

from inspector.capture import CaptureError
from inspector.gui.export.headless import key_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.remembered import last_place
from inspector.gui.window.bars.broken_bar import BrokenBar
from inspector.gui.window.main_window import Window
from inspector.registry import Broken


@pytest.fixture
def window(qtbot: Any) -> Iterator[Window]:
    with opened(qtbot, process=False, background=False) as made:
        yield made


def test_a_panel_file_with_a_syntax_error_is_named_above_the_panels(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    PANELS.load()
    bad = Broken("inspector.gui.panels.mine", "SyntaxError: '(' was never closed (mine.py, line 3)")
    monkeypatch.setattr(PANELS, "broken", [bad])
    with opened(qtbot, process=False, background=False) as window:
        window.tick()
        assert window.broken.isVisible()
        assert window.broken.line.whole == f"Could not be loaded, and is missing: {bad.origin}: {bad.reason}"
        assert "mine.py, line 3" in window.broken.line.toolTip()
        window.broken.close_it.click()
        window.tick()
        assert not window.broken.isVisible(), "hidden until another one is broken"
    with pytest.raises(CaptureError, match=r"no panel 'mine'.*panels\.mine could not be loaded: SyntaxError"):
        key_of("mine")


def test_all_of_several_broken_files_are_in_the_tooltip(qtbot: QtBot) -> None:
    bar = BrokenBar()
    qtbot.addWidget(bar)
    bar.show_broken(["a: no", "b: <b>never</b>", "a: no"])
    assert bar.line.whole.endswith("a: no; and 1 more") and "&lt;b&gt;never" in bar.line.toolTip()
    bar.show_broken([])
    assert bar.isHidden()


def test_where_the_window_crashed_is_read_at_once_and_its_folder_is_offered(window: Window, tmp_path: Path) -> None:
    window.resize(1280, 800)
    window.say_crashed(tmp_path / ("a" * 120) / "error-20260101-000000.txt")
    said = window.status.sentence.text()
    assert "error-20260101-000000.txt" in said and said.endswith("can be sent.")
    assert not window.status.folder.isHidden()
    window.tick()
    assert any(str(tmp_path) in line for line in window.log.toPlainText().splitlines())


def test_where_a_person_was_is_known_after_a_crash_too(window: Window, qtbot: Any, a_capture: Path) -> None:
    window.open_path(str(a_capture))
    qtbot.waitUntil(lambda: last_place(window.settings) is not None, timeout=20_000)  # nothing was closed
    place = last_place(window.settings)
    assert place is not None and Path(place.path) == a_capture.absolute()
