"""Two captures side by side: every panel on screen has a second one at its left, which shows the other capture at the
same cursor and steps, with the same choices and colours."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QAbstractButton, QComboBox, QDoubleSpinBox, QLabel, QSpinBox, QVBoxLayout, QWidget

from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.gui.window.cursor_readout import Row, headed, said_once

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.widgets.theme import Theme
    from inspector.gui.window.docking.panels_on_demand import PanelPlace


class Twin(QObject):
    """The second panel of a dock, and the names above both."""

    def __init__(self, panel: Panel, another: Panel) -> None:
        super().__init__(panel)
        self.panel, self.panel_at_left = panel, another
        self.panel_at_left.control_row.setMaximumHeight(0)  # the choices are made in the bar of the dock, for both
        self.names: tuple[QLabel, QLabel] = (plain_label(""), plain_label(""))
        for name in self.names:
            name.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        panel.drawn.connect(self.follow_choices)
        self._soon = QTimer(self, interval=0, singleShot=True)
        self._soon.timeout.connect(self.share_axes)
        for changed in (panel.drawn, another.drawn, panel.looking.moved, panel.steps.changed):
            changed.connect(self._soon_again)
        self.column = QWidget()
        """The second panel below its name."""
        layout = QVBoxLayout(self.column)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.names[0])
        layout.addWidget(self.panel_at_left, 1)

    def show(self, sides: tuple[Any, Any]) -> None:
        """Show the first side at the left."""
        for name, side in zip(self.names, sides, strict=True):
            name.setText(clean(side.reference.name))
        if self.panel_at_left.source is not sides[0]:
            self.panel_at_left.set_capture(sides[0])
        self.follow_choices()

    def _soon_again(self, *_: object) -> None:
        if self.panel_at_left.source is not None:
            self._soon.start()

    def share_axes(self) -> None:
        """Curves of both have one vertical range, where they have the same axis; maps have a row for each unit."""
        if self.panel_at_left.source is None:
            return
        own, other = (_plots(panel) for panel in (self.panel, self.panel_at_left))
        for place in own.keys() & other.keys():
            plots = (own[place], other[place])
            if not _alike(*plots):
                continue
            for plot in plots:
                plot.vb.updateAutoRange()
            ranges = [plot.vb.viewRange()[1] for plot in plots]
            low, high = min(one[0] for one in ranges), max(one[1] for one in ranges)
            for plot, one in zip(plots, ranges, strict=True):
                if one != [low, high]:
                    plot.vb.setYRange(low, high, padding=0)

    def follow_choices(self) -> None:
        """Choose at the left what is chosen at the right, where that exists there."""
        if self.panel_at_left.source is None:
            return
        kinds = (QComboBox, QAbstractButton, QSpinBox, QDoubleSpinBox)
        for kind in kinds:
            own, other = (panel.control_row.findChildren(kind) for panel in (self.panel, self.panel_at_left))
            for mine, its in zip(own, other, strict=False):
                _copy(mine, its)


def _plots(panel: Panel) -> dict[tuple[int, int], Any]:
    """The plots of a figure that are shown, by row and column."""
    items = panel.figure.ci.items
    return {cells[0]: item for item, cells in items.items() if hasattr(item, "vb") and item.isVisible()}


def _alike(one: Any, other: Any) -> bool:
    """Whether the vertical axes of two plots count the same in the same way."""
    axes = [plot.getAxis("left") for plot in (one, other)]
    same = type(axes[0]) is type(axes[1]) and axes[0].labelText == axes[1].labelText
    return same and not one.vb.yInverted() and not other.vb.yInverted()


def _copy(mine: Any, its: Any) -> None:
    if isinstance(mine, QComboBox):
        at = its.findText(mine.currentText())
        if at >= 0 and at != its.currentIndex():
            its.setCurrentIndex(at)
    elif isinstance(mine, QAbstractButton):
        if mine.isCheckable() and its.isChecked() != mine.isChecked():
            its.setChecked(mine.isChecked())
    elif its.value() != mine.value():
        its.setValue(mine.value())


class Beside:
    """The twins of a window, by the keys of their panels. `place_of(key)`: the contents of a dock; `make(kind)`:
    another panel of a class, at the window's cursor and steps."""

    def __init__(self, place_of: Callable[[str], PanelPlace], make: Callable[[type[Panel]], Panel]) -> None:
        self._place_of, self._make = place_of, make
        self.twins: dict[str, Twin] = {}
        """Those that are shown."""
        self._made: dict[str, Twin] = {}
        self._waiting: dict[str, Panel] = {}
        """Panels that get a second one soon: making one takes as long as drawing it, so they come one by one."""
        self._sides: tuple[Any, Any] | None = None
        self._next = QTimer(interval=0)
        self._next.timeout.connect(self._go_on)

    @property
    def panels(self) -> list[Panel]:
        """The panels at the left."""
        return [twin.panel_at_left for twin in self.twins.values()]

    def show(self, panels: Iterable[tuple[str, Panel]], sides: tuple[Any, Any]) -> None:
        """Put a second panel beside each of these, and show both sides in all: one in each turn of the event loop."""
        self._sides = sides
        self._waiting = {key: panel for key, panel in panels if key not in self.twins}
        for twin in self.twins.values():
            twin.show(sides)
        if self._waiting:
            self._next.start()

    def _go_on(self) -> None:
        """Make the next one, or show it."""
        key, panel = next(iter(self._waiting.items()), ("", None))
        if panel is None or self._sides is None:
            self._next.stop()
        elif key not in self._made:
            self._made[key] = Twin(panel, self._make(type(panel)))
        else:
            self.twins[key] = twin = self._made[key]
            del self._waiting[key]
            if twin.panel_at_left.theme is not panel.theme:
                twin.panel_at_left.set_theme(panel.theme)
            twin.panel_at_left.on_screen = panel.on_screen
            self._place_of(key).put_beside(twin.column, twin.names[1])
            twin.show(self._sides)

    def say_on_screen(self, key: str, on_screen: bool) -> None:
        """The panel of a key has come on screen with its twin, or is behind others."""
        if key in self.twins:
            self.twins[key].panel_at_left.say_on_screen(on_screen)

    def end(self) -> None:
        """Remove them all."""
        self._waiting, self._sides = {}, None
        self._next.stop()
        for key, twin in self.twins.items():
            twin.panel_at_left.set_capture(None)
            self._place_of(key).take_beside()
        self.twins = {}

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for panel in self.panels:
            panel.set_theme(theme)

    def refresh(self, changed: frozenset[str]) -> None:
        """The capture at the left has grown."""
        for panel in self.panels:
            panel.refresh(changed)

    def readouts(self, seen: Container[str]) -> list[Row]:
        """The numbers under the cursor of the panels at the left that are on screen, each under a heading."""
        rows: list[Row] = []
        for key, twin in self.twins.items():
            panel = twin.panel_at_left
            if key in seen and panel.state == "figure":
                found, place = said_once(panel.labelled_readout())
                rows += [(headed(panel.title, place, clean(panel.source.reference.name)), ""), *found] if found else []
        return rows
