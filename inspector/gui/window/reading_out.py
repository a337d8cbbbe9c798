"""What stands under the cursor, each time that something in sight has changed: rows, pins, and curves in sight."""

from __future__ import annotations

from inspector.gui.state.in_sight import in_sight_of
from inspector.gui.state.pins import pins_of
from inspector.gui.window.cursor_readout import drawn_names, rows_of
from inspector.gui.window.parts import Parts
from inspector.gui.window.pins_in_words import why_no_numbers
from inspector.gui.window.shown_comparison import Comparing


def read_out(window: Parts, comparing: Comparing) -> None:
    """Show the numbers of the panels in sight, and tell the table of a range which curves these draw."""
    capture = window.session.capture
    shown = None if capture is None else comparing.seen(capture)
    pins, seen = pins_of(window.looking).all, window.docking.seen
    rows = rows_of(shown, window.panels.made, seen, window.sequences, pins)
    in_sight_of(window.looking).show(drawn_names(window.panels.made, seen))
    window.readout.show_pins(pins, fixed=window.looking.fixed)
    every = [*rows, *comparing.beside.readouts(seen)]
    window.readout.show_rows(every, why_no_numbers(pins, shown, window.looking))
    window.docking.sides.make_room_for_pins(window.readout.needs)
