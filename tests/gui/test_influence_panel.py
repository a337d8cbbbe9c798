"""The verdict in words, with both numbers, and what the panel draws."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication

from inspector.analysis.influence import amount, influence_verdict, power
from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.influence import relative, seen

LAG = np.arange(60)


def falling(rate: float) -> np.ndarray:
    return 2.0 * np.exp(-rate * LAG)


def test_a_vanished_gradient_is_told_with_both_numbers() -> None:
    said = influence_verdict(falling(0.05), falling(0.5), 0, (40.0, 13.0)).sentence
    assert said.startswith("vanished: the loss still depends on inputs 40 steps back (influence 14 % of lag 0)")
    assert "the gradient is 10⁻⁹ of lag 0" in said and "it reaches 13 steps (≥ 10⁻³)" in said


def test_a_natural_one_reaches_as_far_as_the_influence() -> None:
    said = influence_verdict(falling(0.3), falling(0.3), 0, (9.0, 23.0)).sentence
    assert said == (
        "natural: the loss depends on inputs up to 9 steps back (influence ≥ 5 % of lag 0), the gradient reaches 23 (≥ 10⁻³)"
    )


def test_the_other_verdicts() -> None:
    flat = np.ones(60)
    assert influence_verdict(flat, flat, 0, (59.0, 59.0)).sentence.startswith("nothing has vanished: 59 steps back")
    assert influence_verdict(flat, falling(-0.5), 0, (59.0, 59.0)).sentence.startswith(
        "exploded: 14 steps back the gradient passes 10³"
    )
    assert "it is 10¹³" in influence_verdict(flat, falling(-0.5), 0, (59.0, 59.0)).sentence
    assert influence_verdict(np.zeros(60), falling(0.1), 0, (math.nan, 59.0)).sentence.startswith(
        "the loss does not depend on the inputs"
    )
    assert "no gradient to compare" in influence_verdict(falling(0.1), None, 0, (29.0, math.nan)).sentence
    nowhere = influence_verdict(falling(0.1), np.zeros(60), 0, (29.0, math.nan)).sentence
    assert nowhere.startswith("vanished") and "the gradient is 0 of lag 0; it reaches nowhere" in nowhere
    assert (
        "the gradient is NaN or infinite at lag 0"
        in influence_verdict(flat, np.full(60, np.nan), 0, (59.0, math.nan)).sentence
    )
    late = np.where(LAG == 10, 5.0, 0.0)
    assert "of lag 10" in influence_verdict(late, late, 10, (10.0, 10.0)).sentence


def test_numbers_in_words() -> None:
    assert amount(0.123) == "12 %" and amount(2.31) == "231 %" and amount(23.1) == "23 times that"
    assert power(3.2e-8) == "10⁻⁷" and power(1e19) == "10¹⁹" and power(0.0) == "0" and power(math.inf) == "∞"
    np.testing.assert_allclose(relative(np.array([4.0, 2.0]), 0), [1.0, 0.5])
    np.testing.assert_allclose(relative(np.array([0.0, 2.0]), 0), [0.0, 2.0])
    lag, values = seen(np.array([1.0, np.nan, 0.0, 0.01]))
    assert lag.tolist() == [0, 3] and values.tolist() == pytest.approx([0.0, -2.0])


def test_the_panel_says_it_and_draws_shares_of_lag_0(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 500))
        panel = stage.panel("influence")
        assert "vanished: the loss still depends on inputs 29 steps back" in panel.verdict.text
        assert ("gradient ≥ 10⁻³ up to lag", "17") in panel.readout(stage.cursor.position)
        _, y = panel.lines["input:influence/loss"].getData()
        np.testing.assert_allclose(10**y, np.exp(-0.1 * np.arange(60)), rtol=1e-9)
        stage.close()


def test_losses_that_were_left_out_are_read_out(a_capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 500))
        panel = stage.panel("influence")
        known = panel.scalar
        row = ("losses with a past that are not finite", "6")
        assert row not in panel.readout(stage.cursor.position)
        monkeypatch.setattr(panel, "scalar", lambda name: 6.0 if name.endswith("past_left_out") else known(name))
        assert row in panel.readout(stage.cursor.position)
        panel.update_contents()
        assert "6 losses with a past, NaN or infinite, left out" in panel.verdict.text
        stage.close()


@pytest.mark.parametrize("width", [420, 620, 1280])
def test_the_verdict_is_as_high_as_its_lines(a_capture: Path, width: int) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (width, 300))
        verdict = stage.panel("influence").verdict
        verdict.set_text("not learned: " + "the loss is no better than without the past, " * 5)
        QApplication.processEvents()
        room, font = verdict.boundingRect().adjusted(8, 0, -8, 0), QFontMetricsF(verdict.font())
        wrapped = font.boundingRect(QRectF(0, 0, room.width(), 1e6), int(Qt.TextFlag.TextWordWrap), verdict.text)
        assert room.width() > 0 and wrapped.height() <= room.height()
        stage.close()
