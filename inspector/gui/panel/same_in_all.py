"""What is the same in every panel: its menu, its view and how that is reset, the words and colours of its plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from PySide6.QtCore import QPoint, Qt, Slot
from PySide6.QtGui import QContextMenuEvent, QKeyEvent
from PySide6.QtWidgets import QComboBox

from inspector.gui.panel.colours import colours_of
from inspector.gui.panel.explained import in_full, named_in, of_entries, told_of
from inspector.gui.panel.figure import Figure
from inspector.gui.panel.menu_groups import MenuGroup
from inspector.gui.panel.more_keys import MoreKeys
from inspector.gui.panel.old_picture import OldPicture
from inspector.gui.panel.pages import Pages
from inspector.gui.panel.plot_menu import PlotMenu
from inspector.gui.panel.pointing import data_at, plot_at
from inspector.gui.state.background import Rest
from inspector.gui.widgets.control_row import ControlRow
from inspector.gui.widgets.images.colour_choice import ColourChoice
from inspector.gui.widgets.plots.legend import legends_in
from inspector.gui.widgets.plots.view import views_in
from inspector.records import Channel, Entry

MOST_EXPLAINED = 12
DIGITS = {Qt.Key(int(Qt.Key.Key_1) + n): n for n in range(9)}
ALT, KEYPAD = Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.KeypadModifier


class SameInAll(MoreKeys):
    """The base of panels, below what each draws."""

    figure: Figure
    capture: Any
    over: Any
    stack: Pages
    control_row: ControlRow
    remaining: Rest
    read: set[tuple[str, int]]
    state: Any
    channels: Any
    clampable: Any
    key: ClassVar[str]
    title: ClassVar[str]
    hint: ClassVar[str]
    shows: ClassVar[tuple[str, ...]]
    extra: ClassVar[tuple[str, ...]]
    menu_group: ClassVar[MenuGroup] = "other"
    """The submenu of the menus *Panels* and *Window* that it is in."""
    by_steps: ClassVar[bool]
    same_model = False
    """Whether the capture that is shown is another run of the model that was shown before."""
    entries: Sequence[Entry] = ()
    """What the worker says of its quantities."""

    def _begin_same(self) -> None:
        """After the panel is built."""
        self._places: Any = None
        self.old = OldPicture(self.stack)
        for figure in (self.figure, self.over.figure):
            scene = figure.scene()
            scene.told, scene.colours, scene.choose_colours = self.formulas_in, self.colour_of, self.choose_colours
        store = colours_of(self.looking)
        store.changed.connect(self._recolour)
        for box in self.control_row.findChildren(QComboBox):
            box.activated.connect(self._release)
        self._show_sides()

    _drew_growing = False
    """Whether the run went on when it was drawn last: limits of colours are those of what had come then."""

    @property
    def growing(self) -> bool:
        """Whether the run that is shown still goes on."""
        broken = self.remaining.broken_off
        return self.capture is not None and getattr(self.capture, "stop", True) is None and not broken

    # -- the view

    @property
    def scene(self) -> Any:
        """That of the figure that is shown."""
        return (self.over.figure if self.over.on else self.figure).scene()

    def reset_view(self) -> None:
        """Every plot as the panel draws it, and the whole of what plots share."""
        for view in views_in(self.scene):
            view.reset()
        whole: Any = getattr(self, "show_whole", self.redraw)
        whole()

    @Slot()
    def _release(self) -> None:
        """Something else was chosen to be drawn: a zoom into the numbers before says nothing of it."""
        for view in views_in(self.figure.scene()):
            view.release()

    def expect(self, capture: Any) -> None:
        """Another capture is about to be shown: of a run that begins, the picture is kept as it is seen now, before
        anything that it depends on is of the new run (steps in view, the frame)."""
        if self._keeps(capture) and self.state == "figure":
            self._names_before = self._names_drawn
            self.old.take()

    def _is_same_model(self, capture: Any) -> bool:
        places = _places_of(capture)
        return bool(places) and places == self._places

    def _keeps(self, capture: Any) -> bool:
        going_on = capture is not self.capture and getattr(capture, "stop", True) is None
        return going_on and self._is_same_model(capture)

    def _note_model(self, capture: Any) -> None:
        """Another capture will be shown: what was zoomed, and the picture until there is another one, is kept where it
        is another run of the same model."""
        self.expect(capture)
        self.same_model = self._is_same_model(capture)
        if not self._keeps(capture):
            self.old.drop()
        if capture is not None and not self.same_model:
            self._release()
        if capture is not None:
            self._places = _places_of(capture)

    _names_drawn: tuple[str, ...] = ()
    """Names of the steps of what was drawn last."""
    _names_before: tuple[str, ...] = ()
    """The same of the pale picture."""

    def drop_another_sequence(self) -> None:
        """The new run is of another sequence: its tokens would stand beside a pale picture of others."""
        names = self.step_names() if self.old.shown and self.by_steps else ()
        if names and names != self._names_before:
            self.old.drop()
            self.draw_if_seen()

    def step_names(self) -> tuple[str, ...]:
        """The labels of the steps of the frame shown."""
        return self.capture.labels(self.looking.axis, self.frame) if self.capture is not None else ()

    _of_another = False
    """Whether what is drawn is of the capture before."""

    def show_nothing_of_another(self) -> None:
        """Until it is drawn no picture of another capture is seen, but the pale one of the run before."""
        if self._of_another:
            self.stack.blank()

    # -- colours and sides

    def colour_of(self, scale: str) -> ColourChoice:
        """What was chosen for maps of a scale here."""
        return colours_of(self.looking).of(self.key, scale)

    def choose_colours(self, scale: str, choice: ColourChoice) -> None:
        """Choose them for maps of a scale, in all panels of this kind."""
        colours_of(self.looking).choose(self.key, scale, choice)

    @Slot(str)
    def _recolour(self, key: str) -> None:
        if key == self.key:
            self._show_sides()
            self.draw_if_seen()
            self.scene.update()

    def squares(self) -> list[Any]:
        """Maps whose axes count the same things, so that a square is their shape."""
        return [item for item in self.scene.items() if getattr(item, "same_axes", False) and item.isVisible()]

    @property
    def equal_sides(self) -> bool:
        """Whether such maps have equal sides."""
        return colours_of(self.looking).sides(self.key)

    def turn_sides(self) -> None:
        """Equal sides, or as much room as there is."""
        colours_of(self.looking).set_sides(self.key, on=not self.equal_sides)

    def _show_sides(self) -> None:
        for item in self.figure.scene().items():
            if hasattr(item, "set_square"):
                item.set_square(self.equal_sides)

    # -- what it is, in words

    def formulas_in(self, text: str) -> str:
        """The formulas of the quantities that a title or the name of a curve is about."""
        return told_of(text, self._read())

    def _read(self) -> list[Channel]:
        """What was drawn, in the order of the capture; all that the panel shows, where nothing was noted."""
        names = {name for name, _ in self.read}
        own: list[Channel] = self.channels() if self.capture is not None else []
        known = [self.capture.channels[name] for name in self.capture.channels if name in names] if own else []
        return [*known, *(one for one in own if one.name not in names)]

    def explained(self, plot: Any = None) -> str:
        """What a plot shows, of each quantity everything that is known; of the panel where it is none."""
        known = self._read()
        lines = getattr(getattr(plot, "titleLabel", None), "lines", ())
        curves = [name for legend in legends_in(self.scene) if legend.plot is plot for _, name in legend.entries]
        found = named_in("; ".join([*lines, *curves]), known) or known[:MOST_EXPLAINED]
        once = {in_full(one).rpartition("\n")[0]: in_full(one) for one in found[:MOST_EXPLAINED]}
        about = "" if found else of_entries((*self.shows, *self.extra), self.entries)
        first = f"{self.hint.partition('. ')[0].rstrip('.')}."  # what follows says how an empty panel is filled
        hint = first if once else self.hint
        return "\n\n".join(part for part in (hint, *once.values(), about) if part)

    # -- the menu, and the digits

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """At the mouse, whose place the cursor goes to; by keyboard where the cursor is."""
        event.accept()
        if event.reason() != QContextMenuEvent.Reason.Mouse:
            self.open_menu()
            return
        figure = self.over.figure if self.over.on else self.figure
        drawn = self.state == "figure"
        plot = self._point_at(figure, figure.mapFromGlobal(event.globalPos())) if drawn else None
        self._popup(plot, event.globalPos())

    def open_menu(self) -> None:
        """The menu by keyboard: in the middle, for the plot that can be edited, where there is one."""
        plot = next((one for one in self.plots if self.state == "figure" and self.clampable(one) is not None), None)
        self._popup(plot, self.mapToGlobal(QPoint(self.width() // 3, self.height() // 3)))

    def _popup(self, plot: Any, where: QPoint) -> None:
        menu = PlotMenu(self, plot)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(where)

    def _point_at(self, figure: Figure, point: QPoint) -> Any:
        """The plot under a point of a figure; the cursor goes there."""
        if not (figure.isVisible() and figure.rect().contains(point)):
            return None
        position = figure.mapToScene(point)
        plot = plot_at(figure, position)
        if plot is not None and not self.over.on:
            self.pointed(plot, *data_at(plot, position))
        return plot

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """1 to 9 switch the curves of the legends, with Alt they show one alone; Ctrl+0 shows everything. Shift+F10
        opens the menu, which Qt does by itself for the key Menu only."""
        key, held = Qt.Key(event.key()), event.modifiers() & ~KEYPAD
        entries = [(legend, n) for legend in legends_in(self.scene) for n in range(len(legend.entries))
                   if legend.can_switch(n)]  # fmt: skip
        if key in DIGITS and held in (Qt.KeyboardModifier.NoModifier, ALT) and DIGITS[key] < len(entries):
            legend, n = entries[DIGITS[key]]
            legend.switch(n, alone=held == ALT)
        elif key == Qt.Key.Key_0 and held == Qt.KeyboardModifier.ControlModifier:
            self.reset_view()
        elif key == Qt.Key.Key_F10 and held == Qt.KeyboardModifier.ShiftModifier:
            self.open_menu()
        else:
            super().keyPressEvent(event)


def _places_of(capture: Any) -> Any:
    """The parts of the model that a run says it has; None where there is no run."""
    return getattr(getattr(capture, "start", None), "places", None)
