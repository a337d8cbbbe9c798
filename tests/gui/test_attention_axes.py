"""The axes of an attention map: tokens at every step or numbers, never both; long tokens are written downwards."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, shown
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen, QPicture

from inspector.gui.widgets.plots.axes import StepAxis
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


class Turning(QPainter):
    """Remembers which texts are drawn while the painter is turned."""

    def __init__(self, picture: QPicture) -> None:
        super().__init__(picture)
        self.texts: dict[str, bool] = {}

    def drawText(self, *args: Any) -> None:  # type: ignore[override]
        self.texts[args[-1]] = self.worldTransform().isRotating()


def test_single_characters_stand_upright_beside_names_that_are_turned() -> None:
    names = ["a", "<end of it>", "␣", "7", "ab"]
    axis = StepAxis("bottom")
    axis.turns = True
    axis.set_names(names)
    axis.tickValues(-0.5, 4.5, 100.0)
    texts = [(QRectF(20.0 * n - 20, 4, 60, 14), 0, text) for n, text in enumerate(axis.tickStrings([*range(5)], 1, 1))]
    picture = QPicture()
    painter = Turning(picture)
    try:
        axis.drawPicture(painter, (QPen(), QPointF(0, 0), QPointF(100, 0)), [], texts)
    finally:
        painter.end()
    turned = {text: len(text) > 1 for _, _, text in texts}
    assert painter.texts == turned, "two short words that are upright beside each other would read as one"


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
    thinned, (height, _) = key_axis(tmp_path / "c", 150)
    steps = [int(text.rpartition(" ")[2]) for text in thinned]
    assert len(steps) > 3 and height == low and len({b - a for a, b in pairwise(steps)}) == 1
    assert [shortened(WORDS[step % len(WORDS)]) + f" {step}" for step in steps] == thinned, "each is true"


def shortened(word: str) -> str:
    return word if len(word) <= 10 else word[:9] + "…"


@pytest.mark.parametrize("orientation", ["bottom", "left"])
@pytest.mark.parametrize("size", [40.0, 120.0, 330.0, 900.0])
@pytest.mark.parametrize(("low", "high"), [(0, 199), (37, 160), (0, 15_999), (3, 6)])
def test_names_that_do_not_all_fit_are_thinned_out_with_their_numbers(
    orientation: str, size: float, low: int, high: int
) -> None:
    axis = StepAxis(orientation)
    axis.thins = True
    axis.set_names([f"t{n}" for n in range(16_000)])
    levels = axis.tickValues(low - 0.5, high + 0.5, size)
    texts = [text for spacing, values in levels for text in axis.tickStrings(values, 1.0, spacing)]
    values = [value for _, some in levels for value in some]
    if texts == [f"t{n}" for n in range(low, high + 1)]:
        assert size >= 120.0 and high - low < 10, "all fit"
    elif not texts[0].isdigit():
        assert texts == [f"t{int(value)} {int(value)}" for value in values] and len(texts) >= 2
        metrics = QFontMetricsF(QFont())
        apart = (values[1] - values[0]) * size / (high - low + 1)
        assert apart >= (metrics.height() if orientation == "left" else max(map(metrics.horizontalAdvance, texts)))
    else:
        assert all(text.isdigit() for text in texts) and size <= 120.0, "no room for two names"


def test_without_names_or_where_an_axis_does_not_thin_steps_are_numbered() -> None:
    for thins, names in ((True, []), (False, [f"t{n}" for n in range(200)])):
        axis = StepAxis("bottom")
        axis.thins = thins
        axis.set_names(names)
        levels = axis.tickValues(-0.5, 199.5, 300.0)
        assert all(text.isdigit() for gap, values in levels for text in axis.tickStrings(values, 1.0, gap))


@pytest.mark.parametrize("size", [60.0, 80.0, 120.0, 400.0])
def test_numbers_of_steps_below_a_narrow_plot_do_not_touch(size: float) -> None:
    axis = StepAxis("bottom")
    ((_, values), *_) = axis.tickValues(-0.5, 199.5, size)
    metrics = QFontMetricsF(QFont())
    ends = [
        (value * size / 200 - metrics.horizontalAdvance(str(int(value))) / 2,
         value * size / 200 + metrics.horizontalAdvance(str(int(value))) / 2)
        for value in values
    ]  # fmt: skip
    assert values and all(before[1] < after[0] for before, after in pairwise(ends))
