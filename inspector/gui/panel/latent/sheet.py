"""One of several views of a panel, with controls and plots of its own; of which one is shown at a time."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt
from PySide6.QtWidgets import QComboBox, QWidget

from inspector.gui.panel.base import Panel, caption, chooser
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
NORMAL = 1.96
"""Standard deviations on either side within which 95 % of a normal distribution are."""


def place(grid: Any, item: Any, row: int, *, on: bool, columns: int = 1, column: int = 0) -> None:
    """Show an item in a row of a layout, or take it out, so that it leaves no room."""
    there = item in (grid.itemAt(n) for n in range(grid.count()))
    if on and not there:
        grid.addItem(item, row, column, 1, columns)
    elif there and not on:
        grid.removeItem(item)
    item.setVisible(on)


class Sheet:
    """`accepts` says which channels of the panel it draws; the rest is as in a panel, which it asks for what it has."""

    title: ClassVar[str] = ""
    needs_height = 280
    """Pixels below which the view is scrolled."""

    def __init__(self, panel: Panel, row: int) -> None:
        self.panel = panel
        self.figure = panel.figure.addLayout(row=row, col=0)
        self.figure.layout.setContentsMargins(0, 0, 0, 0)
        self.own: list[QWidget] = []
        self.plots: list[StepPlot] = []
        self.build()

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Whether this view draws a channel."""
        raise NotImplementedError

    def build(self) -> None:
        """Make controls and plots, once."""

    def update_contents(self) -> None:
        """Draw."""

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""

    def follow(self, new: Position, old: Position) -> None:
        """The cursor moved."""

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The mouse is at a place of a plot."""

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Exact numbers under the cursor."""
        return []

    def data(self) -> dict[str, Array]:
        """The values that are shown."""
        return {}

    def show(self, on: bool) -> None:
        """Be shown, or leave no room."""
        place(self.panel.figure.ci.layout, self.figure, 0, on=on)
        for widget in self.own:
            widget.setVisible(on)

    def add_choice(self, text: str, name: str) -> QComboBox:
        """One more choice among the controls, there while this view is."""
        box = chooser([], name)
        for widget in (caption(text), box):
            self.panel.controls.addWidget(widget)
            self.own.append(widget)
        box.currentTextChanged.connect(self.panel.redraw)
        return box

    def channels(self) -> list[Channel]:
        """Those of the panel that are drawn here."""
        return [channel for channel in self.panel.channels() if self.accepts(channel)]

    @property
    def drawn(self) -> bool:
        """Whether this is the view that is shown, as a figure."""
        return self.panel.state == "figure" and not self.panel.over.on and bool(self.figure.isVisible())

    @property
    def capture(self) -> Any:
        """What is shown."""
        return self.panel.capture

    @property
    def frame(self) -> int:
        """The frame that is shown."""
        return self.panel.frame
