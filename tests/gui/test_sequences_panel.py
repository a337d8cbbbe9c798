"""The panel of sequences: sorted by any number, the worst marked, a sequence opened and left again."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import finish, opened
from panel_captures import channel, shown
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent

from inspector.gui.window.bars.many_sources import source_menu
from inspector.records import PROBLEM_DOMAIN, SEQUENCE_DOMAIN, Labels, data_spec

COUNT = 30
RANDOM = np.random.default_rng(0)
LOSS = RANDOM.normal(2, 0.1, COUNT)
LOSS[4], LOSS[9], LOSS[17] = 9.0, math.nan, math.nan
LENGTH = np.full(COUNT, 12.0)
LENGTH[17] = math.nan
HORIZON = np.full(COUNT, math.nan)
HORIZON[3], HORIZON[5] = 4, 11
NAMES = tuple(
    f"file{n}.npy" if n != 2 else "a name that is much longer than any column is wide " * 4 for n in range(COUNT)
)
PROBLEMS = tuple("it is <b>not</b> an array" if n == 17 else "" for n in range(COUNT))
PARTS = (
    channel("sequences:length", "sequences", ("sequence",), LENGTH, unit="step"),
    channel("sequences:loss", "sequences", ("sequence",), LOSS, unit="nat", method="exact; in batches"),
    channel("rnn.l0:sequences/horizon", "sequences", ("sequence",), HORIZON, title="horizon of rnn.l0"),
    channel(
        "rnn.l0:h/units", "unit", ("statistic", "unit"),
        np.array([[1.0, 0, 0], [0, 0, 0], [-1, -1, 1], [0, 1, 1]]),
        labels={"statistic": ("dead", "constant", "duplicate_of", "variance")},
        method="exact; from 29 sequences, 348 steps",
    ),
    Labels(SEQUENCE_DOMAIN, NAMES, 0),
    Labels(PROBLEM_DOMAIN, PROBLEMS, 0),
)  # fmt: skip


def text(panel: Any, row: int, column: int) -> str:
    model = panel.table.numbers
    return str(model.data(model.index(row, column)))


def columns(panel: Any) -> list[str]:
    model = panel.table.numbers
    return [str(model.headerData(n, Qt.Orientation.Horizontal)).replace("\n", " ") for n in range(model.columnCount())]


def test_whose_gradient_a_column_has_is_said(tmp_path: Path) -> None:
    norms = channel("sequences:gradient_norm", "sequences", ("sequence",), LOSS, title="gradient norm")
    for parts, said in ((PARTS, False), ((*PARTS, norms), True)):
        with shown(tmp_path / str(said), "sequences", *parts) as (_, panel):
            assert ("; gradients are of the mean loss of a sequence" in panel.summary(panel.shown)) is said


def test_the_worst_come_first_and_what_failed_last(tmp_path: Path) -> None:
    with shown(tmp_path, "sequences", *PARTS) as (_, panel):
        assert columns(panel) == ["sequence", "loss", "length", "horizon rnn.l0"]
        order = panel.table.numbers.order
        assert order[:2] == [9, 4] and order[-1] == 17, "NaN is the worst loss; a sequence that failed has none"
        assert text(panel, 0, 1) == "NaN" and text(panel, 1, 1) == "9"
        assert text(panel, COUNT - 1, 0) == "file17.npy: it is <b>not</b> an array" and text(panel, COUNT - 1, 1) == ""
        assert {row for row, column in panel.table.numbers.marked if column == 0} == {
            9,
            4,
            *panel.shown.worst("sequences:loss"),
        }
        assert {row for row, column in panel.table.numbers.marked if column == 2} == {3}, "the shortest horizon"
        assert "30 sequences, 1 could not be run; in batches" in panel.said.toPlainText()
        assert "3 units: dead: 1 (0), none constant, repeat another: 1 (2 = 1) (from 29 sequences, 348 steps)" in (
            panel.said.toPlainText()
        )
        assert panel.state == "figure" and panel.distribution.bars.opts["height"].sum() == COUNT - 2


def test_sorting_by_a_click_on_a_heading(tmp_path: Path) -> None:
    with shown(tmp_path, "sequences", *PARTS) as (_, panel):
        header = panel.table.horizontalHeader()
        header.sectionClicked.emit(3)
        assert panel.column == "rnn.l0:sequences/horizon" and panel.table.numbers.order[:2] == [5, 3]
        header.sectionClicked.emit(3)
        assert panel.table.numbers.order[:2] == [3, 5] and panel.table.numbers.order[-1] == 17
        assert text(panel, 5, 3) == "none"


def test_a_click_selects_and_a_double_click_opens(tmp_path: Path, qtbot: Any) -> None:
    with shown(tmp_path, "sequences", *PARTS) as (stage, panel):
        wanted: list[int] = []
        panel.opening.connect(wanted.append)
        table = panel.table
        at = table.visualRect(table.numbers.index(1, 0)).center()
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
        assert stage.cursor.position.at(SEQUENCE_DOMAIN) == 4 and not wanted
        assert ("sequence 4", "file4.npy") in panel.readout(stage.cursor.position)
        assert panel.distribution.chosen.isVisible() and panel.distribution.chosen.value() == 9.0
        qtbot.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
        qtbot.keyClick(table, Qt.Key.Key_Return)
        panel.open.click()
        assert wanted == [4, 4, 4]
        stage.cursor.move(steps={SEQUENCE_DOMAIN: 20})
        assert table.numbers.order[table.currentIndex().row()] == 20
        panel.clicked(panel.distribution.plot, 9.2, 1.0)
        assert stage.cursor.position.at(SEQUENCE_DOMAIN) == 4


def test_without_a_chosen_sequence_no_row_is_marked(tmp_path: Path) -> None:
    with shown(tmp_path, "sequences", *PARTS) as (stage, panel):
        stage.cursor.move(steps={SEQUENCE_DOMAIN: 20})
        assert panel.table.selectionModel().hasSelection() and panel.open.isEnabled()
        stage.cursor.move(steps={SEQUENCE_DOMAIN: None})
        assert not panel.table.selectionModel().hasSelection() and not panel.open.isEnabled()
        panel.redraw()
        assert not panel.table.currentIndex().isValid()


def test_sort_by_offers_titles(tmp_path: Path) -> None:
    with shown(tmp_path, "sequences", *PARTS) as (_, panel):
        offered = [panel.which.itemText(n) for n in range(panel.which.count())]
        assert offered == ["loss", "length", "horizon of rnn.l0"]
        panel.which.setCurrentText("length")
        assert panel.column == "sequences:length"


def test_numbers_and_figure_can_be_saved(tmp_path: Path) -> None:
    from inspector.gui.export.figure_files import save_data, save_figure

    with shown(tmp_path, "sequences", *PARTS) as (_, panel):
        assert set(panel.data()) == {"sequences:length", "sequences:loss", "rnn.l0:sequences/horizon"}
        save_data(panel, tmp_path / "a.npz")
        save_figure(panel, tmp_path / "a.png")
        assert (tmp_path / "a.png").stat().st_size > 5_000


@pytest.fixture
def window(qtbot: Any) -> Any:
    with opened(qtbot, background=False) as window:
        window.open_sample("char-elman")
        finish(window, qtbot)
        yield window


def drop(window: Any, path: Path) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    window.dropEvent(
        QDropEvent(
            QPointF(5, 5), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        )
    )


def test_a_folder_that_is_dropped_is_run_and_one_of_it_opened(window: Any, qtbot: Any, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number, line in enumerate(("the queen", "the king of hearts", "§", "the knave")):
        (folder / f"{number}.txt").write_text(line, encoding="utf-8")
    drop(window, folder)
    finish(window, qtbot)
    panel, first = window.panels["sequences"], window.session.capture.path
    panel.redraw()
    assert panel.state == "figure" and panel.shown.failed == [2] and panel.shown.names[1] == "1.txt"
    assert window.input.line.text() == str(folder) and window.session.spec == data_spec(str(folder), lines=False)
    panel.opening.emit(1)
    finish(window, qtbot)
    assert window.session.capture.path != first and window.session.capture.labels("step")[:3] == ("t", "h", "e")
    assert "rnn.l0:h" in window.session.capture.channels
    window.back_to_sequences()
    assert window.session.capture.path == first and window.session.can_run_again
    qtbot.waitUntil(lambda: panel.number == 1, timeout=5000)
    assert panel.open.isEnabled() and panel.command.text()
    assert panel.table.numbers.order[panel.table.currentIndex().row()] == 1
    lags = window.panels["lags"]
    assert "open one (double-click it in Sequences)" in lags._empty.text() and "Needs" not in lags._empty.text()
    panel.opening.emit(0)
    finish(window, qtbot)
    assert len(window.session.capture.labels("step")) == len("the queen")


def test_the_row_offers_folders_files_and_the_models_own(window: Any) -> None:
    row = window.input
    row.kind.setCurrentIndex(row.kind.findData("sequences"))
    assert row.line.text() == "" and row.browse.isVisibleTo(window) and "folder" in row.line.placeholderText()
    texts = {action.text(): action.isEnabled() for action in source_menu(row).actions()}
    assert texts["The model's own data"] is False and texts["A folder of files…"] is True
    row.kind.setCurrentIndex(row.kind.findData("text"))
    assert row.line.text() == window.session.loaded.default_text.replace("\n", "↵")


def test_a_capture_from_disk_says_how_to_open_a_sequence(window: Any, qtbot: Any, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("the queen\nthe king", encoding="utf-8")
    window.input.show_many(str(path), lines=True)
    window.input.ask()
    finish(window, qtbot)
    saved = window.session.capture.path
    window.open_capture(str(saved))
    panel = window.panels["sequences"]
    window.looking.move(steps={SEQUENCE_DOMAIN: 1})
    panel.redraw()
    assert panel.command.text().endswith(f"--data {path} --lines --number 1")
    assert panel.command.text().startswith("inspector run char-elman")
    told: list[tuple[str, str]] = []
    window.tell = lambda sentence, details="": told.append((sentence, details))
    panel.opening.emit(1)
    assert "did not run these sequences" in told[0][0] and "--number 1" in told[0][1]
