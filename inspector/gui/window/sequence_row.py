"""The sequence above the panels, and its answer below it: the tokens, and by which quantity they are coloured."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QWidget

from inspector.capture import Capture
from inspector.gui.state.cursor import Cursor, Looking, Position
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.plain_text import plain_label
from inspector.gui.widgets.theme import Theme
from inspector.gui.widgets.token_strip import TokenStrip
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN, Channel

COLOURINGS = ("output:surprise", "output:loss")
"""Quantities that are offered first."""
NONE = "no colour"
UNIT, UNITS = "unit of ", ("state", "gate")
"""Before a state or gate: coloured by the unit under the cursor (Karpathy, Johnson & Fei-Fei 2015)."""


class SequenceRow(QWidget):
    """The strip of tokens with its choice of colouring; the choice is remembered.

    There is one for the input and one for the answer, which is seen where the answer has steps of its own; then both
    say which they are.
    """

    def __init__(self, cursor: Cursor, theme: Theme, settings: Settings, domain: str = STEP_DOMAIN) -> None:
        super().__init__()
        self.looking, self.settings, self.domain = Looking(cursor, domain, self), settings, domain
        what = "answer" if self.looking.answers else "sequence"
        self.setting = "colour" if domain == STEP_DOMAIN else "colour of the answer"
        self.strip = TokenStrip(self.looking, theme)
        self.strip.setAccessibleName(f"The {what}, step by step")
        self.name = plain_label("Answer" if self.looking.answers else "Input")
        self.name.setFixedWidth(self.name.fontMetrics().horizontalAdvance("Answer ") + 4)
        self.name.hide()
        if self.looking.answers:
            self.hide()
        self.colour_by = QComboBox()
        self.colour_by.setAccessibleName(f"Colour the {what} by")
        self.colour_by.setToolTip(f"Colour the {what} by")
        self.colour_by.setMinimumContentsLength(16)
        self.colour_by.currentTextChanged.connect(self._recolour)
        self.looking.moved.connect(self._moved)
        self.colour_by.textActivated.connect(lambda name: settings.set_text(self.setting, name))
        self._capture: Capture | None = None
        self._name = ""
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        row.addWidget(self.name)
        row.addWidget(self.strip, 1)
        row.addWidget(self.colour_by)

    def grown(self, capture: Capture, length: int, changed: frozenset[str]) -> None:
        """Show a capture's sequence, or what came to it."""
        self._capture = capture
        answered = any(channel.step_domain == ANSWER_DOMAIN for channel in capture.channels.values())
        self.name.setVisible(answered)
        if self.looking.answers:
            self.setVisible(answered)
        policy = QComboBox.SizeAdjustPolicy  # strips of equal width stand below each other
        self.colour_by.setSizeAdjustPolicy(
            policy.AdjustToMinimumContentsLengthWithIcon if answered else policy.AdjustToContentsOnFirstShow
        )
        names = capture.labels(self.domain, self.looking.position.frame)
        self.strip.set_sequence(names, len(names) or length)
        self._offer(capture)
        if self._name.removeprefix(UNIT) in changed:
            self._recolour(self.colour_by.currentText())

    def forget(self) -> None:
        """The capture is closed, or there is another one."""
        self._capture = None

    def _offer(self, capture: Capture) -> None:
        from inspector.gui.panel.base import set_options

        own = [channel for channel in capture.channels.values() if self._is_own(channel)]
        names = [c.name for c in own if c.dims == ("step",) and not c.value_domain]
        names.sort(key=lambda name: COLOURINGS.index(name) if name in COLOURINGS else len(COLOURINGS))
        units = [UNIT + c.name for c in own if c.kind in UNITS and c.dims == ("step", "unit")]
        options = [*names, NONE, *units]
        set_options(self.colour_by, options)
        wanted = self.settings.text(self.setting)
        self.colour_by.setCurrentText(wanted if wanted in options else names[0] if names else NONE)
        if self.colour_by.currentText() != self._name:
            self._recolour(self.colour_by.currentText())

    def _is_own(self, channel: Channel) -> bool:
        """Whether a channel is over the steps that are shown here."""
        return channel.step_domain == self.domain

    @Slot(object, object)
    def _moved(self, new: Position, old: Position) -> None:
        if self._name.startswith(UNIT) and new.unit != old.unit:
            self._recolour(self._name)

    @Slot(str)
    def _recolour(self, name: str) -> None:
        from inspector.gui.widgets.source import drawable

        capture, frame = self._capture, self.looking.position.frame
        self._name = name
        channel = None if capture is None else capture.channels.get(name.removeprefix(UNIT))
        if capture is None or channel is None:
            self.strip.set_values(None, "")
        elif name.startswith(UNIT):
            unit = min(self.looking.position.unit or 0, max(0, capture.extent(channel.name, frame)[1] - 1))
            values = capture.block(channel.name, frame, (slice(None), slice(unit, unit + 1)))
            self.strip.set_values(drawable(values.reshape(-1)), f"{channel.title} of unit {unit}", channel.scale)
        else:
            self.strip.set_values(drawable(capture.array(name, frame)), channel.title)
