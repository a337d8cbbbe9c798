"""Small texts of pictures and bars: legends, colour bars, what is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.widgets.colourbar import _plain
from inspector.gui.widgets.theme import DARK, Theme
from inspector.gui.window.damage_bar import OneLine


def colours(fan: object) -> list[str]:
    """Colour and opacity of the lines that the legend names."""
    return [fan.lines[at].opts["pen"].color().name() for at in fan._named]


def test_the_lines_that_a_legend_names_have_colours_of_their_own(a_capture: Path, qapp: QApplication) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (800, 500))
        fan = stage.panel("spectra").fan
        assert len(fan._named) == 3 == len(set(colours(fan)))
        fan.set_theme(DARK)
        expected: Theme = DARK
        assert colours(fan) == [expected.series[number] for number in (0, 2, 3)]
        stage.close()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2000.0, "2000"), (12_345.0, "12300"), (1e5, "1e+05"), (0.0123456, "0.0123"), (-2000.0, "-2000"), (0.0, "0")],
)
def test_a_colour_bar_writes_thousands_out(value: float, shown: str) -> None:
    assert _plain(value) == shown


def test_how_much_is_damaged_is_read_however_narrow_the_bar(qtbot: QtBot) -> None:
    line = OneLine()
    qtbot.addWidget(line)
    line.resize(420, 20)
    line.say(
        "14 damaged pages: "
        + "rnn.l0:h, steps 0 to 63, its bytes are not those that were written " * 3
        + "… and 13 more."
    )
    assert line.text().startswith("14 damaged pages") and line.text().endswith("and 13 more.")
