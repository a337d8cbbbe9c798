"""A larger font from the preferences: everything that has texts has room for them, at once and in what is made later."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pyqtgraph as pg
import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QFont, QFontMetricsF, QImage
from PySide6.QtWidgets import QApplication, QMainWindow
from pytestqt.qtbot import QtBot

from inspector.gui.widgets.callout import Callout
from inspector.gui.widgets.maps.colourbar import BAR, ColourBar
from inspector.gui.widgets.plots.axes import style_axis
from inspector.gui.widgets.plots.quiet_axis import QuietAxis
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.widgets.type_scale import FIRST
from inspector.gui.window.docking.dock_title import CutTitle

LARGER = 1.6


@pytest.fixture
def larger(qapp: QApplication) -> Iterator[None]:
    """Texts may be enlarged; afterwards they have their size again."""
    before = QFont(qapp.font())
    qapp.setProperty(FIRST, before.pointSizeF())
    yield
    qapp.setFont(before)
    qapp.setProperty(FIRST, None)


def enlarge(qapp: QApplication) -> None:
    font = QFont(qapp.font())
    font.setPointSizeF(font.pointSizeF() * LARGER)
    qapp.setFont(font)
    qapp.processEvents()


@pytest.mark.usefixtures("larger")
def test_labels_of_axes_grow_with_the_font(qapp: QApplication, qtbot: QtBot) -> None:
    shown = pg.GraphicsLayoutWidget()
    qtbot.addWidget(shown)
    plot = shown.addPlot(axisItems={"left": QuietAxis("left")})
    axis = plot.getAxis("left")
    style_axis(axis, LIGHT, "value")
    margins = 2 * axis.label.document().documentMargin()
    before = axis.label.boundingRect().height() - margins
    enlarge(qapp)
    style_axis(axis, LIGHT, "value")
    assert axis.label.boundingRect().height() - margins == pytest.approx(before * LARGER, rel=0.1)


@pytest.mark.usefixtures("larger")
@pytest.mark.parametrize("seen", [True, False], ids=["seen before", "seen after"])
def test_a_colour_bar_has_room_for_its_numbers(qapp: QApplication, qtbot: QtBot, *, seen: bool) -> None:
    shown = pg.GraphicsLayoutWidget()
    qtbot.addWidget(shown)
    bar = ColourBar(LIGHT)
    shown.addItem(bar)
    shown.resize(300, 300)
    if seen:
        shown.show()
        qapp.processEvents()
    enlarge(qapp)
    shown.show()
    qtbot.waitUntil(lambda: bar.font().pointSizeF() == qapp.font().pointSizeF())
    needed = QFontMetricsF(bar.font()).horizontalAdvance("-4.49e-26") + BAR + 6 + 5
    qtbot.waitUntil(lambda: bar.size().width() >= needed)
    assert bar._line() >= QFontMetricsF(bar.font()).height()


@pytest.mark.usefixtures("larger")
def test_a_callout_shows_all_its_words_once_they_are_larger(qapp: QApplication, qtbot: QtBot) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    window.resize(600, 700)
    callout = Callout(window)
    callout.say(
        "1 of 3", "A trained net has read the passage above. Each row is a unit, each column a character. " * 3, "Go"
    )
    callout.point_at(QRect(0, 0, 300, 300), window.rect())
    callout.show()
    window.show()
    enlarge(qapp)
    words = callout.words
    qtbot.waitUntil(lambda: words.height() >= words.heightForWidth(words.width()) > 0, timeout=30_000)


def test_the_title_of_a_narrow_dock_ends_in_an_ellipsis(qtbot: QtBot) -> None:
    """Its last letters are not cut through: as wide as "Under" and an ellipsis it is painted as these."""
    title = CutTitle("Under the cursor")
    qtbot.addWidget(title)

    def painted(text: str, width: int) -> QImage:
        title.setText(text)
        title.setFixedSize(width, 20)
        return title.grab().toImage()

    metrics = title.fontMetrics()
    width = metrics.horizontalAdvance("Under…") + 2
    assert painted("Under the cursor", width) == painted("Under…", width)
    assert painted("Under the cursor", 300) != painted("Under…", 300)


PLOT = """
import pyqtgraph as pg
from PySide6.QtWidgets import QApplication
application = QApplication([])
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.widgets.theme import LIGHT
view = pg.GraphicsLayoutWidget()
plot = StepPlot(None, LIGHT, label="value")
view.addItem(plot)
plot.set_title("hidden state, rnn.l0")
Legend(plot, [curve(LIGHT, 0)], ["a name"])
view.resize(900, 700)
view.show()
for _ in range(4):
    application.processEvents()
place = lambda item: item.mapRectToScene(item.boundingRect())
title, legend, box = place(plot.titleLabel.item), place(plot.legend_above), plot.vb.sceneBoundingRect()
print(application.primaryScreen().logicalDotsPerInch(), legend.top() - title.bottom(), box.top() - legend.bottom())
"""


@pytest.mark.parametrize("dots", [96, 144, 192])
def test_titles_and_legends_have_room_where_texts_have_more_dots_an_inch(dots: int) -> None:
    own = {"QT_QPA_PLATFORM": "offscreen", "QT_ENABLE_HIGHDPI_SCALING": "0", "QT_FONT_DPI": str(dots)}
    done = subprocess.run(
        [sys.executable, "-c", PLOT], env={**os.environ, **own}, capture_output=True, text=True, check=True, timeout=120
    )
    found, above, below = map(float, done.stdout.split())
    assert found == dots
    assert above > -8, "the margin of a title is all that a legend may reach into"
    assert below >= -1
