"""What panels tell the window, and where they lead in it."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Signal

from inspector.gui.panel.reading_ahead import ReadingAhead


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """A place in a capture that the user wants to see, in the panel that shows it.

    Attributes:
        panel: its key; "" for the first panel that shows the channel.
        channel: the name of what is shown; "" for none.
        place: of the model, "" for any. frame: -1 for the one on screen.
        steps, iterations: what is to be in view, the first one first; the cursor goes there.
        around: the first and the last iteration of the curves then; () for all, None for a few around `iterations`.
        axis: of the steps; "" for that of the place.
        curves: channels whose curves are to be drawn, where there are many to choose from.
    """

    panel: str = ""
    channel: str = ""
    place: str = ""
    frame: int = -1
    steps: tuple[int, ...] = ()
    iterations: tuple[int, ...] = ()
    around: tuple[int, ...] | None = None
    axis: str = ""
    curves: tuple[str, ...] = ()


class PanelSignals(ReadingAhead):
    """The signals of every panel."""

    wanted = Signal(tuple)
    """The user asks for `extra`, or for what the run has left."""
    editing = Signal(str)
    """The user wants to clamp the unit under the cursor, from its step on, in the channel of this name."""
    searching = Signal()
    """The user wants to search for the answer to the sequence that is shown."""
    opening = Signal(int)
    """The user wants to run one sequence of a data set alone: its number."""
    remaining_changed = Signal()
    """`remaining` has changed."""
    drawn = Signal()
    """The figure has changed, and so have the numbers under the cursor."""
    leading = Signal(object)
    """The user wants to see something in another panel: a Lead."""
    reproducing = Signal(object)
    """The user wants the script that shows what a Finding is about on its own."""
    trying = Signal(object, str)
    """The user wants to try a cure for a Finding: the cure's key."""
    muting = Signal(object, bool)
    """The user wants findings to be muted in the project's file, or no longer: a Mute, and which."""
    picturing = Signal(str)
    """The user wants to "copy" or "save" the picture, or to save the "numbers"."""
    explaining = Signal(str, str)
    """The user wants to read what something is: its title, and the text."""
    ranging = Signal(object)
    """The user wants to type a range of colours: (low, high, whether it is logarithmic, what to call with both)."""
    note_written = Signal()
    """A note was written into the capture that is shown."""

    def head_here(self) -> tuple[str, int] | None:
        """(place, number) of the head of attention at the cursor, where heads are shown and can be ablated."""
        return None
