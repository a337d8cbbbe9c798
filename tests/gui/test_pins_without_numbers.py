"""A pin of which something is not there says what it was and why: in a tooltip, and for programs that read the screen."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt

from inspector.gui.state.cursor import Position
from inspector.gui.state.pins import pins_of
from inspector.gui.window.main_window import Window
from inspector.records import InputSpec
from tests.support.opened import finish, opened

ALICE = InputSpec(kind="text", value="Alice was beginning")


def told(window: Window, column: int, row: str) -> tuple[str, str]:
    """Tooltip and text in words of a cell, of which the text is a dash."""
    table: Any = window.readout
    window._read_out()
    at = next(i for i in range(table.rowCount()) if table.item(i, 0).text().startswith(row))
    cell = table.item(at, column)
    assert cell.text() == "–", "what is seen stays short"
    return cell.toolTip(), str(cell.data(Qt.ItemDataRole.AccessibleTextRole) or "")


def shown(window: Window, qtbot: Any, key: str) -> Any:
    window.docking.show_panel(key)
    panel: Any = window.panels[key]
    qtbot.waitUntil(lambda: panel.state == "figure", timeout=20_000)
    return panel


def pinned(window: Window, **at: Any) -> None:
    step = at.pop("step")
    assert not pins_of(window.looking).add(Position(**at).moved("step", step))


@pytest.mark.parametrize(
    ("pin", "why"),
    [
        ({"step": 3, "unit": 200, "place": "rnn.l0"},
         "Pin 1 is step 3, unit 200, rnn.l0. rnn.l0 has 64 units in this run, the last is 63."),
        ({"step": 3, "unit": 2, "place": "encoder.l4"},
         "Pin 1 is step 3, unit 2, encoder.l4. This run has no encoder.l4."),
        ({"step": 150, "unit": 2, "place": "rnn.l0"},
         "Pin 1 is step 150, unit 2, rnn.l0. This run has 19 steps, the last is 18."),
        ({"step": 3, "place": "rnn.l0"},
         "Pin 1 is step 3, rnn.l0. What is shown has no number of this kind there."),
    ],
    ids=["unit", "place", "step", "no unit"],
)  # fmt: skip
def test_it_says_what_it_was_and_why_there_is_no_number(qtbot: Any, pin: dict[str, Any], why: str) -> None:
    with opened(qtbot, background=False) as window:
        window.open_sample("char-elman", "", ALICE)
        finish(window, qtbot)
        shown(window, qtbot, "states")
        pinned(window, **pin)
        window.looking.move(step=5, unit=1, place="rnn.l0")
        tip, words = told(window, 2, "h")
        assert why in tip.replace("&nbsp;", " ") and words == f"no number: {why}"
        pins_of(window.looking).clear()
        pinned(window, step=4, unit=1, place="rnn.l0")
        window._read_out()
        table: Any = window.readout
        cells = [table.item(i, 2) for i in range(table.rowCount()) if table.item(i, 0).text().startswith("h")]
        assert cells[0].text() != "–" and not cells[0].data(Qt.ItemDataRole.AccessibleTextRole)
        assert "Pin 1 is" not in cells[0].toolTip()
