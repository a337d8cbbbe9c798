"""Marks and texts of plots that could not be seen, or stood in another place than what they name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyqtgraph as pg
import pytest
from panel_captures import channel, shown
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

from inspector.gui.state.cursor import Cursor
from inspector.gui.widgets.plots.quiet_axis import QuietAxis
from inspector.gui.widgets.strip_ends import MORE
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.widgets.token_strip import TokenStrip

LAGS = 12
NORMS = np.exp(-0.05 * np.arange(LAGS)) * np.array([[1.0], [1.0], [0.7], [1.3]])
NORMS[:, 0] = 1.0
MAP = np.where(np.add.outer(np.arange(LAGS), np.arange(LAGS)) < LAGS, 0.5, np.nan)


def test_lags_has_curve_and_map_over_the_same_steps_and_little_room_that_is_empty(tmp_path: Path) -> None:
    parts = (
        channel("cell:jacobian/lag", "lag", ("statistic", "lag"), NORMS, compare="ratio", scale="log",
                labels={"statistic": ("median", "mean", "p10", "p90")}),
        channel("cell:jacobian/lag_map", "map", ("start", "lag"), MAP, scale="log"),
    )  # fmt: skip
    with shown(tmp_path, "lags", *parts) as (_, panel):
        curve, below = (plot.vb.viewRange() for plot in (panel.plot, panel.row.plot))
        assert curve[0] == pytest.approx(below[0])
        assert curve[0] == pytest.approx([-0.5, LAGS - 0.5])
        low, high = curve[1]
        drawn = np.log10(NORMS)
        assert high - low <= 1.6 * max(0.4, drawn.max() - drawn.min()) and low < drawn.min() and high > drawn.max()
        legend = panel.legend
        number = next(n for n, (_, name) in enumerate(legend.entries) if name == "p10 to p90")
        picture = panel.grab().toImage()
        place = legend.mapToScene(legend._places[number])
        at = panel.figure.mapTo(panel, panel.figure.mapFromScene(place))
        ratio = picture.devicePixelRatio()
        colours = [picture.pixelColor(round((at.x() + 8) * ratio), round((at.y() + y) * ratio)) for y in range(4, 14)]
        assert sum(distance(one, QColor(LIGHT.window)) > 40 for one in colours) >= 6, "a band, and no hair"


def distance(one: QColor, other: QColor) -> int:
    """Of two colours, over red, green and blue."""
    pairs = ((one.red(), other.red()), (one.green(), other.green()), (one.blue(), other.blue()))
    return sum(abs(a - b) for a, b in pairs)


def test_a_label_stands_in_the_middle_of_an_axis_that_keeps_its_size(qapp: QApplication) -> None:
    plot = pg.PlotItem(axisItems={"bottom": QuietAxis("bottom")})
    axis = plot.getAxis("bottom")
    axis.setHeight(36)
    plot.resize(200, 300)
    plot.layout.activate()
    axis.setLabel("largest")
    size = axis.label.boundingRect()
    assert axis.label.pos().y() + size.height() <= axis.size().height() + 6
    assert axis.label.pos().x() == pytest.approx((axis.size().width() - size.width()) / 2, abs=2)


def test_a_strip_that_goes_on_says_so_at_its_ends(qapp: QApplication) -> None:
    cursor = Cursor()
    strip = TokenStrip(cursor, LIGHT)
    strip.resize(200, 30)
    strip.set_sequence((), 40)
    assert strip.more == (False, True)
    picture = strip.grab().toImage()
    ratio = picture.devicePixelRatio()
    corner = picture.pixelColor(round((strip.width() - MORE + 1) * ratio), round(1 * ratio))
    assert corner == QColor(LIGHT.raised)
    strip._left = 100
    assert strip.more == (True, True)
    strip.set_sequence((), 3)
    strip._left = 0
    assert strip.more == (False, False)
