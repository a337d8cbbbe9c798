"""The demo explains itself: three callouts that lead through states, lags and attention, on one passage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QRect, QTimer

from inspector.gui.widgets.callout import Callout
from inspector.gui.widgets.theme import Theme
from inspector.records import InputSpec

if TYPE_CHECKING:
    from inspector.gui.window.asking import Asking

EXAMPLE = "a passage"
"""The example of both samples: 300 characters of the book that they were not trained on."""
FOLLOW_MS = 150


@dataclass(frozen=True, slots=True)
class Stop:
    """One callout: which sample it is about, which panel it stands beside, and what it says."""

    sample: str
    panel: str
    title: str
    words: str
    go: str = "Next"


STOPS = (
    Stop(
        "char-lstm", "states", "1 of 3: states",
        "A trained LSTM has read the passage above. Each row is a unit, each column a character. Click a column: the "
        "text, all panels and the numbers under the cursor follow.\n\nRows that keep a colour over a word or a line "
        "are units that remember.",
    ),
    Stop(
        "char-lstm", "lags", "2 of 3: lags",
        "How far back the network reaches: how strongly a state depends on what was read some steps before.\n\nWhere "
        "the curve has fallen, what was read that long ago is forgotten, and no gradient comes back from there. The "
        "sentence of the panel says where.",
    ),
    Stop(
        "char-transformer", "attention", "3 of 3: attention",
        "The same passage, read by a transformer. It keeps no state, it looks back: each row is a character, and "
        "bright cells are those it looks at.\n\nClick a row to see them; choose layer and head above the map.",
        "Open a model of mine…",
    ),
)  # fmt: skip


class Tour(QObject):
    """Shows one stop at a time, as soon as its sample is shown; it stays beside its panel where that moves."""

    def __init__(self, window: Asking) -> None:
        super().__init__(window)
        self.window = window
        self.callout = Callout(window)
        self.callout.onward.connect(self.onward)
        self.callout.ended.connect(self.end)
        self.at = -1
        """The number of the stop; -1 for none."""
        self._led = False
        """Whether the panel of this stop was brought to the front: once, so that the user can leave it."""
        self._timer = QTimer(self, interval=FOLLOW_MS)
        self._timer.timeout.connect(self.follow)

    def begin(self) -> None:
        """Run the passage, and lead through it."""
        self._go_to(0)

    def onward(self) -> None:
        """The next stop; after the last one the user's own model."""
        if self.at + 1 < len(STOPS):
            self._go_to(self.at + 1)
        else:
            self.end()
            self.window.open_model()

    def end(self) -> None:
        """No more callouts."""
        self.at = -1
        self._timer.stop()
        self.callout.hide()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.callout.set_theme(theme)

    def _go_to(self, number: int) -> None:
        self.at, self._led = number, False
        if self.window.session.subject != STOPS[number].sample:
            self.callout.hide()
            self.window.open_sample(STOPS[number].sample, "", InputSpec(kind="example", value=EXAMPLE))
        self._timer.start()
        self.follow()

    def follow(self) -> None:
        """Stand beside the panel, once there is something in it; another model ends the tour."""
        session, stop = self.window.session, STOPS[self.at]
        asked = session.opening.subject if session.opening is not None else session.subject
        if asked != stop.sample:
            self.end()
            return
        made = session.shown.made
        if (
            session.capture is None
            or made is None
            or made.subject != stop.sample
            or stop.panel not in self.window.docks
        ):
            return
        if not self._led:
            self._led = True
            self.window.docking.show_panel(stop.panel)
            self.callout.say(stop.title, stop.words, stop.go)
            self.callout.set_theme(self.window.theme)
        self.callout.setVisible(stop.panel in self.window.docking.seen)
        self.callout.point_at(self.window.docks[stop.panel].geometry(), self._room())

    def _room(self) -> QRect:
        """The window without its menu and its status row."""
        window = self.window
        top, bottom = window.menuBar().height(), window.statusBar().height()
        return QRect(0, top, window.width(), window.height() - top - bottom)
