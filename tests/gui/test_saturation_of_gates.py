"""The scatter of Gates says what was counted of gates, and of what is a tanh, and stands apart from the colour bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, shown

VALUES = np.linspace(-1, 1, 18).reshape(6, 3)
SHARES = np.array([[0.2, 0.1, 0.0], [0.1, 0.3, 0.0], [0.5, 0.5, 1.0]])


def parts(signal: str) -> tuple[Any, ...]:
    """A gate, or a candidate, with its saturation."""
    name, low = f"cell:{signal}", 0 if signal.startswith("gate/") else -1
    labels = {"statistic": ("left", "right", "graded")}
    return (
        channel(name, "gate", ("step", "unit"), np.clip(VALUES, low, 1), title=signal, limits=(low, 1)),
        channel(f"{name}/saturation", "unit", ("statistic", "unit"), SHARES, labels=labels),
    )


@pytest.mark.parametrize(
    ("signals", "left", "bottom"),
    [
        (("gate/i",), "share < 0.1 (left-saturated)", "share > 0.9 (right-saturated)"),
        (("g",), "share tanh < −0.97 (left-saturated)", "share tanh > 0.97 (right-saturated)"),
        (("g", "gate/i"), "share < 0.1, tanh < −0.97", "share > 0.9, tanh > 0.97"),
    ],
)
def test_axes_say_what_was_counted(tmp_path: Path, signals: tuple[str, ...], left: str, bottom: str) -> None:
    with shown(tmp_path, "gates", *(part for signal in signals for part in parts(signal))) as (_, panel):
        said = [panel.scatter.getAxis(side).labelText.replace("&lt;", "<") for side in ("left", "bottom")]
        assert said == [left, bottom]
        bar = panel.rows[0].bar
        edge = bar.mapRectToScene(bar.boundingRect()).right()
        label = panel.scatter.getAxis("left")
        assert label.mapRectToScene(label.rect()).left() - edge >= 8
