"""The axes of an attention map: tokens at every step or numbers, never both; long tokens are written downwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, shown
from PySide6.QtGui import QPainter, QPicture

from inspector.gui.widgets.axes import StepAxis
from inspector.records import Labels

WORDS = ("a", "wonderful", "extraordinary", "cat", "sat", "on", "the", "mat", "and", "went", "away", "again")


@pytest.mark.parametrize("size", [90.0, 120.0, 200.0, 330.0, 500.0, 900.0])
@pytest.mark.parametrize("count", [4, 12, 25, 40, 120])
@pytest.mark.parametrize("turns", [False, True])
def test_an_axis_has_tokens_everywhere_or_nowhere(size: float, count: int, turns: bool) -> None:
    axis = StepAxis("bottom")
    axis.turns = turns
    axis.set_names([WORDS[n % len(WORDS)] for n in range(count)])
    levels = axis.tickValues(-0.5, count - 0.5, size)
    texts = [text for spacing, values in levels for text in axis.tickStrings(values, 1.0, spacing)]
    numbers = [text.isdigit() for text in texts]
    assert all(numbers) or (not any(numbers) and len(texts) == count)


def test_without_room_for_words_beside_each_other_they_are_turned_if_they_may() -> None:
    names = [WORDS[n % len(WORDS)] for n in range(20)]
    axis = StepAxis("bottom")
    axis.set_names(names)
    assert axis.written(0, 19, 400.0) == "" and axis.written(0, 19, 4000.0) == "across"
    axis.turns = True
    assert axis.written(0, 19, 400.0) == "turned" and axis.written(0, 19, 90.0) == ""


def key_axis(tmp_path: Path, count: int) -> tuple[Any, Any]:
    weights = np.full((1, count, count), 1 / count, np.float32)
    names = tuple(WORDS[n % len(WORDS)] for n in range(count))
    parts = (
        Labels("step", names, -1),
        channel("a:attention", "attention", ("head", "query", "key"), weights, title="attention",
                domains={"query": "step", "key": "step"}, limits=(0, 1)),
    )  # fmt: skip
    with shown(tmp_path, "attention", *parts, place="a") as (_, panel):
        axis, queries = panel.row.plot.step_axis, panel.query_axis
        panel.grab()
        picture = QPicture()
        painter = QPainter(picture)
        texts = [text for _, _, text in axis.generateDrawSpecs(painter)[2]]
        painter.end()
        return texts, (axis.height(), queries.width())


def test_the_figure_has_the_tokens_of_the_keys_and_room_for_them(tmp_path: Path) -> None:
    few, (low, _) = key_axis(tmp_path, 5)
    assert few[1:2] == ["wonderful"]
    (tmp_path / "b").mkdir()
    many, (high, width) = key_axis(tmp_path / "b", 24)
    assert len(many) == 24 and (many[2], many[-1]) == ("extraordi…", "again") and high > low + 30 and width > 80
    (tmp_path / "c").mkdir()
    numbered, (height, _) = key_axis(tmp_path / "c", 150)
    assert all(text.isdigit() for text in numbered) and height == low
