"""The sequence above the panels: its tokens, and by which quantity they are coloured."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QWidget

from inspector.capture import Capture
from inspector.gui.cursor import Cursor, Position
from inspector.gui.settings import Settings
from inspector.gui.theme import Theme
from inspector.gui.tokenstrip import TokenStrip

COLOURINGS = ("output:surprise", "output:loss")
"""Quantities that are offered first."""
NONE = "no colour"
UNIT, UNITS = "unit of ", ("state", "gate")
"""Before a state or gate: coloured by the unit under the cursor (Karpathy, Johnson & Fei-Fei 2015)."""


class SequenceRow(QWidget):
    """The strip of tokens with its choice of colouring; the choice is remembered."""

    def __init__(self, looking: Cursor, theme: Theme, settings: Settings) -> None:
        super().__init__()
        self.looking, self.settings = looking, settings
        self.strip = TokenStrip(looking, theme)
        self.colour_by = QComboBox()
        self.colour_by.setAccessibleName("Colour the sequence by")
        self.colour_by.setToolTip("Colour the sequence by")
        self.colour_by.setMinimumContentsLength(16)
        self.colour_by.currentTextChanged.connect(self._recolour)
        looking.moved.connect(self._moved)
        self.colour_by.textActivated.connect(lambda name: settings.set_text("colour", name))
        self._capture: Capture | None = None
        self._name = ""
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        row.addWidget(self.strip, 1)
        row.addWidget(self.colour_by)

    def grown(self, capture: Capture, length: int, changed: frozenset[str]) -> None:
        """Show a capture's sequence, or what came to it."""
        self._capture = capture
        names = capture.labels("step", self.looking.position.frame)
        self.strip.set_sequence(names, len(names) or length)
        self._offer(capture)
        if self._name.removeprefix(UNIT) in changed:
            self._recolour(self.colour_by.currentText())

    def forget(self) -> None:
        """The capture is closed, or there is another one."""
        self._capture = None

    def _offer(self, capture: Capture) -> None:
        from inspector.gui.panel import set_options

        names = [c.name for c in capture.channels.values() if c.dims == ("step",) and not c.value_domain]
        names.sort(key=lambda name: COLOURINGS.index(name) if name in COLOURINGS else len(COLOURINGS))
        units = [UNIT + c.name for c in capture.channels.values() if c.kind in UNITS and c.dims == ("step", "unit")]
        options = [*names, NONE, *units]
        set_options(self.colour_by, options)
        wanted = self.settings.text("colour")
        self.colour_by.setCurrentText(wanted if wanted in options else names[0] if names else NONE)
        if self.colour_by.currentText() != self._name:
            self._recolour(self.colour_by.currentText())

    @Slot(object, object)
    def _moved(self, new: Position, old: Position) -> None:
        if self._name.startswith(UNIT) and new.unit != old.unit:
            self._recolour(self._name)

    @Slot(str)
    def _recolour(self, name: str) -> None:
        capture, frame = self._capture, self.looking.position.frame
        self._name = name
        channel = None if capture is None else capture.channels.get(name.removeprefix(UNIT))
        if capture is None or channel is None:
            self.strip.set_values(None, "")
        elif name.startswith(UNIT):
            unit = min(self.looking.position.unit or 0, max(0, capture.extent(channel.name, frame)[1] - 1))
            values = capture.block(channel.name, frame, (slice(None), slice(unit, unit + 1)))
            self.strip.set_values(values.reshape(-1), f"{channel.title} of unit {unit}", channel.scale)
        else:
            self.strip.set_values(capture.array(name, frame), channel.title)
