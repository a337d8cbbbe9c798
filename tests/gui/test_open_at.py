"""The window opened at a position from a command line, and the report that it has written."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import opened
from PySide6.QtWidgets import QApplication, QFileDialog

from inspector import cli
from inspector.gui.window import report_file
from inspector.gui.window.main_window import Window
from inspector.records import STEP_DOMAIN, ViewAt
from inspector.workspace.samples import find_sample


@pytest.fixture
def window(qtbot: object, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "tell", lambda *_: None)  # no dialog
        yield made


def test_it_goes_there_once(window: Window, qtbot: object, a_capture: Path) -> None:
    window.open_at.ask(ViewAt(panel="Gates", place="rnn.l0", step=41, unit=3, steps=(20, 79)))
    window.open_paths([str(a_capture)])
    qtbot.waitUntil(lambda: window.looking.position.step == 41, timeout=20_000)
    position = window.looking.position
    assert (position.place, position.unit) == ("rnn.l0", 3)
    assert window.steps.bounds == (19.5, 79.5)
    qtbot.waitUntil(lambda: "gates" in window.docking.seen, timeout=20_000)
    window.looking.move(step=5)
    for _ in range(3):
        window.tick()
    assert window.looking.position.step == 5


def test_steps_in_view_stay_where_the_cursor_is_beside_them_when_a_run_is_made_again(
    window: Window, qtbot: object, a_capture: Path
) -> None:
    window.open_at.ask(ViewAt(place="rnn.l0", step=3))
    window.open_paths([str(a_capture)])
    qtbot.waitUntil(lambda: window.looking.position.step == 3, timeout=20_000)
    window.steps.set(19.5, 39.5)
    window.new_capture()  # another run of the same model
    assert window.steps.length > 39 and window.steps.bounds == (19.5, 39.5)
    window.steps.keep()
    for steps in (0, window.steps.length):  # whose first page has them all
        window.steps.set_lengths({STEP_DOMAIN: steps}, growing=True)
        window.looking.set_lengths({STEP_DOMAIN: steps})
    assert window.steps.bounds == (19.5, 39.5) and window.looking.position.step == 3
    window.looking.move(step=4)
    assert window.steps.bounds[0] <= 4 <= window.steps.bounds[1], "where the user goes is seen"


def test_the_file_of_a_sample_opens_the_sample(
    window: Window, qtbot: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = find_sample("char-elman")
    assert sample is not None
    asked: list[str] = []
    monkeypatch.setattr(window.models, "ask", asked.append)
    copy = Path(shutil.copy(sample.file, tmp_path))
    window.open_path(str(copy))
    assert asked == [str(copy)], "a file of that name elsewhere is somebody's model"
    window.open_at.ask(ViewAt(panel="Gates", step=40, steps=(20, 60)))
    window.open_paths([str(sample.file)])
    qtbot.waitUntil(lambda: window.looking.position.step == 40, timeout=60_000)
    assert len(asked) == 1 and window.session.subject == "char-elman"
    assert window.steps.bounds == (19.5, 60.5)


def test_what_does_not_exist_is_said(window: Window, qtbot: object, a_capture: Path) -> None:
    window.open_at.ask(ViewAt(frame=7))
    window.open_paths([str(a_capture)])
    qtbot.waitUntil(lambda: "no frame 7; it has [0]" in window.session.sentence, timeout=20_000)


def test_one_run_of_a_log_with_its_own_curves(window: Window, qtbot: object, tmp_path: Path) -> None:
    for run in ("a", "b"):
        (tmp_path / "logs" / run).mkdir(parents=True)
        rows = [f"{n},{n / 7},{n}" for n in range(30)]
        (tmp_path / "logs" / run / "metrics.csv").write_text("\n".join(["step,loss,other", *rows]), encoding="utf-8")
    window.open_at.ask(ViewAt(panel="training", run="b", curves=("log:other",), iterations=(4, 11)))
    window.open_paths([str(tmp_path / "logs")])
    qtbot.waitUntil(lambda: getattr(window.session.capture, "run", None) == "b", timeout=20_000)
    panel = window.panels["training"]
    qtbot.waitUntil(lambda: [one.name for one in drawn(panel)] == ["other"], timeout=20_000)
    qtbot.waitUntil(lambda: [one.plot.vb.viewRange()[0] for one in panel.shown_plots] == [[4, 11]], timeout=20_000)


def drawn(panel: Any) -> list[Any]:
    return [curve for group in panel.groups_shown for curve in group.curves]


def test_the_command_line_hands_it_on(a_capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("inspector.gui.app.run", lambda paths, at=None, **_: asked.append((paths, at)) or 0)
    at = ViewAt(panel="gates", frame=0, place="rnn.l0", step=4, steps=(2, 9), iterations=(5, 8), unit=1, head=0)
    monkeypatch.setattr(sys, "argv", ["inspector", str(a_capture), *at.words])
    assert cli.main() == 0 and asked == [([str(a_capture)], at)]


@pytest.mark.process
def test_the_report_is_written_beside_the_window(
    window: Window, qtbot: object, a_capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(report_file.QDesktopServices, "openUrl", lambda url: shown.append(url.toLocalFile()))
    window.report.ask()
    assert "open a capture or a log first" in window.session.sentence
    window.open_paths([str(a_capture)])
    qtbot.waitUntil(lambda: window.session.capture is not None, timeout=20_000)
    target = tmp_path / "r.html"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target.with_suffix("")), ""))
    window.report.ask()
    assert window.report.busy
    qtbot.waitUntil(lambda: not window.report.busy, timeout=300_000)
    assert shown == [str(target)] and window.session.sentence == f"The report is in {target}."
    assert "<figure " in target.read_text(encoding="utf-8")
    window.report.write(str(tmp_path / "none" / "r.html"))
    qtbot.waitUntil(lambda: not window.report.busy, timeout=300_000)
    assert "none/r.html" in window.session.sentence and len(shown) == 1


@pytest.mark.parametrize("panel", ["lags", "gates"])
def test_a_panel_asked_for_is_seen_whole_though_the_overview_opens_first(
    qtbot: object, qapp: QApplication, a_capture: Path, panel: str
) -> None:
    """The overview was put alone again while its neighbours came back, with the one panel below it and no tabs."""
    with opened(qtbot, background=False, overview=True) as window:
        window.resize(1280, 800)
        window.open_at.ask(ViewAt(panel=panel))
        window.open_paths([str(a_capture)])
        qtbot.waitUntil(lambda: panel in window.docking.seen, timeout=20_000)
        for _ in range(20):
            window.tick()
            qapp.processEvents()
        assert panel in window.docking.seen and not window.docking.enlarged
        beside = {key for key, dock in window.docks.items() if not dock.isHidden()}
        assert {"overview", "states", "gates", "jacobians", "lags", "gradients"} <= beside


def test_a_place_that_is_not_there_is_said_and_the_rest_is_shown(
    window: Window, qtbot: object, a_capture: Path
) -> None:
    window.open_at.ask(ViewAt(panel="Gates", place="typo", step=41, unit=999))
    window.open_paths([str(a_capture)])
    qtbot.waitUntil(lambda: window.looking.position.step == 41, timeout=20_000)
    assert window.session.sentence.startswith("There is no place 'typo' in this capture: it has ")
    assert window.looking.position.place != "typo" and window.looking.position.unit is None
