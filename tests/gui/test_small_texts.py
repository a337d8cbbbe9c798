"""Small texts of pictures and bars: legends, colour bars, what is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.figure import Figure
from inspector.gui.panel.over_iterations.plot_column import PlotColumn, Plotted
from inspector.gui.widgets.charts.long_series import LongSeries
from inspector.gui.widgets.charts.series_plot import Series
from inspector.gui.widgets.maps.colourbar import _plain
from inspector.gui.widgets.plain_text import tooltip
from inspector.gui.widgets.theme import DARK, LIGHT, Theme
from inspector.gui.window.bars.damage_bar import OneLine
from inspector.gui.window.docking.panels_on_demand import PanelPlace


def colours(fan: object) -> list[str]:
    """Colour and opacity of the lines that the legend names."""
    return [fan.lines[at].opts["pen"].color().name() for at in fan._named]


def test_the_lines_that_a_legend_names_have_colours_of_their_own(a_capture: Path, qapp: QApplication) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (800, 500))
        fan = stage.panel("spectra").fan
        assert len(fan._named) == 3 == len(set(colours(fan)))
        fan.set_theme(DARK)
        expected: Theme = DARK
        assert colours(fan) == [expected.series[number] for number in (0, 2, 3)]
        stage.close()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2000.0, "2000"), (12_345.0, "12300"), (1e5, "1e+05"), (0.0123456, "0.0123"), (-2000.0, "-2000"), (0.0, "0")],
)
def test_a_colour_bar_writes_thousands_out(value: float, shown: str) -> None:
    assert _plain(value) == shown


def test_how_much_is_damaged_is_read_however_narrow_the_bar(qtbot: QtBot) -> None:
    line = OneLine()
    qtbot.addWidget(line)
    line.resize(420, 20)
    line.say(
        "14 damaged pages: "
        + "rnn.l0:h, steps 0 to 63, its bytes are not those that were written " * 3
        + "… and 13 more."
    )
    assert line.text().startswith("14 damaged pages") and line.text().endswith("and 13 more.")


def test_a_plot_that_is_used_again_has_no_unit_of_the_one_before(qtbot: QtBot) -> None:
    figure = Figure(lambda _where, _problem: None)
    qtbot.addWidget(figure)
    column = PlotColumn(figure, LIGHT)
    series = (Series("", LongSeries.of(np.arange(3.0), np.arange(3.0))),)
    column.draw([Plotted("loss: ratio to a", "×", series)], "iteration")
    axis = column.shown[0].plot.getAxis("left")
    assert axis.labelText == "×" and axis.label.isVisible()
    column.draw([Plotted("loss", "1", series)], "iteration")
    assert axis.labelText == "" and not axis.label.isVisible()


def test_lines_of_a_tooltip_stay_lines() -> None:
    assert tooltip("frame 2\na <b>note</b>") == "<qt>frame 2<br>a &lt;b&gt;note&lt;/b&gt;</qt>"


class Seen(QWidget):
    """Notes the least height of its place whenever it is shown there."""

    def __init__(self, place: PanelPlace) -> None:
        super().__init__()
        self.place, self.heights = place, list[int]()
        self.setMinimumHeight(200)

    def showEvent(self, event: QShowEvent) -> None:
        """Shown again."""
        self.heights.append(self.place.minimumSizeHint().height())


def test_a_place_is_never_as_high_as_the_panel_and_two_beside_each_other(qtbot: QtBot) -> None:
    place, column = PanelPlace(), QWidget()
    qtbot.addWidget(place)
    column.setMinimumHeight(200)
    QVBoxLayout(column)
    place.put(panel := Seen(place))
    place.show()
    place.put_beside(column, QLabel("a"))
    place.take_beside()
    assert 200 <= max(panel.heights) < 300
