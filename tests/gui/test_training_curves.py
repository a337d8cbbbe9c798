"""The Training panel over a watched run: the list of curves, plots, maps, what a person reads and saves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from inspector.capture import Capture, Writer, open_capture
from inspector.gui.export.figure_files import save_data
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.training import Training
from inspector.gui.widgets.charts.long_series import LongSeries
from inspector.gui.widgets.charts.series import running_mean, thinned
from inspector.gui.widgets.plots.axes import LogAxis
from inspector.gui.widgets.theme import DARK
from inspector.records import Axis, Channel, Frame, Labels, Page, RunStart, RunStop

NUMBERS = np.array([0.0, 10.0, 20.0, 40.0])
LOSS = np.array([8.0, np.nan, np.inf, 0.25])
NAMES = ("a.weight", "a.bias", "b.weight")
NORMS = np.array([[1.0, 2, 3], [4, 5, 6], [7, np.nan, 9], [10, 11, 12]])
COUNTS = np.arange(24.0).reshape(4, 2, 3)


def put(writer: Writer, name: str, kind: str, dims: tuple[str, ...], values: np.ndarray, **about: object) -> None:
    """A channel with one page."""
    shape = (None,) * values.ndim
    channel = Channel(name=name, kind=kind, dims=dims, shape=shape, dtype=str(values.dtype), **about)  # type: ignore[arg-type]
    writer.write(channel)
    writer.write(Page(name, 0, (0,) * values.ndim, np.ascontiguousarray(values)))


def write(path: Path) -> Path:
    """A run as inspector.watch writes it."""
    one, table = ("iteration",), ("iteration", "parameter")
    with Writer(path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, step=0))
        writer.write(Frame(index=1, step=20))
        writer.write(Axis(name="iteration", title="iteration", unit="iteration"))
        put(writer, "training:iteration", "coordinate", one, NUMBERS, title="iteration")
        put(writer, "training:time", "coordinate", one, NUMBERS / 2, title="time", unit="s")
        put(writer, "training:loss", "series", one, LOSS, title="loss", unit="nat")
        put(writer, "training:logged", "series", ("iteration", "statistic"), NORMS[:, :2] / 100, title="logged",
            labels={"statistic": ("val_loss", "lr")})  # fmt: skip
        writer.write(Labels("parameter", NAMES, -1))
        for name, title in (("gradient/norm", "gradient norm"), ("update/ratio", "update / weight")):
            put(writer, f"parameters:{name}", "series", table, NORMS, title=title, scale="log")
        put(writer, "parameters:gradient/exponents", "histogram", (*table, "exponent"), COUNTS, title="exponents",
            unit="entries", labels={"exponent": ("0", "2^1", "2^2")})  # fmt: skip
        writer.write(RunStop("done"))
    return path / "a.inspect"


@pytest.fixture
def capture(tmp_path: Path) -> Iterator[Capture]:
    with open_capture(write(tmp_path)) as found:
        yield found


@pytest.fixture
def panel(capture: Capture) -> Iterator[Training]:
    stage = Stage(capture, (1000, 700))
    made = stage.panel("training")
    assert isinstance(made, Training) and made.state == "figure", made._error.toPlainText()
    yield made
    stage.close()


def show(panel: Training, text: str) -> None:
    panel.view.setCurrentIndex(panel.view.findText(text))
    QApplication.processEvents()
    assert panel.state == "figure", panel._error.toPlainText()


def test_loss_and_learning_rate_are_drawn_until_somebody_chooses(panel: Training) -> None:
    assert panel.tree.pinned == ("training:loss", "training:logged[val_loss]", "training:logged[lr]")
    assert panel.groups == ("loss", "lr"), "a validation loss is read against the loss"
    assert [name for _, name in panel.legends[0].entries] == ["loss (1 NaN, 1 +∞)", "val_loss"]
    assert panel.shown[1].titleLabel.lines == ("lr (1 NaN)",)
    bottom = panel.shown[-1].getAxis("bottom")
    assert bottom.labelText == "iteration"


def test_points_that_are_not_finite_are_marked_at_the_edges(panel: Training) -> None:
    made = panel.shown_plots[0]
    spots = {(spot.pos().x(), spot.symbol()) for spot in made.marks.points()}
    assert {(10.0, "x"), (20.0, "t1")} <= spots
    low, high = made.plot.vb.viewRange()[1]
    heights = {spot.symbol(): spot.pos().y() for spot in made.marks.points()}
    assert low < heights["x"] < low + 0.1 * (high - low) and high - 0.1 * (high - low) < heights["t1"] < high


def test_a_search_keeps_what_matches_and_says_how_many(panel: Training) -> None:
    panel.tree.search.setText("norm weight")
    assert panel.tree.listed == ("parameters:gradient/norm[a.weight]", "parameters:gradient/norm[b.weight]")
    assert panel.tree.count.text() == "2 of 9 curves"
    assert panel.groups == ("loss", "lr"), "what is drawn stays"
    panel.tree.search.setText("")
    assert panel.tree.count.text() == "9 curves"


def test_a_curve_that_is_selected_is_drawn_and_one_that_is_pinned_stays(panel: Training) -> None:
    panel.tree.select("parameters:gradient/norm[a.bias]")
    assert panel.groups == ("loss", "lr", "gradient norm")
    item = panel.tree._items["parameters:gradient/norm[b.weight]"]
    item.setCheckState(0, Qt.CheckState.Checked)
    panel.tree.select("training:loss")
    assert [name for _, name in panel.legends[-1].entries] == ["b.weight"]
    panel.tree._items["training:loss"].setCheckState(0, Qt.CheckState.Unchecked)
    panel.tree.select("")
    assert panel.groups == ("val_loss", "lr", "gradient norm")


def test_the_scale_can_be_chosen(panel: Training) -> None:
    panel.scale.setCurrentIndex(panel.scale.findText("logarithmic"))
    assert all(isinstance(plot.getAxis("left"), LogAxis) for plot in panel.shown)
    y = panel.shown_plots[0].lines[0].getData()[1]
    assert y[0] == pytest.approx(np.log10(8))
    panel.scale.setCurrentIndex(panel.scale.findText("linear"))
    assert panel.shown_plots[0].lines[0].getData()[1][0] == 8


def test_smoothing_keeps_the_line_pale(panel: Training) -> None:
    panel.smooth.setCurrentIndex(panel.smooth.findText("5 points"))
    made = panel.shown_plots[1]
    assert made.smooth[0].isVisible() and made.lines[0].isVisible()
    assert made.lines[0].opts["pen"].color().alphaF() < 0.5 < made.smooth[0].opts["pen"].color().alphaF()
    np.testing.assert_allclose(made.lines[0].getData()[1], [0.02, 0.05, np.nan, 0.11])


def test_curves_are_drawn_by_time_with_its_unit(panel: Training) -> None:
    panel.along.setCurrentIndex(panel.along.findText("time"))
    assert panel.shown[-1].getAxis("bottom").labelText == "time (s)"
    assert panel.shown_plots[0].series[0].x.tolist() == [0, 5, 10, 20]
    assert panel.mark[0].value() == 10, "the frame of iteration 20"
    panel.pointed(panel.shown[0], 4.0, 0.0)
    assert dict(panel.readout(panel.looking.position))["loss: loss [iteration 10]"] == "NaN nat"


def test_the_readout_says_the_last_value_with_unit_and_iteration(panel: Training) -> None:
    panel.looking.move(step=3)
    rows = dict(panel.readout(panel.looking.position))
    assert rows["loss: loss [iteration 40]"] == "0.25 nat" and rows["lr [iteration 40]"] == "0.11"


def test_zooming_one_plot_zooms_all_and_another_page_does_not_undo_it(panel: Training) -> None:
    panel.shown[0].vb.setXRange(5, 25, padding=0)
    assert all(plot.vb.viewRange()[0] == [5, 25] for plot in panel.shown)
    panel.redraw()
    assert panel.shown[1].vb.viewRange()[0] == [5, 25]
    panel.show_whole()
    assert panel.shown[0].vb.viewRange()[0][1] > 40


def test_a_table_is_a_map_whose_rows_are_searched_and_clicked(panel: Training) -> None:
    show(panel, "map of gradient norm")
    (shown,) = panel.maps.shown
    assert shown.names == NAMES
    plot = panel.maps.rows[0].plot
    assert plot.getAxis("bottom").tickStrings([0, 2, 3], 1, 1) == ["0", "20", "40"], "iterations, not positions"
    assert plot.getAxis("bottom").tickValues(-0.5, 3.5, 600)[0][1] == [0, 1, 2, 3], "where round iterations are"
    panel.clicked(plot, 2.0, 2.2)
    assert panel.groups == ("gradient norm",) and panel.tree.current == "parameters:gradient/norm[b.weight]"
    assert ("gradient norm: b.weight", "9") in panel.readout(panel.looking.position)
    panel.tree.search.setText("bias")
    assert panel.maps.shown[0].names == ("a.bias",) and panel.maps.shown[0].rows == (1,)
    panel.clicked(plot, 1.0, 0.0)
    assert panel.tree.current == "parameters:gradient/norm[a.bias]"
    assert ("gradient norm: a.bias", "5") in panel.readout(panel.looking.position)


def test_update_gradient_and_weight_stand_side_by_side(panel: Training) -> None:
    show(panel, "by layer: update, gradient, weight")
    assert [shown.channel.title for shown in panel.maps.shown] == ["update / weight", "gradient norm"]
    boxes = [row.plot.vb.sceneBoundingRect() for row in panel.maps.rows[:2]]
    assert boxes[0].right() < boxes[1].left() and abs(boxes[0].top() - boxes[1].top()) < 2
    panel.clicked(panel.maps.rows[1].plot, 3.0, 0.0)
    assert [row.level_line.isVisible() for row in panel.maps.rows[:2]] == [True, True], "the same row in both"


def test_histograms_are_a_map_by_bin_with_counts(panel: Training) -> None:
    show(panel, "histograms of exponents")
    assert [panel.of.itemText(n) for n in range(panel.of.count())] == ["a.weight", "a.bias"]
    plot = panel.maps.rows[0].plot
    panel.of.setCurrentIndex(1)
    panel.pointed(plot, 2.0, 1.0)
    assert ("exponents: 2^1", "16 entries") in panel.readout(panel.looking.position)
    show(panel, "curves")
    assert not plot.isVisible() and panel.groups == ("loss", "lr")


def test_saved_numbers_are_the_curves_that_are_drawn(panel: Training, tmp_path: Path) -> None:
    with np.load(save_data(panel, tmp_path / "a.npz")) as saved:
        np.testing.assert_array_equal(saved["training:loss"], LOSS)
        np.testing.assert_array_equal(saved["training:logged_lr_"], NORMS[:, 1] / 100)
        np.testing.assert_array_equal(saved["training:iteration"], NUMBERS)
        assert "parameters:gradient_norm" not in saved
    show(panel, "map of gradient norm")
    with np.load(save_data(panel, tmp_path / "b.npz")) as saved:
        np.testing.assert_array_equal(saved["parameters:gradient_norm"], NORMS)


def test_series_are_shown_whichever_frame_is_chosen(panel: Training) -> None:
    for frame in (0, 1):
        panel.looking.move(frame=frame)
        assert panel.state == "figure" and panel.groups == ("loss", "lr")
        assert panel.mark[0].value() == (0, 20)[frame]


def test_a_run_of_one_iteration_and_one_without_any_number(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        put(writer, "training:loss", "series", ("iteration",), np.array([2.0]), title="loss")
        put(writer, "training:b", "series", ("iteration",), np.array([np.nan]), title="b")
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as found:
        stage = Stage(found, (600, 400), DARK)
        panel = stage.panel("training")
        assert isinstance(panel, Training) and panel.state == "figure"
        assert dict(panel.readout(stage.cursor.position)) == {"loss [iteration 0]": "2"}
        panel.tree.select("training:b")
        assert panel.shown_plots[1].marks.points()[0].symbol() == "x"
        stage.close()


def test_long_curves_are_thinned_at_their_places() -> None:
    x = np.concatenate((np.arange(5_000.0), 5_000 + 100 * np.arange(5_000.0)))
    y = np.tile([0.0, 1.0, np.nan, 0.5], 2_500)
    thin = thinned(x, y)
    assert len(thin[0]) == 2400 and set(thin[1]) == {0.0, 1.0} and (np.diff(thin[0]) >= 0).all()
    assert thin[0][1199] == pytest.approx(5_000, abs=10), "half of the points, though not half of the iterations"


def test_a_huge_value_does_not_spoil_the_means_after_it() -> None:
    y = np.ones(50_000)
    y[100], y[200] = 1e300, np.inf
    x, mean = running_mean(np.arange(50_000.0), y, 50)
    np.testing.assert_allclose(mean[x > 400], 1.0)
    assert mean[x < 20].tolist() == [1.0] * int((x < 20).sum())


def test_what_was_not_logged_is_not_marked() -> None:
    y = np.array([np.nan, np.nan, 0.0, -np.inf])
    points = LongSeries.of(np.arange(4.0), y, np.array([True, False, True, True]))
    assert points.beyond(log=True).counts == {"NaN": 1, "−∞": 1, "≤ 0": 1}
    assert points.beyond(log=False).words == "1 NaN, 1 −∞"


@pytest.mark.parametrize("piece", [1, 7, 500, 50_000])
def test_a_series_that_grows_is_that_which_came_at_once(piece: int) -> None:
    count = 60_000 if piece > 100 else 3_000
    random = np.random.default_rng(0)
    x, y = np.cumsum(random.integers(0, 3, count)).astype(float), random.normal(size=count)
    y[random.integers(0, count, 50)], y[random.integers(0, count, 50)] = np.nan, np.inf
    x[5] = np.nan
    known = ~np.isnan(y) | (np.arange(count) % 2 == 0)
    grown, stop = LongSeries(), 0
    while stop < count:
        stop = min(count, stop + piece)
        late = np.where(np.arange(stop) > stop - 20, np.nan, y[:stop])  # the newest cells come later
        grown.update(x[grown.rows : stop], late[grown.rows :], known[grown.rows : stop])
    grown.update(x[grown.rows :], y[grown.rows :], known[grown.rows :])
    whole, placed = LongSeries.of(x, y, known), np.isfinite(x)
    for one in (grown, whole):
        np.testing.assert_array_equal(one.x, x[placed])
        np.testing.assert_array_equal(one.y, y[placed])
        assert one.beyond(log=True).counts == whole.beyond(log=True).counts
        assert one.span == (np.nanmin(y[np.isfinite(y)]), np.nanmax(y[np.isfinite(y)]))
        assert one.ends == (x[0], x[-1])
    shown_x, shown_y = grown.seen(x[0], x[-1])
    assert np.nanmax(shown_y) == whole.span[1] and len(shown_x) == len(shown_y) <= max(40_000, count // 16 + 2_000)
    low, high = x[count // 2], x[count // 2 + 100]
    near = grown.seen(low, high)
    assert near[0][0] <= low and near[0][-1] >= high and len(near[0]) < 400


def test_points_of_a_curve_that_is_logged_now_and_then_are_joined(tmp_path: Path) -> None:
    names = ("loss", "val_loss")
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        channel = Channel(name="training:logged", kind="series", dims=("iteration", "statistic"), shape=(None, None),
                          dtype="float64", title="logged", labels={"statistic": names})  # fmt: skip
        writer.write(channel)
        writer.write(Page(channel.name, 0, (0, 0), np.arange(6.0)[:, None]))
        for row in (0, 3, 5):
            writer.write(Page(channel.name, 0, (row, 1), np.full((1, 1), np.nan if row == 3 else 10.0 + row)))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as found:
        stage = Stage(found, (600, 400))
        panel: Any = stage.panel("training")
        series = panel.shown_plots[0].series[1]
        assert series.x.tolist() == [0, 3, 5], "a row in which it was not logged is no point"
        assert [name for _, name in panel.legends[0].entries] == ["loss", "val_loss (1 NaN)"]
        stage.close()


def test_what_matters_most_is_listed_and_drawn_first(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        put(writer, "modules:activation/zero", "series", ("iteration", "module"), np.ones((2, 1)), title="zeros")
        put(writer, "training:lr", "series", ("iteration",), np.ones(2), title="learning rate")
        put(writer, "training:loss", "series", ("iteration",), np.ones(2), title="loss")
        put(writer, "user:loss", "series", ("iteration",), np.ones(2), title="loss")
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as found:
        stage = Stage(found, (600, 400))
        panel: Any = stage.panel("training")
        assert panel.tree.keys[-1] == "modules:activation/zero[module 0]"
        names = [name for _, name in panel.legends[panel.groups.index("loss")].entries]
        assert names == ["training: loss", "user: loss"]
        stage.close()


def test_a_training_that_inspector_watches_is_drawn(tmp_path: Path) -> None:
    import torch

    import inspector

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    with inspector.watch(model, optimizer, path=tmp_path / "run.inspect", every=1):
        for _ in range(6):
            loss = model(torch.randn(5, 3)).square().mean()
            losses.append(float(loss.detach()))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    with open_capture(tmp_path / "run.inspect") as found:
        stage = Stage(found, (900, 600))
        panel: Any = stage.panel("training")
        assert panel.groups[0] == "loss" and "gradient norm, all parameters" in panel.groups
        assert panel.shown_plots[0].series[0].x.tolist() == [1, 2, 3, 4, 5, 6]
        np.testing.assert_allclose(panel.shown_plots[0].series[0].y, losses, rtol=1e-6)
        show(panel, "by layer: update, gradient, weight")
        assert panel.maps.shown[0].names == ("0.weight", "0.bias", "1.weight", "1.bias")
        panel.along.setCurrentIndex(panel.along.findText("time"))
        assert panel.state == "figure"
        stage.close()


@pytest.mark.parametrize(
    ("value", "log", "limits"),
    [(11.0, False, (9.9, 12.1)), (0.0, False, (-1.0, 1.0)), (100.0, True, (1.5, 2.5))],
    ids=["number", "zero", "logarithm"],
)
def test_a_constant_curve_is_a_line_in_the_middle(
    tmp_path: Path, value: float, log: bool, limits: tuple[float, float]
) -> None:
    """Its rounding is not drawn over the whole height."""
    values = np.full(40, value) * (1 + 1e-8 * np.arange(40))
    with Writer(tmp_path / "c.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, step=0))
        put(writer, "training:loss", "series", ("iteration",), values, title="loss")
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "c.inspect") as capture:
        stage = Stage(capture, (1000, 700))
        panel = stage.panel("training")
        assert isinstance(panel, Training)
        if log:
            panel.scale.setCurrentIndex(panel.scale.findText("logarithmic"))
        assert panel.shown[0].vb.viewRange()[1] == pytest.approx(limits, abs=1e-4)
        stage.close()
