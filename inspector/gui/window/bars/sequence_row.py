"""One sequence above the panels: its tokens, patches or layers, and the quantity by which they are coloured."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QWidget

from inspector.capture import Capture, Pair
from inspector.gui.panel.missing import is_of_many
from inspector.gui.state.cursor import Cursor, Looking, Position
from inspector.gui.state.settings import Settings
from inspector.gui.state.step_axes import own_axis
from inspector.gui.widgets.cut_box import CutBox
from inspector.gui.widgets.grid_strip import GridStrip
from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.gui.widgets.theme import Theme
from inspector.gui.widgets.token_strip import NO_SEQUENCE, TokenStrip
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN, Axis

COLOURINGS = ("output:surprise", "output:loss")
"""Quantities that are offered first."""
NONE = "no colour"
MANY = "a run of many sequences: open one (double-click it in Sequences)"
UNIT, UNITS = "unit of ", ("state", "gate")
"""Before a state or gate: coloured by the unit under the cursor (Karpathy, Johnson & Fei-Fei 2015)."""
SETTINGS = {STEP_DOMAIN: "colour", ANSWER_DOMAIN: "colour of the answer"}


class SequenceRow(QWidget):
    """The strip of one step axis with its choice of colouring; the choice is remembered.

    `editing()` after a double-click on a token of the input, where another one is to be put in.
    """

    editing = Signal()

    def __init__(self, cursor: Cursor, theme: Theme, settings: Settings, axis: str = STEP_DOMAIN) -> None:
        super().__init__()
        self.looking, self.settings, self.theme = Looking(cursor, axis, self), settings, theme
        self.setting = SETTINGS.get(axis, f"colour of {axis}")
        self.described = Axis(name=axis)
        self.name = plain_label("")
        self.name.hide()
        self.colour_by = CutBox()
        self.colour_by.setMinimumContentsLength(16)
        self.colour_by.currentTextChanged.connect(self._recolour)
        self.looking.moved.connect(self._moved)
        self.colour_by.textActivated.connect(lambda name: settings.set_text(self.setting, name))
        self._capture: Capture | None = None
        self._difference: Pair | None = None
        self._name = ""
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(8, 2, 8, 2)
        self.row.addWidget(self.name)
        self.strip = self._put_in(self._strip_for(self.described))
        self.of_runs = plain_label("")
        """Before the colouring, where two runs are compared: Δ, or the frame that the numbers are of."""
        self.of_runs.hide()
        self.row.addWidget(self.of_runs)
        self.row.addWidget(self.colour_by)
        self.call("sequence" if axis == STEP_DOMAIN else axis)

    @property
    def axis(self) -> str:
        """The axis whose positions are shown."""
        return self.looking.axis

    def call(self, word: str) -> None:
        """Set the name of the row."""
        self.name.setText(clean(word[:1].upper() + word[1:]))
        self.colour_by.setAccessibleName(f"Colour the {clean(word)} by")
        self.colour_by.setToolTip(f"Colour the {clean(word)} by")
        self.strip.setAccessibleName(f"The {clean(word)}, step by step")

    def _strip_for(self, described: Axis) -> TokenStrip:
        """The strip for an axis of this layout."""
        if described.grid is not None:
            return GridStrip(self.looking, self.theme, described.grid[1])
        if described.layout == "hypotheses":
            return GridStrip(self.looking, self.theme, 1, texts=True)
        return TokenStrip(self.looking, self.theme)

    def _put_in(self, strip: TokenStrip) -> TokenStrip:
        strip.editing.connect(self.editing)
        strip.editable = self.axis == STEP_DOMAIN
        self.row.insertWidget(1, strip, 1)
        return strip

    def describe(self, described: Axis) -> None:
        """Set the layout of the axis and the name of its positions; another layout needs another strip."""
        if (described.layout, described.grid) != (self.described.layout, self.described.grid):
            before, name = self.strip, self.strip.accessibleName()
            self.strip = self._put_in(self._strip_for(described))
            self.strip.setAccessibleName(name)
            self.row.removeWidget(before)
            before.hide()
            before.deleteLater()
            self._name = ""
        self.described = described
        self.strip.word = clean(described.title)

    def grown(self, capture: Capture, length: int, changed: frozenset[str], *, several: bool = False) -> None:
        """Show a capture's sequence, or its growth; with `several` rows each shows its name."""
        self._capture = capture
        frame = self.looking.position.frame
        self.describe(capture.axis(self.axis, frame))
        self.name.setVisible(several)
        policy = QComboBox.SizeAdjustPolicy  # so that strips have equal width
        self.colour_by.setSizeAdjustPolicy(
            policy.AdjustToMinimumContentsLengthWithIcon if several else policy.AdjustToContentsOnFirstShow
        )
        self.strip.nothing = MANY if is_of_many(capture) else NO_SEQUENCE
        names = capture.labels(self.axis, frame)
        self.strip.set_sequence(names, len(names) or length)
        self._offer(capture)
        if self._name.removeprefix(UNIT) in changed:
            self._recolour(self.colour_by.currentText())

    def forget(self) -> None:
        """The capture is closed, or there is another one."""
        self._capture = self._difference = None

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.strip.set_theme(theme)

    def _offer(self, capture: Capture) -> None:
        from inspector.gui.panel.base import set_options

        own = [channel for channel in capture.channels.values() if own_axis(channel) == self.axis]
        names = [c.name for c in own if c.dims == ("step",) and not c.value_domain]
        names.sort(key=lambda name: COLOURINGS.index(name) if name in COLOURINGS else len(COLOURINGS))
        units = [UNIT + c.name for c in own if c.kind in UNITS and c.dims == ("step", "unit")]
        options = [*names, NONE, *units]
        set_options(self.colour_by, options)
        wanted = self.settings.text(self.setting)
        self.colour_by.setCurrentText(wanted if wanted in options else names[0] if names else NONE)
        if self.colour_by.currentText() != self._name:
            self._recolour(self.colour_by.currentText())

    def show_difference(self, difference: Pair | None) -> None:
        """Colour by what one run changed against another, where that can be said of the number; None: by one run."""
        self._difference = difference
        self._recolour(self.colour_by.currentText())

    def _coloured_from(self, name: str) -> tuple[Any, bool]:
        """(the capture or the difference that a number is read from, whether it is what changed)."""
        both, name = self._difference, name.removeprefix(UNIT)
        if both is not None and name in both.channels and both.channels[name].compare == "difference":
            return both, True
        return self._capture, False

    @Slot(object, object)
    def _moved(self, new: Position, old: Position) -> None:
        if self._name.startswith(UNIT) and new.unit != old.unit:
            self._recolour(self._name)

    @Slot(str)
    def _recolour(self, name: str) -> None:
        from inspector.gui.widgets.gaps import gaps_of
        from inspector.gui.widgets.plots.source import drawable
        from inspector.gui.window.bars.steps_without import steps_without

        frame = self.looking.position.frame
        self._name = name
        capture, changed = self._coloured_from(name)
        plain = name.removeprefix(UNIT)
        said = "" if self._difference is None else "Δ" if changed else _second_of(self._difference)
        if self._difference is not None and not changed and capture is not None:
            frame = self._difference.second
            if plain in capture.channels and not capture.revision(plain, frame):  # a frame before it may have it
                capture, said = None, f"not in frame {frame}"
        self.of_runs.setText(said)
        self.of_runs.setVisible(bool(said))
        where = f" in {said}" if said and not changed else ""
        channel = None if capture is None else capture.channels.get(name.removeprefix(UNIT))
        if capture is None or channel is None:
            self.strip.set_values(None, "")
        elif name.startswith(UNIT):
            unit = min(self.looking.position.unit or 0, max(0, capture.extent(channel.name, frame)[1] - 1))
            values = drawable(capture.block(channel.name, frame, (slice(None), slice(unit, unit + 1))).reshape(-1))
            gaps = gaps_of(capture, channel.name, frame, y=None, at={1: unit})
            self.strip.set_values(values, f"{channel.title} of unit {unit}{where}", channel.scale, gaps)
        else:
            values = drawable(capture.array(name, frame))
            scale = "diverging" if changed and channel.scale == "diverging" else "sequential"
            gaps, without = gaps_of(capture, name, frame, y=None), steps_without(capture, channel, frame, values)
            self.strip.set_values(values, f"{channel.title}{where}", scale, gaps, without)


def _second_of(both: Pair) -> str:
    """What the second side is called."""
    return f"frame {both.second}" if both.one_capture else clean(both.after.name)
