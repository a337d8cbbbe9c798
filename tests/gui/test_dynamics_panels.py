"""Spectra and Dynamics: what they say in words, what the cursor does to them, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from inspector.analysis.lyapunov import lyapunov_verdict
from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.dynamics import Dynamics
from inspector.gui.panels.spectra import Spectra
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.fan import subscript
from inspector.gui.widgets.plots.source import line_of
from inspector.gui.widgets.theme import DARK
from inspector.records import Channel, Frame, Page, Refusal, RunStart, RunStop, Scalar

Record = tuple[Channel, np.ndarray] | Scalar | Refusal


@contextmanager
def shown(path: Path, key: str, *records: Record) -> Iterator[tuple[Stage, object]]:
    """The panel over a capture of these channels and scalars."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for record in records:
            if isinstance(record, (Scalar, Refusal)):
                writer.write(record)
            else:
                writer.write(record[0])
                writer.write(Page(record[0].name, 0, (0,) * record[1].ndim, record[1]))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        stage = Stage(capture, (900, 520), DARK)
        yield stage, stage.panel(key)
        stage.close()


def channel(name: str, kind: str, dims: tuple[str, ...], values: np.ndarray, **more: object) -> Record:
    return Channel(
        name=name, kind=kind, dims=dims, shape=values.shape, dtype=str(values.dtype), title=name, **more
    ), values


def test_eigenvalues_of_the_jacobian_follow_the_cursor(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 520))
        panel = stage.panel("spectra")
        assert isinstance(panel, Spectra)
        panel.which.setCurrentText("eigenvalues of Jₜ, cursor")
        whole = capture.array("rnn.l0:jacobian/eigenvalues")
        for step in (7, 120):
            stage.cursor.move(step=step)
            np.testing.assert_array_equal(np.stack(panel.plane.dots.getData(), 1), whole[step])
            assert f"step {step}" in panel.plane.titleLabel.text and f"step {step}" in panel.summary.text
            assert f"rnn.l0:jacobian/eigenvalues[{step}]" in panel.data()
            assert panel.ranks.line.getData()[0].tolist() == [1, 3, 5, 7]  # the ninth is 0 and has no logarithm
            np.testing.assert_array_equal(
                panel.singular_values(), capture.array("rnn.l0:jacobian/singular_values")[step]
            )
        rows = dict(panel.readout(stage.cursor.position))
        assert float(rows["σ₁ [120]  rnn.l0"]) == pytest.approx(
            capture.array("rnn.l0:jacobian/singular_values")[120, 0]
        )
        stage.close()


def test_thinned_eigenvalues_are_those_of_the_step_before(tmp_path: Path) -> None:
    values = np.full((10, 2, 2), np.nan)
    values[::4] = np.arange(3)[:, None, None]
    name = "rnn.l0:jacobian/eigenvalues"
    record = channel(name, "spectrum", ("step", "eigenvalue", "part"), values, labels={"part": ("re", "im")})
    with shown(tmp_path / "a.inspect", "spectra", Scalar(f"{name}_every", 0, 4.0), record) as (stage, panel):
        assert isinstance(panel, Spectra)
        stage.cursor.move(step=7)
        assert panel.step_shown(panel.matrix()) == 4 and panel.eigenvalues()[0].tolist() == [[1, 1], [1, 1]]
        assert not panel.fan.plot.isVisible() and not panel.ranks.isVisible()


def test_the_plane_is_round_and_holds_every_eigenvalue(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 520))
        panel = stage.panel("spectra")
        (left, right), (bottom, top) = panel.plane.vb.viewRange()
        box = panel.plane.vb.screenGeometry()
        assert (right - left) / box.width() == pytest.approx((top - bottom) / box.height(), rel=0.02)
        values = capture.array("rnn.l0:weight/hidden/eigenvalues")
        assert left < min(-1, values.min()) and right > max(1, values.max())
        stage.close()


@pytest.mark.parametrize(("bound", "words"), [(0.9, "must vanish"), (1.1, "may explode")])
def test_the_condition_on_the_weights_is_said_in_words(tmp_path: Path, bound: float, words: str) -> None:
    place = "rnn.l0:weight/hidden"
    record = channel(
        f"{place}/eigenvalues", "spectrum", ("eigenvalue", "part"), np.eye(2), labels={"part": ("re", "im")}
    )
    numbers = [
        Scalar(f"{place}/{name}", 0, v)
        for name, v in (("spectral_radius", 0.5), ("non_normality", 0.25), ("bound", bound))
    ]
    with shown(tmp_path / "a.inspect", "spectra", *numbers, record) as (stage, panel):
        assert isinstance(panel, Spectra)
        assert (
            words in panel.summary.text
            and "ρ = 0.5" in panel.summary.text
            and "non-normality = 0.25" in panel.summary.text
        )
        stage.cursor.move(step=0)
        assert dict(panel.readout(stage.cursor.position))[f"non-normality of {panel.symbol()}"] == "0.25"


def test_values_that_are_zero_lie_below_the_edge_and_are_mentioned(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 520))
        panel = stage.panel("spectra")
        assert "or 0" in panel.summary.text
        low, high = panel.fan.plot.vb.viewRange()[1]
        assert low < 0 < high and high - low < 12
        stage.close()


def test_chaos_and_points_are_said_in_words_and_points_are_marked(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 520))
        panel = stage.panel("dynamics")
        assert isinstance(panel, Dynamics)
        text = panel.summary.text
        assert "chaotic: λ₁ = 0.2" in text and "Kaplan–Yorke dimension 2.5" in text
        assert "1 stable (filled) and 2 unstable (open)" in text and "1 of them outside the view" in text
        assert len(panel.plane.stable.data) == 1 and len(panel.plane.unstable.data) == 2
        assert "1 of them −∞" in panel.ranks.titleLabel.text
        assert not panel.readout(stage.cursor.position)
        stage.cursor.move(step=3)
        rows = dict(panel.readout(stage.cursor.position))
        assert rows["λ₁ in nats a step  rnn.l0"] == "0.2" and rows["Kaplan–Yorke dimension"] == "2.5"
        stage.close()


def test_points_are_those_of_the_input_that_is_held(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 520))
        panel = stage.panel("dynamics")
        assert isinstance(panel, Dynamics)
        assert [panel.held_input.itemText(i) for i in range(3)] == ["mean input", "'<b>↵'", "zero input"]
        assert "points, constant input: mean input, 1 of them" in panel.summary.text
        panel.held_input.setCurrentIndex(1)
        assert (
            "1 stable (filled) and 0 unstable (open) fixed or slow points, constant input: '<b>↵'" in panel.summary.text
        )
        assert [list(marks.getData()[0]) for marks in (panel.plane.stable, panel.plane.unstable)] == [[2.0], []]
        panel.held_input.setCurrentIndex(2)
        assert "no fixed or slow point was found, constant input: zero input" in panel.summary.text
        assert not len(panel.plane.stable.data) and not len(panel.plane.unstable.data)
        panel.redraw()
        assert panel.held_input.currentText() == "zero input"
        stage.close()


def test_points_of_an_older_capture_and_refused_ones(tmp_path: Path) -> None:
    """Captures of before have no choice of inputs; a refusal stands below what the panel has otherwise."""
    way, two = np.arange(12.0).reshape(6, 2), np.ones((2, 2))
    records = [
        channel("rnn.l0:trajectory", "trajectory", ("step", "component"), way),
        channel("rnn.l0:fixed_points", "fixed_point", ("point", "component"), two),
        channel("rnn.l0:fixed_points/statistics", "fixed_point", ("statistic", "point"), np.array([[1.0, 0.0]]),
                labels={"statistic": ("stable",)}),
    ]  # fmt: skip
    with shown(tmp_path / "a.inspect", "dynamics", *records) as (_, panel):
        assert isinstance(panel, Dynamics)
        assert not panel.held_input.isVisible() and not panel.held_caption.isVisible()
        assert panel.summary.text == "1 stable (filled) and 1 unstable (open) fixed or slow points."
    with shown(tmp_path / "b.inspect", "dynamics", *records[1:]) as (_, panel):
        assert panel.summary.text.endswith("points, shown where the trajectory is computed too.")
    refused = Refusal("rnn.l0:fixed_points", "Fixed points of 600 state entries cost too much.")
    with shown(tmp_path / "c.inspect", "dynamics", records[0], refused) as (_, panel):
        assert panel.summary.text == "Fixed points of 600 state entries cost too much."


def test_hovering_the_plane_moves_the_cursor_to_the_nearest_step(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 520))
        panel = stage.panel("dynamics")
        way = capture.array("rnn.l0:trajectory")
        for step in (0, 111, 299):
            panel.pointed(panel.plane, float(way[step, 0]) + 1e-6, float(way[step, 1]))
            assert stage.cursor.position.step == step
            assert [float(v) for v in np.concatenate(panel.plane.here.getData())] == pytest.approx(way[step, :2])
        panel.up.setCurrentText("3")
        panel.pointed(panel.plane, float(way[50, 0]), float(way[50, 2]))
        assert stage.cursor.position.step == 50 and "component 3" in panel.plane.getAxis("left").labelText
        assert "10 %" in panel.plane.getAxis("left").labelText
        panel.pointed(panel.running.plot, 17.3, 0.0)
        assert stage.cursor.position.step == 17
        panel.pointed(panel.ranks, 3.0, 0.0)
        assert stage.cursor.position.step == 17
        stage.close()


def test_what_was_not_computed_is_not_drawn(tmp_path: Path) -> None:
    way = np.arange(12.0).reshape(6, 2)
    record = channel("rnn.l0:trajectory", "trajectory", ("step", "component"), way, method="exact")
    with shown(tmp_path / "a.inspect", "dynamics", record) as (_, panel):
        assert isinstance(panel, Dynamics)
        assert panel.plane.isVisible() and not panel.running.plot.isVisible() and not panel.ranks.isVisible()
        assert panel.summary.text == "" and set(panel.data()) == {"rnn.l0:trajectory"}


def test_states_that_are_nan_leave_gaps(tmp_path: Path) -> None:
    way = np.full((6, 2), np.nan)
    record = channel("rnn.l0:trajectory", "trajectory", ("step", "component"), way)
    exponents = channel("rnn.l0:lyapunov/exponents", "lyapunov", ("exponent",), np.full(3, -np.inf))
    with shown(tmp_path / "a.inspect", "dynamics", record, exponents) as (stage, panel):
        assert isinstance(panel, Dynamics)
        assert panel.state == "figure" and "mapped exactly to zero" in panel.summary.text
        panel.pointed(panel.plane, 0.0, 0.0)
        assert stage.cursor.position.step is None


@pytest.mark.parametrize(("largest", "words"), [
    (0.1, "doubles in 6.93 steps"), (-0.05, "forgets over 1/|λ₁| = 20 steps: λ₁ = −0.05"), (0.001, "longer than these 100"),
    (-np.inf, "mapped exactly to zero"), (np.nan, "not known"),
])  # fmt: skip
def test_verdicts(largest: float, words: str) -> None:
    assert words in lyapunov_verdict(largest, 100).sentence


def test_digits_become_subscripts() -> None:
    assert subscript("12") == "₁₂" and subscript("<b>") == "<b>", "names in a legend are plain text"


@pytest.mark.parametrize(("steps", "every"), [(90, 30), (4000, 64), (4000, 3)])
def test_lines_join_the_steps_that_were_computed_and_nan_stays_a_gap(tmp_path: Path, steps: int, every: int) -> None:
    values = np.full((steps, 9), np.nan)
    values[::every] = np.linspace(2, 0.5, 9)
    values[every] = np.nan  # computed, and not finite
    name = "rnn:jacobian/singular_values"
    records = (
        channel(
            name,
            "spectrum",
            ("step", "rank"),
            values,
            method=f"full SVD; every {every} steps",
            labels={"rank": tuple("123456789")},
        ),
        Scalar(f"{name}_every", 0, every),
    )
    with shown(tmp_path / "a.inspect", "spectra", *records) as (_, panel):
        assert isinstance(panel, Spectra)
        x, y = panel.fan.lines[0].getData()
        assert len(x) == len(panel.fan.edges[0].xData) <= 600
        assert (x % every == 0).all() and (np.diff(x) == x[1]).all()
        assert np.isnan(y).sum() == 1 and np.nanmax(y) == pytest.approx(np.log10(2))
        assert f"every {every} steps" in panel.note
        rows = dict(panel.readout(Position(step=2 * every + 1)))
        assert rows[f"σ₁ [{2 * every}]  rnn"] == "2"


@pytest.mark.parametrize(("steps", "every"), [(90, 30), (40_000, 7)])
def test_a_curve_joins_them_too(tmp_path: Path, steps: int, every: int) -> None:
    values = np.full(steps, np.nan)
    values[::every] = 1 + np.arange(len(values[::every]))
    name = "rnn:jacobian/spectral_radius"
    records = (channel(name, "jacobian", ("step",), values), Scalar(f"{name}_every", 0, every))
    with shown(tmp_path / "a.inspect", "spectra", *records) as (stage, _):
        x, y = line_of(stage.capture, name, 0, (0, steps))
        assert len(x) <= 2400 and np.isfinite(y).all()
        assert y.min() == 1 and y.max() == len(values[::every])
        np.testing.assert_array_equal(x % every, 0)
