"""Titles, legends and labels of axes in little room: wrapped where there is height for it, cut with an ellipsis, never
within a letter or beyond their plot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication, QGraphicsSceneHoverEvent

from inspector.gui.panel.figure import Figure
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.charts.curves import Curves
from inspector.gui.widgets.plots.legend import BESIDE, ROW, SAMPLE, Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.widgets.plots.title import wrapped
from inspector.gui.widgets.theme import LIGHT
from inspector.records import Channel

SENTENCE = "all items add up to the gradient of autograd (relative difference 7.0e-07)"
NAMES = ("input gate i", "forget gate f", "candidate g", "output gate o", "a fifth one")


@pytest.fixture
def figure(qapp: QApplication) -> Iterator[Figure]:
    made = Figure(lambda _line, _trace: None)
    yield made
    made.close()
    made.deleteLater()


def stand(figure: Figure, qapp: QApplication, width: int, height: int, label: str = "") -> Any:
    plot = StepPlot(None, LIGHT, label=label)
    figure.addItem(plot, row=0, col=0)
    figure.resize(width, height)
    figure.show()
    qapp.processEvents()
    return plot


def shown(plot: Any) -> list[str]:
    text: str = plot.titleLabel.text
    return text.split("<br>")


def test_lines_are_broken_at_words_and_no_further_than_there_is_room_below() -> None:
    lines = ["one two three four", "five"]
    assert wrapped(lines, 9, 4, len) == ["one two", "three", "four", "five"]
    assert wrapped(lines, 9, 3, len) == ["one two", "three four", "five"]  # the last part is cut later
    assert wrapped(lines, 9, 2, len) == lines
    assert wrapped(["unbreakable", "a"], 5, 4, len) == ["unbreakable", "a"]


def test_a_title_wraps_in_a_high_plot_and_is_cut_in_a_low_one(figure: Figure, qapp: QApplication) -> None:
    plot = stand(figure, qapp, 300, 300)
    plot.set_title("rnn.l0, weight_hh", SENTENCE)
    qapp.processEvents()
    assert " ".join(shown(plot)[1:]) == SENTENCE and len(shown(plot)) > 2
    assert plot.vb.geometry().top() >= plot.titleLabel.geometry().top() + plot.titleLabel.itemRect().height() - 6
    figure.resize(300, 120)
    qapp.processEvents()
    assert len(shown(plot)) == 2 and shown(plot)[1].endswith("…")
    figure.resize(900, 300)
    qapp.processEvents()
    assert shown(plot) == ["rnn.l0, weight_hh", SENTENCE]


def test_every_name_of_a_legend_is_inside_it_where_the_plot_is_high(figure: Figure, qapp: QApplication) -> None:
    plot = stand(figure, qapp, 190, 300)
    lines = [curve(LIGHT, n) for n in range(len(NAMES))]
    for line in lines:
        plot.addItem(line)
    legend = Legend(plot, lines, NAMES)
    qapp.processEvents()
    area = legend.boundingRect()
    assert [round(place.y() / ROW) for place in legend._places] == [0, 1, 2, 3, 4]
    assert area.height() >= 5 * ROW and area.height() < figure.height() / 2


def test_the_label_of_a_short_axis_is_cut_and_whole_again(figure: Figure, qapp: QApplication) -> None:
    label = "singular value of J & W <t>"
    plot = stand(figure, qapp, 300, 110, label)
    axis = plot.getAxis("left")
    cut = axis.label.toPlainText().strip()
    assert cut.endswith("…") and label.startswith(cut[:-1])
    assert axis.label.boundingRect().width() <= axis.size().height() + 40
    assert axis.labelText == "singular value of J &amp; W &lt;t>"  # what is told of the axis stays whole
    figure.resize(300, 400)
    qapp.processEvents()
    assert axis.label.toPlainText().strip() == label


def test_a_title_that_needs_fewer_lines_gives_back_its_height(figure: Figure, qapp: QApplication) -> None:
    plot = stand(figure, qapp, 300, 300)
    plot.set_title(SENTENCE)
    qapp.processEvents()
    assert len(shown(plot)) > 1
    wide = plot.getAxis("left").width()
    plot.getAxis("left").setWidth(200)  # less room for the title, the plot as large as before
    qapp.processEvents()
    qapp.processEvents()
    many, high = len(shown(plot)), plot.layout.rowMaximumHeight(0)
    assert high == plot.titleLabel.needs() and many > 2
    plot.getAxis("left").setWidth(wide)
    for _ in range(3):
        qapp.processEvents()
    assert len(shown(plot)) < many and plot.layout.rowMaximumHeight(0) == plot.titleLabel.needs() < high


def test_a_figure_may_be_deleted_while_its_titles_are_fitted(qapp: QApplication) -> None:
    for _ in range(20):
        made = Figure(lambda _line, _trace: None)
        plot = stand(made, qapp, 300, 300)
        plot.set_title(SENTENCE)
        qapp.processEvents()
        plot.getAxis("left").setWidth(200)
        made.resize(700, 300)
        made.close()
        made.deleteLater()
        del made, plot
        qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        qapp.processEvents()


def test_no_name_of_a_row_that_could_go_to_the_next_is_cut(figure: Figure, qapp: QApplication) -> None:
    """Of all widths of a plot, also where a name just fits: its last letters became an ellipsis."""
    plot = stand(figure, qapp, 500, 900)
    lines = [curve(LIGHT, n) for n in range(8)]
    legend = Legend(plot, lines, [f"feature {n}" for n in range(8)])
    metrics, cut = QFontMetricsF(legend._font), []
    for width in range(200, 330):
        figure.resize(width, 900)
        qapp.processEvents()
        area = legend.boundingRect().width()
        for (_, name), place in zip(legend.entries, legend._places, strict=True):
            room = area - (place.x() + SAMPLE + BESIDE)
            if metrics.elidedText(name, Qt.TextElideMode.ElideRight, room) != name:
                cut.append((width, name, room))
    assert len({place.y() for place in legend._places}) > 1 and not cut


def test_a_title_that_names_no_quantity_tells_what_the_legend_names(figure: Figure, qapp: QApplication) -> None:
    plot = stand(figure, qapp, 300, 300)
    plot.set_title("norms of the gradient, rnn.l0")
    Legend(plot, [curve(LIGHT, 0), curve(LIGHT, 1)], ["‖∂L/∂h‖", "loss"])
    formulas = {"‖∂L/∂h‖": "∂h: sum", "loss": "L: <mean>", "norm": "norm: root"}
    figure.scene().told = lambda text: "\n".join(said for name, said in formulas.items() if name in text.split("; "))
    plot.titleLabel.hoverEnterEvent(QGraphicsSceneHoverEvent(QEvent.Type.GraphicsSceneHoverEnter))
    told = plot.titleLabel.toolTip()
    assert all(part in told for part in ("norms of the gradient", "∂h: sum", "L: &lt;mean&gt;")) and "root" not in told
    plot.set_title("norm")
    plot.titleLabel.hoverEnterEvent(QGraphicsSceneHoverEvent(QEvent.Type.GraphicsSceneHoverEnter))
    assert "root" in plot.titleLabel.toolTip() and "sum" not in plot.titleLabel.toolTip()


def test_a_curve_without_a_title_is_called_what_is_measured(qapp: QApplication) -> None:
    """Its entry of the legend was a line without a name."""
    curves = Curves(StepRange(), LIGHT, label="value", log=False)
    about = {"kind": "norm", "dims": ("step",), "shape": (3,)}
    curves._remake([Channel(name="rnn.l0:own_norm", **about), Channel(name="rnn.l0:x", title="length", **about)])
    assert [name for _, name in curves.legend.entries] == ["own_norm", "length"]
