"""The panels of paths and of gate openers: their words, their sorting and the retention they multiply themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyqtgraph as pg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPicture
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inspector.analysis import retention
from inspector.analysis.gate_summary import gate_sentence, memory_sentence, timescale_sentence
from inspector.analysis.retention import at_step, largest_of, retained, retention_over
from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.openers import ONE, Openers
from inspector.gui.panels.paths import Paths, share_open
from inspector.gui.widgets.charts.tokenbars import TokenBars, ends, places_for
from inspector.gui.widgets.plots.axes import LogAxis, StepAxis
from inspector.gui.widgets.theme import LIGHT
from inspector.records import Channel, Frame, Page, RunStart, RunStop, Scalar

# -- words


def test_the_sentences_of_the_lectures() -> None:
    assert gate_sentence("gate/reset", 0.05, 0.83, None) == "r near 1 in 83 % of steps: it works as a plain RNN"
    assert gate_sentence("gate/r", 0.6, 0.1, None) == "r near 0 in 60 % of steps: it forgets"
    copied = "the input is ignored (the state is copied)"
    assert gate_sentence("gate/update", 0.0, 1.0, 1.0) == f"z near 1 in 100 % of steps: {copied}"
    assert gate_sentence("gate/forget", 0.0, 0.9, 1.0).endswith("the cell keeps its state")
    assert gate_sentence("gate/i", 0.7, 0.0, None).endswith("nothing is written")
    assert gate_sentence("gate/z", 0.2, 0.3, 1.0) == "z is graded: near 1 in 30 %, near 0 in 20 % of steps"
    assert memory_sentence("f > 0.9 and i < 0.1", 34, 5, 1) == (
        "f near 1 and i near 0 over 34 steps from step 5: long-term memory"
    )
    assert memory_sentence("z > 0.9", 3, 5, 0).endswith("too short for long-term memory")
    assert memory_sentence("z > 0.9", 0, -1, 0) == "z near 1 at no step: no long-term memory"
    assert timescale_sentence(9.4912, 300) == "memory timescale 9.49 steps; the sequence has 300"
    assert timescale_sentence(math.inf, 300) == "never forgets within the sequence of 300 steps"


def test_an_update_gate_whose_direction_is_unknown_or_reversed_is_not_given_the_wrong_meaning() -> None:
    """PyTorch keeps with z = 1, Cho et al. (2014) with z = 0: the word follows what was measured, not the letter."""
    assert gate_sentence("gate/z", 0.0, 0.8, None) == "z near 1 in 80 % of steps"
    assert gate_sentence("gate/z", 0.0, 0.8, 0.0) == "z near 1 in 80 % of steps: the state is replaced by the candidate"
    assert "the state is copied" in gate_sentence("gate/z", 0.8, 0.0, 0.0)
    assert gate_sentence("gate/<b>odd</b>", 0.9, 0.0, None) == "b> near 0 in 90 % of steps"
    assert "NaN" in gate_sentence("gate/z", math.nan, 0.5, 1.0) and "NaN" in timescale_sentence(math.nan, 3)


# -- retention


def by_loop(gate: np.ndarray, span: int, high: bool, backward: bool) -> np.ndarray:
    """One product a step and unit, with a loop; NaN where the span holds one, −∞ where it leaves the sequence."""
    out = np.full(gate.shape, -np.inf)
    for t in range(len(gate)):
        steps = range(t, t + span) if backward else range(t - span + 1, t + 1)
        if min(steps) >= 0 and max(steps) < len(gate):
            out[t] = np.prod([gate[s] if high else 1 - gate[s] for s in steps], axis=0)
    return out


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 12), st.booleans(), st.booleans(), st.integers(0, 99))
def test_retention_equals_a_loop_of_products(steps: int, span: int, high: bool, backward: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    gate = random.random((steps, 3))
    gate[random.random((steps, 3)) < 0.1] = 0.0
    gate[random.random((steps, 3)) < 0.1] = 1.0
    gate[random.random((steps, 3)) < 0.05] = np.nan
    gate[random.random((steps, 3)) < 0.05] = 1.5
    expected = by_loop(gate, span, high, backward)
    read = lambda first, stop: gate[first:stop]  # noqa: E731
    found = retention_over(read, steps, 3, (0, steps), span, high=high, backward=backward)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)
    first = steps // 3
    part = retention_over(read, steps, 3, (first, steps), span, high=high, backward=backward)
    np.testing.assert_allclose(part, expected[first:], rtol=1e-12, atol=1e-300)
    one = at_step(read, steps, first, span, 3, high=high, backward=backward)
    np.testing.assert_allclose(one, expected[first], rtol=1e-12)


def test_long_runs_of_a_small_gate_do_not_lose_the_large_one_after_them() -> None:
    """A running product would underflow to zero and stay there; 0.5 over 5,000 steps, then 0.9."""
    gate = np.concatenate((np.full((5000, 1), 0.5), np.full((40, 1), 0.9)))
    np.testing.assert_allclose(retained(gate, 10)[-1], 0.9**10, rtol=1e-9)


def test_retention_of_too_many_steps_is_looked_at_here_and_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "LIMIT", 600)
    gate = np.random.default_rng(0).random((1000, 3))
    found = retention_over(lambda a, b: gate[a:b], 1000, 3, (0, 1000), 5, high=True, backward=False)
    exact = by_loop(gate, 5, True, False)
    assert len(found) == 40
    np.testing.assert_allclose(found, exact[((np.arange(40) + 0.5) * 25).astype(int)], rtol=1e-12)


def test_rows_are_thinned_to_their_largest() -> None:
    values = np.arange(10.0)[:, None]
    assert largest_of(values, 5)[:, 0].tolist() == [1, 3, 5, 7, 9] and largest_of(values, 20) is values
    values[3] = np.nan
    assert np.isnan(largest_of(values, 5)[1, 0])


def test_many_mask_units_are_averaged_rather_than_all_open() -> None:
    mask = np.tile([0.0, 1.0], (4, 500))
    np.testing.assert_allclose(share_open(mask, mask), 0.5, atol=0.08)
    assert share_open(mask, mask).shape == (4, 128) and share_open(mask[:, :6], mask[:, :6]).shape == (4, 6)


def test_logarithmic_ticks_are_plain_numbers_up_to_ten_thousand() -> None:
    values = [-2.0, 0.0, math.log10(2), 3.0, math.log10(2000), 4.0]
    assert LogAxis("bottom").tickStrings(values, 1.0, 1.0) == ["0.01", "1", "2", "1000", "2000", "10⁴"]


# -- bars


def test_bars_show_both_ends_when_there_are_too_many() -> None:
    assert ends(5, 12) == [0, 1, 2, 3, 4]
    shown = ends(100, 12)
    assert (
        len(shown) == 12 and shown[:6] == [0, 1, 2, 3, 4, 5] and shown[6] is None and shown[7:] == [95, 96, 97, 98, 99]
    )
    assert places_for("abc") == 48 and places_for(["a rather long word"] * 3) == 12


@pytest.fixture
def openers(tmp_path: Path) -> Iterator[tuple[Stage, Openers]]:
    """A hand-written layer: gate z keeps with 0; three tokens; unit 1 stands against unit 0."""
    steps = 40
    z = np.full((steps, 2), 0.5, np.float32)
    z[5:39, 0] = 0.05
    table = np.array([[0.1, 0.9], [0.6, 0.2], [0.3, 0.4]])
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))

        def put(signal: str, kind: str, dims: tuple[str, ...], values: np.ndarray, **more: object) -> None:
            channel = Channel(
                name=f"mine:{signal}", kind=kind, dims=dims, shape=values.shape, dtype=str(values.dtype), **more
            )
            writer.write(channel)
            writer.write(Page(channel.name, 0, (0,) * values.ndim, values))

        put("gate/z", "gate", ("step", "unit"), z, title="z", limits=(0, 1))
        put("gate/z/saturation", "unit", ("statistic", "unit"), np.array([[0.85, 0.0], [0.0, 0.0], [0.2, 1.0]]),
            labels={"statistic": ("left", "right", "graded")})  # fmt: skip
        put("gate/z/by_token", "opener", ("token", "unit"), table, title="z by token",
            labels={"token": ("<s>", "b", "\u202e")})  # fmt: skip
        put("gate/tokens", "opener", ("token",), np.array([20, 19, 1]), title="occurrences")
        put("gate/memory/runs", "memory", ("statistic", "unit"), np.array([[34.0, 0], [5, -1], [1, 0], [0.85, 0]]),
            title="runs of memory ((1 − z) > 0.9)", labels={"statistic": ("longest", "longest_start", "runs", "share")})  # fmt: skip
        writer.write(Scalar("mine:gate/z/keeps", 0, 0.0))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        stage = Stage(capture, (900, 600))
        panel = stage.panel("openers", place="mine")
        assert isinstance(panel, Openers) and panel.state == "figure", panel._error.toPlainText()
        yield stage, panel
        stage.close()


def test_tokens_are_sorted_by_how_far_they_open_the_gate(openers: tuple[Stage, Openers]) -> None:
    stage, panel = openers
    names, values, counts, mean = panel.sorted_table()
    assert names == ["<s>", "b", "\u202e"] and counts == [20, 19, 1]
    np.testing.assert_allclose(values, [0.5, 0.4, 0.35])
    assert mean == pytest.approx((0.5 * 20 + 0.4 * 19 + 0.35) / 40)
    panel.units.setCurrentText(ONE)
    stage.cursor.move(unit=0)
    assert panel.sorted_table()[0] == ["b", "\u202e", "<s>"]
    stage.cursor.move(unit=1)
    assert panel.sorted_table()[0] == ["<s>", "\u202e", "b"]
    panel.least.setCurrentText("10")
    assert panel.sorted_table()[0] == ["<s>", "b"]


def test_words_and_retention_follow_the_unit_and_the_measured_direction(openers: tuple[Stage, Openers]) -> None:
    stage, panel = openers
    stage.cursor.move(unit=0, step=20)
    words = panel.summary_lines(0)
    assert words[0] == "z near 0 in 85 % of steps: the input is ignored (the state is copied)"
    assert words[1] == "(1 − z) near 1 over 34 steps from step 5: long-term memory"
    assert "1 of 2 units have long-term memory" in panel.summary_lines(None)
    assert panel.summary.columns[1] == ("unit 0", words)
    shown = dict(panel.readout(stage.cursor.position))
    assert float(shown["retention over 10 steps [20, 0]"]) == pytest.approx(0.95**10, rel=1e-6)
    stage.cursor.move(unit=1)
    assert float(dict(panel.readout(stage.cursor.position))["retention over 10 steps [20, 1]"]) == pytest.approx(
        0.5**10
    )
    stage.cursor.move(step=3)
    assert not any("retention" in what for what, _ in panel.readout(stage.cursor.position))


def test_paths_say_what_arrives_and_mark_the_unit(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 700))
        panel = stage.panel("paths")
        assert isinstance(panel, Paths)
        expected = math.exp(-0.2 * 20)
        assert panel.lags.plot.titleLabel.text.startswith(
            f"rnn.l0: geometric mean over starts, 20 steps on, direct {expected:.2g}, whole {expected:.2g}"
        )
        stage.cursor.move(step=7, unit=3)
        rows = dict(panel.readout(stage.cursor.position))
        mask = capture.array("rnn.l0:mask")[7, 3]
        assert rows["unit 3 [7]"] == ("open" if mask else "closed")
        kept = capture.array("rnn.l0:path/retention")[10, 3]
        assert float(rows["unit 3 keeps over 10 steps"]) == pytest.approx(kept, rel=1e-9)
        assert panel.lags.marked.isVisible()
        stage.cursor.move(unit=None)
        assert not panel.lags.marked.isVisible()
        stage.close()


def test_only_pictures_that_show_something_take_room(openers: tuple[Stage, Openers], a_capture: Path) -> None:
    _, panel = openers
    assert not panel.scales.plot.isVisible() and panel.kept.plot.isVisible()
    with open_capture(a_capture) as capture:
        other = Stage(capture, (700, 500))
        paths = other.panel("paths")
        assert [paths.figure.ci.getItem(row, 0) for row in range(4)] == paths.plots
        other.close()


@pytest.mark.parametrize("height", [60, 130, 400])
def test_no_count_above_a_bar_loses_a_digit(qtbot: QtBot, height: int) -> None:
    """ "×104" that is cut at the edge of the plot reads "×10"; a plot too low for counts shows none of them."""
    view = pg.GraphicsLayoutWidget()
    qtbot.addWidget(view)
    view.resize(500, height)
    bars = TokenBars(LIGHT)
    view.addItem(bars.plot)
    bars.show([" ", "b", "_"], np.array([0.9, 0.5, 0.1]), [104, 12_345, 1], 0.4, "mean of the gate")
    view.show()
    QApplication.processEvents()
    room = bars.plot.vb.sceneBoundingRect().adjusted(0, -0.5, 0, 0.5)
    shown = [item for item in bars.counts if item.isVisible()]
    assert len(shown) == (0 if height == 60 else 3)
    assert all(room.contains(item.textItem.sceneBoundingRect().adjusted(2, 2, -2, -2)) for item in shown)


@pytest.mark.parametrize("points", [9, 16])
def test_a_name_below_a_bar_is_read_to_the_bottom_of_its_line(qtbot: QtBot, points: int) -> None:
    before = QApplication.font()
    QApplication.setFont(QFont(before.family(), points))
    try:
        axis = StepAxis()
        assert axis.maximumHeight() >= QFontMetricsF(QFont()).height() + axis.style["tickTextOffset"][1] + 1
    finally:
        QApplication.setFont(before)


@pytest.mark.parametrize("width", [140, 240, 360, 500, 1200])
def test_bars_have_words_below_them_at_any_width_never_their_ranks(qtbot: QtBot, width: int) -> None:
    view = pg.GraphicsLayoutWidget()
    qtbot.addWidget(view)
    view.resize(1200, 300)
    bars = TokenBars(LIGHT)
    view.addItem(bars.plot)
    view.show()
    names = [f"{word}{n}" for n in range(6) for word in ("chases", "wonderful", "the", "house", "and")]
    bars.show(names, np.linspace(1, 0, 30), [1] * 30, 0.4, "mean of the gate")
    view.resize(width, 300)
    QApplication.processEvents()
    view.grab()
    axis = bars.plot.step_axis
    picture = QPicture()
    painter = QPainter(picture)
    texts = [text for _, _, text in axis.generateDrawSpecs(painter)[2]]
    painter.end()
    assert texts and len(texts) == len(axis.names) and texts[0] == "chases0" and texts[-1] == "and5"
    assert not any(text.isdigit() for text in texts)
    assert axis.height() <= 120 and bars.plot.vb.height() > 60


def test_gates_alone_are_no_blank_figure() -> None:
    def of(kind: str, *dims: str, unit: str = "1") -> Channel:
        return Channel(name=f"rnn:{kind}", kind=kind, dims=dims, shape=(None,) * len(dims), title=kind, unit=unit)

    gate, memory = of("gate", "step", "unit"), of("memory", "step", "unit")
    assert Openers.choose([gate]) == [] == Openers.choose([of("unit", "unit")])
    for found in ([gate, memory], [gate, of("opener", "token", "unit")], [of("unit", "unit", unit="step")]):
        assert Openers.choose(found) == found
