"""Brushing in the window: range, units, passages, and the strip coloured by a unit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.depth import brief
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.window.sequence_row import UNIT, SequenceRow
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
        assert len(panel._values) == 12 and f"of {len(TEXT)} searched" in panel.texts._title
        assert all(panel._offset <= span.first <= span.last < panel._offset + 12 for span in panel.spans)
        low, _ = panel._overview((0, len(TEXT)), 100)
        assert np.isnan(low[: panel._offset]).all() and np.isnan(low[panel._offset + 12 :]).all()
        np.testing.assert_array_equal(low[panel._offset : panel._offset + 12], panel._values)
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
