"""Plots of a figure that are laid out anew, below a line of text of fixed height."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from inspector.gui.panel.arranged import Arranged
from inspector.gui.panel.figure import Figure
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.widgets.wrapped_text import WrappedText

Parts = tuple[Figure, Arranged, WrappedText, StepPlot, StepPlot]


@pytest.fixture
def parts(qtbot: Any) -> Parts:
    figure = Figure(lambda *_: None)
    qtbot.addWidget(figure)
    text, first, second = WrappedText(LIGHT), StepPlot(None, LIGHT), StepPlot(None, LIGHT)
    figure.resize(800, 300)
    figure.show()
    return figure, Arranged(figure, [text, first, second]), text, first, second


def beside(parts: Parts) -> None:
    _, arranged, text, first, second = parts
    arranged.place({text: (0, 0, 1, 2), first: (1, 0, 1, 1), second: (1, 1, 1, 1)}, (0, 1), (1, 1))


def above(parts: Parts) -> None:
    _, arranged, text, first, second = parts
    arranged.place({text: (0, 0, 1, 2), first: (1, 0, 1, 2), second: (2, 0, 1, 2)}, (0, 1, 1), (1, 0))


@pytest.mark.parametrize("lines", [1, 2, 6])
def test_every_layout_fills_the_figure(parts: Parts, lines: int) -> None:
    """While the text is alone the whole is as high as it, and was so afterwards too."""
    figure, _, text, first, second = parts
    for number, place in enumerate((beside, above, beside, above)):
        figure.resize(800, 300 + 100 * (number % 2))
        text.set_text("\n".join(["a line"] * lines))
        place(parts)
        assert figure.ci.geometry() == figure.range
        QApplication.processEvents()
        assert figure.ci.geometry() == figure.range
        assert first.vb.height() > 60 and second.vb.height() > 60


def test_plots_that_come_back_have_their_room_again(parts: Parts) -> None:
    figure, _, _, first, second = parts
    beside(parts)
    for plot in (first, second):
        plot.hide()
    QApplication.processEvents()
    figure.grab()
    for plot in (first, second):
        plot.show()
    QApplication.processEvents()
    figure.grab()
    assert figure.ci.geometry() == figure.range and first.vb.height() > 60
