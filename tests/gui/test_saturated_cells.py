"""Dots on what is saturated in the map of States: on those cells and no others, against the numbers themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QImage
from torch import nn

import inspector
from inspector.capture import Capture, Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.states import States
from inspector.gui.widgets.images.saturated_cells import dotted
from inspector.gui.widgets.theme import DARK, DIVERGING, LIGHT, SEQUENTIAL, Theme, colour_table, luminance
from inspector.records import UNBOUNDED, Channel, Frame, Labels, Page, RunStart, RunStop

STEPS, UNITS = 9, 4
VALUES = np.tanh(np.random.default_rng(3).normal(size=(STEPS, UNITS)) * 2.5).astype(np.float32)
VALUES[4, 1], VALUES[5, 2] = np.nan, np.inf
BEYOND = np.array([[np.isfinite(v) and abs(v) > 0.97 for v in row] for row in VALUES.tolist()])


def captured(path: Path, *, counted: bool = True, why: str = "") -> Capture:
    """A tanh state of which the saturation was counted, or one with no bound that is known."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(
            Channel(name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=VALUES.shape, scale="diverging",
                    title="hidden state")
        )  # fmt: skip
        writer.write(Page("rnn.l0:h", 0, (0, 0), VALUES))
        if why:
            writer.write(Labels(f"{UNBOUNDED}rnn.l0:h", (why,), 0))
        if counted:
            left, right = (VALUES < -0.97).mean(0), (VALUES > 0.97).mean(0)
            table = np.stack((left, right, 1 - left - right)).astype(np.float64)
            writer.write(
                Channel(name="rnn.l0:h/saturation", kind="unit", dims=("statistic", "unit"), shape=table.shape,
                        dtype="float64", labels={"statistic": ("left", "right", "graded")})
            )  # fmt: skip
            writer.write(Page("rnn.l0:h/saturation", 0, (0, 0), table))
        writer.write(RunStop("done"))
    return open_capture(path)


def shown(capture: Capture, theme: Theme = LIGHT) -> tuple[Stage, States]:
    stage = Stage(capture, (900, 500), theme)
    panel = stage.panel("states")
    assert isinstance(panel, States)
    return stage, panel


def picture(panel: States) -> QImage:
    return panel.figure.grab().toImage()


def cell_pixels(panel: States, image: QImage, step: int, row: int) -> set[int]:
    """All colours inside of a cell, without its edges."""
    view, box = panel.figure, panel.row.plot.vb
    first, last = (
        view.mapFromScene(box.mapViewToScene(QPointF(step + dx, row + dy))) for dx, dy in ((-0.4, -0.4), (0.4, 0.4))
    )
    return {image.pixel(x, y) for x in range(first.x(), last.x()) for y in range(first.y(), last.y())}


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_dots_are_on_saturated_cells_alone(tmp_path: Path, theme: Theme) -> None:
    assert 3 < BEYOND.sum() < BEYOND.size - 3
    with captured(tmp_path / "a.inspect") as capture:
        stage, panel = shown(capture, theme)
        for order in ("as they are", "by variance"):
            panel.order.setCurrentText(order)
            image = picture(panel)
            for step in range(STEPS):
                for row in range(UNITS):
                    dots = len(cell_pixels(panel, image, step, row)) > 1
                    assert dots == BEYOND[step, panel.unit_at(row)], (order, step, row)
        panel.order.setCurrentIndex(0)
        image = picture(panel)  # what is no number keeps its colour, whole
        assert cell_pixels(panel, image, 4, 1) == {int(colour_table("diverging")[255])}
        assert cell_pixels(panel, image, 5, 2) == {int(colour_table("diverging")[254])}
        stage.close()


def test_they_are_told_in_numbers_and_can_be_switched_off(tmp_path: Path) -> None:
    with captured(tmp_path / "a.inspect") as capture:
        stage, panel = shown(capture)
        finite = [abs(float(v)) > 0.97 for v in VALUES.reshape(-1) if not np.isinf(v)]
        told = f"{100 * (sum(finite) + 1) / VALUES.size:.3g} % saturated (beyond ±0.97)"  # an infinity counts above
        assert told in panel.row.plot.titleLabel.text
        assert [text for _, text in panel.row.bar._notes()] == ["NaN", "±∞", "saturated"]
        for step in range(STEPS):
            stage.cursor.move(step=step, unit=0, place="rnn.l0")
            rows = dict(panel.labelled_readout())
            assert rows[f"h saturated [{step}]  rnn.l0"] == f"{BEYOND[step].sum()} of {UNITS} units"
        stage.cursor.move(step=None, unit=None)
        panel.saturated.switch.setChecked(False)
        image = picture(panel)
        assert all(len(cell_pixels(panel, image, s, r)) == 1 for s in range(STEPS) for r in range(UNITS))
        assert "saturated" not in [text for _, text in panel.row.bar._notes()]
        assert told in panel.row.plot.titleLabel.text
        stage.close()


def test_a_state_without_a_bound_has_no_mark(tmp_path: Path) -> None:
    with captured(tmp_path / "a.inspect", counted=False) as capture:
        stage, panel = shown(capture)
        image = picture(panel)
        assert all(len(cell_pixels(panel, image, s, r)) == 1 for s in range(STEPS) for r in range(UNITS))
        assert "saturated" not in panel.row.plot.titleLabel.text + str(panel.row.bar._notes())
        stage.cursor.move(step=2, unit=0, place="rnn.l0")
        assert not any("saturated" in what for what, _ in panel.labelled_readout())
        assert not panel.saturated.switch.isEnabled()
        stage.close()


class OwnTanh(nn.Module):
    """A cell written by hand whose state is a tanh all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, every = torch.zeros(1, 4), []
        for t in range(x.shape[1]):
            h = torch.tanh(self.w(x[:, t]) + self.u(h))
            every.append(h)
        return torch.stack(every, 1)


class PlainCell(OwnTanh):
    """nn.RNNCell in a loop of the model's own."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNNCell(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, every = torch.zeros(1, 4), []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            every.append(h)
        return torch.stack(every, 1)


@pytest.mark.parametrize(
    ("model", "have"),
    [
        (lambda: nn.RNN(3, 4, batch_first=True), True),
        (PlainCell, True),
        (lambda: nn.RNN(3, 4, nonlinearity="relu", batch_first=True), False),
        (lambda: nn.GRU(3, 4, batch_first=True), False),
        (lambda: nn.LSTM(3, 4, batch_first=True), False),
        (OwnTanh, True),
    ],
    ids=["rnn", "cell", "relu", "gru", "lstm", "by hand"],
)
def test_the_tooltip_says_exactly_which_states_have_dots(
    tmp_path: Path, model: Callable[[], nn.Module], have: bool
) -> None:
    inspector.run(model(), torch.randn(1, 12, 3), out=tmp_path / "a.inspect", only=("states", "saturation")).close()
    with open_capture(tmp_path / "a.inspect") as capture:
        stage, panel = shown(capture)
        states = panel.channels()
        assert states and {panel.saturated.bounds(state) is not None for state in states} == {have}
        told = panel.saturated.switch.toolTip()
        assert "nn.RNN and nn.RNNCell with tanh has them; not h and c of an LSTM" in told and "written by hand" in told
        stage.close()


def test_density_has_no_dots_to_switch(tmp_path: Path) -> None:
    with captured(tmp_path / "a.inspect") as capture:
        stage, panel = shown(capture)
        assert panel.saturated.switch.isEnabled()
        panel.cells.setCurrentText("density")
        assert not panel.saturated.switch.isEnabled() and "% saturated" in panel.row.plot.titleLabel.text
        stage.close()


def test_a_state_by_hand_without_a_bound_says_what_makes_it(tmp_path: Path) -> None:
    why = "at step 0 it is a sum (add), not a tanh"
    with captured(tmp_path / "a.inspect", counted=False, why=why) as capture:
        stage, panel = shown(capture)
        assert not panel.saturated.switch.isEnabled() and why in panel.saturated.switch.toolTip()
        stage.close()
    with captured(tmp_path / "b.inspect") as capture:
        stage, panel = shown(capture)
        assert panel.saturated.switch.isEnabled() and "0.97" in panel.saturated.switch.toolTip()
        stage.close()


def test_a_dot_is_seen_on_every_colour_of_every_map() -> None:
    tile = dotted().textureImage()
    pixels = [tile.pixelColor(x, y) for x in range(tile.width()) for y in range(tile.height())]
    dots = {luminance(pixel.rgb() & 0xFFFFFF) + 0.05 for pixel in pixels if pixel.alpha()}
    for name in ("sequential", "diverging", "log", "attention", *DIVERGING, *SEQUENTIAL):
        for colour in colour_table(name)[:253].tolist():
            ground = luminance(QColor.fromRgb(colour).rgb() & 0xFFFFFF) + 0.05
            assert max(max(dot, ground) / min(dot, ground) for dot in dots) >= 4.5


def test_every_row_and_column_of_pixels_has_dots() -> None:
    """A unit of two pixels, or one, does not fall between them."""
    tile = dotted().textureImage()
    assert tile.width() == tile.height()
    for at in range(tile.width()):
        for lies in (lambda n, at=at: (n, at), lambda n, at=at: (at, n)):
            line = [tile.pixelColor(*lies(n)) for n in range(tile.width())]
            assert {pixel.name() for pixel in line if pixel.alpha()} == {"#000000", "#ffffff"}
