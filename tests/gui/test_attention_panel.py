"""The attention panel by keyboard, at small sizes, and with damage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest

from inspector.capture import open_capture
from inspector.capture.holes import Holes
from inspector.gui.export.offscreen import Stage
from inspector.gui.widgets.theme import NOT_A_NUMBER

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
LEFT, RIGHT = Qt.Key.Key_Left, Qt.Key.Key_Right


@pytest.fixture
def stage(a_capture: Path, qtbot: Any) -> Iterator[Stage]:
    with open_capture(a_capture) as capture:
        made = Stage(capture, (900, 400))
        yield made
        made.close()


def test_keys_are_walked_with_ctrl_and_queries_without(stage: Stage) -> None:
    panel = stage.panel("attention")
    stage.cursor.move(step=50)
    walked = []
    for key, modifiers in ((RIGHT, CTRL), (RIGHT, CTRL), (RIGHT, CTRL | SHIFT), (LEFT, CTRL), (LEFT, CTRL | SHIFT)):
        QTest.keyClick(panel, key, modifiers)
        walked.append(stage.cursor.position.key)
    assert walked == [0, 1, 11, 10, 0] and stage.cursor.position.step == 50
    QTest.keyClick(panel, RIGHT)
    assert (stage.cursor.position.step, stage.cursor.position.key) == (51, 0)
    assert any(what.startswith("attention 51 → 0") for what, _ in panel.labelled_readout())
    stage.cursor.move(key=198)
    for _ in range(3):
        QTest.keyClick(panel, RIGHT, CTRL)
    assert stage.cursor.position.key == 199, "the last of the 200 keys"


def test_the_heading_ends_where_the_panel_does(a_capture: Path, qtbot: Any) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (420, 300))
        panel = stage.panel("attention")
        name = "a.place.with.a.very.long.name.that.does.not.fit, head 0"
        panel.row.set_heading(name)
        panel.figure.grab()
        assert name in panel.row.above.toolTip()
        cut = panel.row.shortened(panel.fontMetrics(), 150)
        assert "…" in cut and cut.endswith("head 0"), "heads side by side differ at the end"
        assert panel.row.rect().right() <= panel.page.rect().right()
        read = "␣a [6] → ␣cat [1]: 0.164, rank 2 of 7"
        panel.row.set_heading(f"{name}   {read}")
        metrics = QFontMetricsF(panel.font())
        width = metrics.horizontalAdvance(f"{name}{read[:20]}")
        cut = panel.row.shortened(metrics, width)
        assert cut.startswith("a.pl") and cut.endswith(f", head 0   {read}"), "the name loses its middle first"
        assert metrics.horizontalAdvance(cut) <= width
        assert panel.row.shortened(metrics, 9999) == f"{name}   {read}"
        stage.close()


def test_an_alignment_is_said_in_fewer_words_where_it_does_not_fit(a_capture: Path, qtbot: Any) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 500))
        panel = stage.panel("attention")
        panel.view.setCurrentText("Alignment")
        metrics, one = QFontMetricsF(panel.font()), panel.row
        assert "coverage penalty" in one.heading and one.shortened(metrics, 9999) == one.heading
        cut = one.shortened(metrics, metrics.horizontalAdvance(one.heading) - 1)
        numbers = re.findall(r"[−\d.]+", one.heading)
        assert re.findall(r"[−\d.]+", cut) == numbers and "coverage" not in cut, "every number of it is there"
        panel.view.setCurrentText("Map")
        assert one.shorter == ""
        stage.close()


@pytest.mark.parametrize("damaged", [True, False])
def test_what_is_damaged_is_not_shown_as_nan_of_the_model(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    panel = stage.panel("attention")
    whole = stage.capture.block

    def lost(name: str, *where: Any) -> Any:
        block = whole(name, *where).copy()
        if name == "attn:attention":
            block[..., :101] = np.nan
        return block

    holes = Holes(damaged=(((0, 2), (0, 200), (0, 101)),)) if damaged else Holes()
    monkeypatch.setattr(stage.capture, "block", lost)
    monkeypatch.setattr(stage.capture, "holes", lambda *_: holes)
    panel.reset()
    panel.redraw()
    pictures = panel.atlas._pictures.values()
    assert len(pictures) == 2
    assert [(picture == NOT_A_NUMBER).any() for picture in pictures] == [not damaged] * 2, "NaN of a model is shown"
