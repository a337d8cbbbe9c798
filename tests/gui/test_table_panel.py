"""The table of a range of steps: which steps, of which quantities, and what is copied and saved."""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened
from panel_captures import channel, shown, write_frames
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from inspector.analysis.step_statistics import COLUMNS
from inspector.capture import Writer, open_capture
from inspector.gui.export.figure_files import save_data
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels import table
from inspector.gui.state.asked import asked_of
from inspector.gui.state.chosen_steps import chosen_of
from inspector.gui.state.in_sight import in_sight_of
from inspector.records import Channel, Frame, Page, RunStart, RunStop

RANDOM = np.random.default_rng(0)
STATES = RANDOM.normal(size=(300, 4)).astype(np.float32)
NORMS = RANDOM.exponential(size=300)
PARTS = (
    channel("l:h", "state", ("step", "unit"), STATES, title="h"),
    channel("l:n", "jacobian", ("step",), NORMS, title="norm"),
    channel("l:w", "output", ("step", "rank"), np.zeros((300, 3), np.int32), value_domain="class"),
)


@pytest.fixture
def panel(tmp_path: Path) -> Iterator[Any]:
    with shown(tmp_path, "table", *PARTS) as (_, found):
        read(found)
        yield found


def read(panel: Any) -> None:
    """Until it has read what is asked for."""
    QTest.qWait(10)
    for _ in range(200):
        panel.complete()
        if panel._task.done and not panel._wait.isActive():
            break
        QTest.qWait(10)


def cells(panel: Any) -> dict[str, tuple[float, ...]]:
    return {line.name: line.numbers for line in panel.lines}


def expected(values: Any) -> list[float]:
    cut = values.astype(np.float64)
    return [cut[0], cut[-1], cut[-1] - cut[0], cut.min(), cut.max(), cut.mean(), cut.std(), 0, 0, 0]


def test_it_is_of_the_steps_in_view_then_of_what_ask_found_then_of_what_is_typed(panel: Any) -> None:
    assert set(cells(panel)) == {"h 0", "h 1", "h 2", "h 3", "norm"}, "words have no mean"
    np.testing.assert_allclose(cells(panel)["h 2"], expected(STATES[:, 2]), rtol=1e-12)
    panel.steps.set(9.5, 49.5)
    read(panel)
    assert panel.line.text() == "step 10–49 (40 steps, in view): 5 curves of all quantities"
    np.testing.assert_allclose(cells(panel)["norm"], expected(NORMS[10:50]), rtol=1e-12)
    asked_of(panel.looking).show(((100, 110), (200, 202)), panel.looking.axis)
    read(panel)
    both = np.concatenate((STATES[100:111, 1], STATES[200:203, 1]))
    np.testing.assert_allclose(cells(panel)["h 1"], expected(both), rtol=1e-12)
    assert "100–110, 200–202 (14 steps, found by Ask)" in panel.line.text()
    panel.field.setText("12-57")
    read(panel)
    np.testing.assert_allclose(cells(panel)["h 0"], expected(STATES[12:58, 0]), rtol=1e-12)
    assert panel.line.text().startswith("step 12–57 (46 steps): ")
    panel.field.setText("12-570")
    QTest.keyClick(panel.field, Qt.Key.Key_Return)
    assert panel.line.text() == "12-570 is no range of steps of this sequence: they are numbered 0 to 299."


def test_it_is_sorted_by_any_column_and_copied_in_that_order(panel: Any) -> None:
    change = panel.table.rows.headings.index("change")
    panel.table.sort_by(change, descending=True)
    panel.table.setFocus()
    QTest.keyClick(panel.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = [line.split("\t") for line in QGuiApplication.clipboard().text().split("\n")]
    assert lines[0] == ["curve", "in", *COLUMNS[:-3]], "without NaN nothing is said of it"
    changes = [float(line[4]) for line in lines[1:]]
    assert changes == sorted(changes, reverse=True) and len(changes) == 5
    told = {line[0]: line[2:] for line in lines[1:]}
    assert [float(one) for one in told["h 3"]] == list(cells(panel)["h 3"])[:-3], "with all digits"
    QGuiApplication.clipboard().setText("")
    panel.copying.click()
    assert QGuiApplication.clipboard().text().count("\n") == 5


def test_only_what_the_panels_in_sight_draw(panel: Any) -> None:
    in_sight_of(panel.looking).show(frozenset({"l:n", "l:w", "other:x"}))
    read(panel)
    assert set(cells(panel)) == {"norm"} and panel.line.text().endswith(": 1 curve")
    in_sight_of(panel.looking).show(frozenset({"other:x"}))
    read(panel)
    assert panel.line.text() == "No panel in sight draws numbers step by step."


def test_nan_infinities_and_what_is_not_there_are_counted(tmp_path: Path) -> None:
    values = STATES.astype(np.float64)
    values[3, 1], values[4, 2], values[299, 3] = np.nan, np.inf, np.nan
    with shown(tmp_path, "table", channel("l:h", "state", ("step", "unit"), values, title="h")) as (_, panel):
        read(panel)
        headings = panel.table.rows.headings
        assert headings[-2:] == ("NaN", "∞") and "not\nthere" not in headings
        rows = {name: panel.table.rows.cells[n] for n, name in enumerate(panel.table.rows.names)}
        assert rows["h 1"][-2:] == (1.0, 0.0) and rows["h 2"][-2:] == (0.0, 1.0)
        assert np.isnan(rows["h 3"][2]), "the model made a NaN there"
        assert panel.table.rows.marked == {
            (1, headings.index("NaN")),
            (2, headings.index("∞")),
            (3, headings.index("NaN")),
        }


def test_numbers_are_saved_with_the_names_of_their_columns(panel: Any, tmp_path: Path) -> None:
    panel.field.setText("12-57")
    read(panel)
    path = save_data(panel, tmp_path / "t.csv")
    rows = [row for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) if row]
    text = path.read_text(encoding="utf-8")
    assert "mean" in text and "change" in text
    assert any(str(cells(panel)["norm"][5])[:12] in ",".join(row) for row in rows)


def test_a_row_leads_to_its_unit_and_is_read_out(panel: Any) -> None:
    panel.table.choose(None)
    panel._chosen([line.name for line in panel.lines].index("h 2"))
    assert (panel.looking.position.unit, panel.looking.position.place) == (2, "l")
    told = dict(panel.readout(panel.looking.position))
    assert float(told["mean of h 2"]) == pytest.approx(cells(panel)["h 2"][5], rel=1e-9)
    assert panel.table.accessibleName() and panel.field.accessibleName() and panel.line.accessibleName()


def test_the_difference_of_two_runs(tmp_path: Path) -> None:
    other = channel("l:h", "state", ("step", "unit"), 3 * STATES, title="h")
    first = channel("l:h", "state", ("step", "unit"), STATES, title="h")
    with shown(tmp_path, "table", first, other, difference=True) as (_, panel):
        read(panel)
        difference = (3 * STATES).astype(np.float64) - STATES
        np.testing.assert_allclose(cells(panel)["Δ h 1"][5], difference[:, 1].mean(), rtol=1e-5)


def test_in_a_window_it_has_what_is_seen_beside_it(tmp_path: Path, qtbot: Any) -> None:
    path = write_frames(tmp_path, *PARTS)
    with opened(qtbot, background=False) as window:
        window.open_capture(str(path))
        window.docking.show_panel("table")
        window.docking.show_panel("states")
        qtbot.waitUntil(lambda: in_sight_of(window.looking).names == {"l:h"}, timeout=5000)
        assert window.panels.told("table").count("\n") == 0, "no formulas of all that there is"
        panel: Any = window.panels["table"]
        qtbot.waitUntil(lambda: {line.channel.name for line in panel.lines} == {"l:h"}, timeout=5000)
        window.steps.set(49.5, 99.5)
        qtbot.waitUntil(lambda: "50–99" in panel.line.text(), timeout=5000)
        np.testing.assert_allclose(cells(panel)["h 0"], expected(STATES[50:100, 0]), rtol=1e-12)


def test_what_a_run_adds_is_read_again(tmp_path: Path, qtbot: Any) -> None:
    about = Channel(name="l:h", kind="state", dims=("step", "unit"), shape=(None, 4), title="h")
    path = tmp_path / "g.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(about)
        writer.write(Page("l:h", 0, (0, 0), STATES[:100]))
        writer.flush()
        with open_capture(path) as capture:
            stage = Stage(capture, (900, 400))
            panel: Any = stage.panel("table")
            read(panel)
            np.testing.assert_allclose(cells(panel)["h 1"], expected(STATES[:100, 1]), rtol=1e-12)
            writer.write(Page("l:h", 0, (100, 0), STATES[100:]))
            writer.write(RunStop("done"))
            writer.flush()
            changed = capture.refresh()
            stage.steps.set_length(300)
            panel.looking.cursor.set_length(300)
            panel.refresh(changed)
            qtbot.waitUntil(lambda: panel.lines and panel.lines[1].numbers[1] == STATES[299, 1], timeout=5000)
            np.testing.assert_allclose(cells(panel)["h 1"], expected(STATES[:, 1]), rtol=1e-12)
            stage.close()


def test_long_ranges_are_read_beside_the_window(tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "AT_ONCE", 10)
    threads: list[str] = []
    own = table.read

    def noted(*given: Any) -> Iterator[None]:
        threads.append(threading.current_thread().name)
        yield from own(*given)

    monkeypatch.setattr(table, "read", noted)
    with shown(tmp_path, "table", *PARTS) as (_, panel):
        qtbot.waitUntil(lambda: len(panel.lines) == 5, timeout=5000)
        assert threads and threading.main_thread().name not in threads
        np.testing.assert_allclose(cells(panel)["h 2"], expected(STATES[:, 2]), rtol=1e-12)


def test_a_range_is_drawn_on_the_strip(tmp_path: Path, qtbot: Any) -> None:
    path = write_frames(tmp_path, *PARTS)
    with opened(qtbot, background=False) as window:
        window.open_capture(str(path))
        strip = window.sequences.input.strip
        qtbot.waitUntil(lambda: strip.step_at(200) is not None, timeout=5000)
        window.looking.move(step=2)
        points = [QPoint(x, strip.height() // 2) for x in (60, 120, 180)]
        first, last = (strip.at(points[n]) for n in (0, 2))
        control, left = Qt.KeyboardModifier.ControlModifier, Qt.MouseButton.LeftButton
        QTest.mousePress(strip, left, control, points[0])
        for point in points[1:]:
            QTest.mouseMove(strip, point)
        QTest.mouseRelease(strip, left, control, points[2])
        chosen = chosen_of(window.looking)
        assert chosen.ranges == ((first, last),) and last > first
        assert window.looking.position.step == 2, "the cursor stays"
        qtbot.waitUntil(lambda: "table" in window.docking.seen, timeout=5000)
        panel: Any = window.panels["table"]
        qtbot.waitUntil(lambda: panel.line.text().startswith(f"step {first}–{last} ("), timeout=5000)
        assert panel.field.text() == f"{first}-{last}"
        panel.field.setText("3, 7-9,")
        qtbot.waitUntil(lambda: chosen.ranges == ((3, 3), (7, 9)), timeout=5000)
        assert panel.field.text() == "3, 7-9,", "what is being typed stays"
        image = strip.grab().toImage()
        boxes = [(int(strip._edges[step]) + int(strip._edges[step + 1])) // 2 - strip._left for step in (3, 5, 8)]
        marked = [image.pixelColor(x, 4).name() == strip.theme.cursor for x in boxes]
        assert marked == [True, False, True]
        QTest.mouseClick(strip, left, control, points[0])
        assert chosen.ranges == () and panel.field.text() == ""
