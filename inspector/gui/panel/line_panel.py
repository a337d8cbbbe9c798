"""A panel of lines over steps: what the panels of norms and of gradients share."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from inspector.gui.panel.base import Panel, measured, set_options
from inspector.gui.panel.exact import exact_at
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.curves import Curves
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
EVERY = "all layers"
UNSEEN = "0, NaN or infinite at every step in view"


class CurvePanel(Panel):
    """(step,) channels as lines on a logarithmic axis, of one place or of all."""

    axis: ClassVar[str] = "norm"
    mark_one: ClassVar[bool] = False
    drawn_as: ClassVar[str] = "norms by step"
    """What is drawn, for the title; the layer comes behind it."""

    def build(self) -> None:
        """A choice of place, and one plot."""
        self.where = self.add_choice("Layer", "Place in the model")
        self.curves = Curves(
            self.steps, self.theme, label=self.axis, log=True, one=self.mark_one, again=self._in_view_again
        )
        self.figure.addItem(self.curves.plot, row=0, col=0)
        self.plots = [self.curves.plot]
        self.steps.changed.connect(self._in_view)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.curves.set_theme(theme)
        super().set_theme(theme)

    def _in_view(self, _low: float, _high: float) -> None:
        if self.state == "figure" and self.in_sight():
            self.redraw()

    def _in_view_again(self) -> None:
        self._in_view(*self.steps.bounds)

    def shown(self) -> list[Channel]:
        """The channels of the chosen place, or of all."""
        place = self.where.currentText()
        return [channel for channel in self.channels() if place in (EVERY, channel.place)]

    def update_contents(self) -> None:
        """The lines in view."""
        set_options(self.where, [*dict.fromkeys(channel.place for channel in self.channels()), EVERY])
        assert self.capture is not None
        self.curves.plot.step_axis.set_names(self.step_names())
        self.curves.show(self.capture, self.shown(), self.frame, self.steps.bounds)
        unseen = list(dict.fromkeys(self.curves.unseen))
        where = "all layers" if self.where.currentText() == EVERY else self.where.currentText()
        said = f"{UNSEEN}: {', '.join(unseen)}" if unseen else ""
        self.curves.plot.set_title(
            f"{self.drawn_as}, {where}", "; ".join(filter(None, (self.remark(), self.curves.crowd, said)))
        )

    def remark(self) -> str:
        """What is to be known of the lines that are shown; "" for nothing."""
        return ""

    def told(self, channel: Channel, step: int, value: Any) -> Any:
        """A number of a line as it is told, or words in its place."""
        return value

    def follow(self, new: Position, old: Position) -> None:
        """A chosen place follows the cursor's place."""
        if new.place != old.place and self.where.currentText() != EVERY and self.where.findText(new.place) >= 0:
            self.where.setCurrentText(new.place)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step under the mouse."""
        self.looking.move(step=round(x))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Every line at the step."""
        rows = []
        for channel in self.shown():
            step = position.step
            if (
                self.capture is not None
                and step is not None
                and step < self.capture.extent(channel.name, self.frame)[0]
            ):
                value = self.told(channel, step, exact_at(self.capture, channel.name, self.frame, step))
                rows.append((f"{channel.titled} [{step}]  {channel.place}", measured(value, channel.unit)))
        return rows

    def data(self) -> dict[str, Array]:
        """The lines, whole."""
        assert self.capture is not None
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in self.shown()}
