"""Brushing in the window: range, units, passages, and the strip coloured by a unit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from captures import flip

from inspector.capture import Writer, open_capture
from inspector.gui.export.figure_files import save_data
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.depth import brief
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.gaps import Gaps
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.window.bars.sequence_row import UNIT, SequenceRow
from inspector.records import Channel, Frame, Labels, Page, RunStart, RunStop

TEXT = "one (two) three (four) five (six)"


@pytest.fixture
def brackets(tmp_path: Path) -> Path:
    """Unit 2 is on inside brackets, unit 5 is on there by being negative; the others are noise."""
    random = np.random.default_rng(0)
    values = random.uniform(-0.3, 0.3, size=(len(TEXT), 8)).astype(np.float32)
    depth = np.array([TEXT[: i + 1].count("(") > TEXT[: i + 1].count(")") for i in range(len(TEXT))])
    values[depth, 2], values[depth, 5] = 0.9, -0.8
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Labels("step", tuple(TEXT), 0))
        for name, kind, more in (
            ("rnn.l0:h", "state", {"scale": "diverging"}), ("rnn.l0:gate/forget", "gate", {"limits": (0.0, 1.0)}),
        ):  # fmt: skip
            writer.write(Channel(name=name, kind=kind, dims=("step", "unit"), shape=values.shape, title=name, **more))
            writer.write(Page(name, 0, (0, 0), values if kind == "state" else np.abs(values)))
        writer.write(RunStop("done"))
    return tmp_path / "a.inspect"


def test_brushing_finds_the_units_and_the_other_brackets(brackets: Path) -> None:
    with open_capture(brackets) as capture:
        stage = Stage(capture, (1000, 600))
        panel = stage.panel("units")
        first = TEXT.index("(four")
        panel.brush.setRegion((first - 0.5, first + 4.5))
        panel.threshold.setValue(0.5)
        assert (panel.begin.value(), panel.end.value()) == (first, first + 4)
        assert [(m.unit, m.sign, m.exact) for m in panel.searched] == [(2, 1, True), (5, -1, True)]
        assert len(panel.matches) == 8 and all(match.f1 > 0.9 for match in panel.searched)
        found = [TEXT[span.first : span.last + 1] for span in panel.spans]
        assert sorted(found) == ["(six", "(two"]
        row = panel.passage(panel.spans[0], tuple(TEXT))
        assert row.before + row.marked + row.after == TEXT and row.marked == found[0]
        shown = panel.data()["units"]
        assert shown[0, [0, 1, 3, 4]].tolist() == [2, 1, 1, 1] and shown[2, 4] == 0
        stage.close()


def test_typing_clamps_the_range_and_a_click_goes_to_a_passage(brackets: Path) -> None:
    with open_capture(brackets) as capture:
        stage = Stage(capture, (1000, 600))
        panel = stage.panel("units")
        panel.threshold.setValue(0.5)
        panel.begin.setValue(TEXT.index("(two"))
        panel.end.setValue(TEXT.index("(two") + 3)
        assert panel._range == (4, 7)
        low, high = panel.brush.getRegion()
        assert (low, high) == (3.5, 7.5)
        panel._go_to(0)
        assert TEXT[stage.cursor.position.step] == "("
        height = panel.texts._height()
        assert panel.texts.row_at(0.5 * height) is None and panel.texts.row_at(1.5 * height) == 0
        panel.brush.setRegion((-50.0, 500.0))
        assert panel._range == (0, len(TEXT) - 1)
        panel.move_by(1)
        assert stage.cursor.position.unit == panel.matches[0].unit
        panel.pointed(panel.row.plot, 3.0, 1.0)
        assert stage.cursor.position.unit == panel.matches[1].unit and stage.cursor.position.step == 3
        stage.close()


def test_gates_have_no_sign_and_every_channel_its_threshold(brackets: Path) -> None:
    with open_capture(brackets) as capture:
        stage = Stage(capture, (1000, 600))
        panel = stage.panel("units")
        panel.which.setCurrentText("rnn.l0:gate/forget")
        assert panel.threshold.value() == 0.5 and all(match.sign == 1 for match in panel.matches)
        panel.which.setCurrentText("rnn.l0:h")
        assert 0.3 < panel.threshold.value() < 0.5
        stage.close()


def test_only_a_part_is_searched_where_all_would_cost_too_much(brackets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.gui.panels.units.SEARCH_BYTES", 12 * 8 * 4)
    with open_capture(brackets) as capture:
        stage = Stage(capture, (1000, 600))
        panel = stage.panel("units")
        panel.begin.setValue(17)
        panel.end.setValue(20)
        assert len(panel.found.values) == 12 and f"of {len(TEXT)} searched" in panel.texts._title
        assert all(panel.found.offset <= span.first <= span.last < panel.found.offset + 12 for span in panel.spans)
        low, _ = panel._overview((0, len(TEXT)), 100)
        assert np.isnan(low[: panel.found.offset]).all() and np.isnan(low[panel.found.offset + 12 :]).all()
        np.testing.assert_array_equal(low[panel.found.offset : panel.found.offset + 12], panel.found.values)
        stage.close()


@pytest.mark.parametrize("pages", [(2,), (1, 2, 3, 4)])
def test_what_is_damaged_is_neither_on_nor_off(tmp_path: Path, pages: tuple[int, ...]) -> None:
    path = tmp_path / "a.inspect"
    values = np.zeros((40, 4), np.float32)
    values[2:6, 1] = values[30:34, 1] = 1.0
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(40, 4), title="h"))
        for start in range(0, 40, 10):
            writer.write(Page("a:h", 0, (start, 0), values[start : start + 10]))
        writer.write(RunStop("done"))
    for page in pages:
        flip(path, page)
    with open_capture(path) as capture:
        stage = Stage(capture, (1000, 600))
        panel = stage.panel("units")
        panel.threshold.setValue(0.5)
        panel.begin.setValue(2)
        panel.end.setValue(5)
        panel.begin.setValue(2)
        stage.cursor.move(step=12, unit=1)
        told = dict(panel.readout(stage.cursor.position))
        assert (panel.state == "figure" and "not known" in panel.texts._title) or not panel.searched
        found = np.load(save_data(panel, tmp_path / "x.npz"))
        if len(pages) == 1:
            assert [(m.unit, m.exact) for m in panel.searched] == [(1, True)]
            assert [(s.first, s.last) for s in panel.spans] == [(30, 33)]
            assert np.isnan(panel.line.getData()[1][10:20]).all()
            assert panel.together._bands.gaps == Gaps(damaged=(((10, 20), (0, 1)),))
            assert told["searched units that are on [12]"] == "unknown"
            assert found["on_missing"][10:20].all() and found["on_missing"].sum() == 10
        else:
            assert panel.searched == [] and panel.texts._title.startswith("none of the chosen steps is known")
        stage.close()


def test_the_strip_is_coloured_by_the_unit_under_the_cursor(brackets: Path) -> None:
    cursor = Cursor()
    row = SequenceRow(cursor, LIGHT, Settings())
    with open_capture(brackets) as capture:
        cursor.set_length(len(TEXT))
        row.grown(capture, len(TEXT), frozenset())
        row.colour_by.setCurrentText(f"{UNIT}rnn.l0:h")
        cursor.move(unit=2)
        inside = TEXT.index("(two") + 1
        assert row.strip._share(inside) == pytest.approx(1.0, abs=0.04)
        cursor.move(unit=5)
        assert row.strip._share(inside) < -0.8 and "unit 5" in row.strip._caption
        assert abs(row.strip._share(0)) < 0.5
        cursor.move(unit=99)
        assert "unit 7" in row.strip._caption
        row.colour_by.setCurrentText(f"{UNIT}rnn.l0:gate/forget")
        assert row.strip._share(inside) >= 0
        row.forget()
    row.deleteLater()


def test_layers_are_named_briefly() -> None:
    assert brief(("rnn.l0", "rnn.l1")) == ["l0", "l1"]
    assert brief(("enc.rnn.l0 / enc.rnn.l1",)) == ["l0/l1"]
    assert brief(("lower.l0", "upper.l0")) == ["lower.l0", "upper.l0"]
    assert brief(("a", "b")) == ["a", "b"] and brief(()) == []
