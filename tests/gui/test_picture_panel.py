"""The panel of words on a picture: what is read off its colours and its readout, stepping, NaN, many words, others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import Written, channel, shown
from PySide6.QtWidgets import QApplication

from inspector.gui.panel.picture.maps import MOST_WORDS
from inspector.gui.panel.picture.mosaic import GAP, MOST, OVER, coloured, grey, mosaic
from inspector.gui.widgets.theme import NOT_A_NUMBER, colour_table
from inspector.records import Axis, Labels

GRID, HEADS, NAMES = (2, 3), 2, ("three", "above", "<")
DOMAIN, PLACE = "answer step", "decoder.cross"
random = np.random.default_rng(4)


def rgb(index: int, scale: str) -> tuple[int, int, int]:
    packed = int(colour_table(scale)[index])
    return packed >> 16 & 255, packed >> 8 & 255, packed & 255


def parts(words: int = 3, *, nan: bool = False, before: int = 0) -> tuple[Any, ...]:
    """A picture of 4 × 6 pixels, weights over its patches, gradients and blanked patches."""
    cells = GRID[0] * GRID[1]
    weights = random.dirichlet(np.ones(cells + before), (HEADS, words))
    gradient, blanked = random.random((words, 4, 6)), random.normal(size=(words, *GRID))
    if nan:
        weights[0, 1], gradient[1, 0, 0], blanked[1, 0, 0] = np.nan, np.nan, np.inf
    over = {"query": DOMAIN, "key": "seen patch"}
    step = {"step": DOMAIN}
    found: list[Any] = [
        channel("input.seen:image", "input", ("channel", "row", "column"), random.random((1, 4, 6))),
        channel("input.other:image", "input", ("channel", "row", "column"), random.random((1, 2, 2))),
        channel(f"{PLACE}:attention", "attention", ("head", "query", "key"), weights, domains=over),
        channel("input.seen:words/log_p", "picture_words", ("step",), -random.random(words), unit="nat",
                title="ln p of the word", domains=step),
        channel("input.seen:words/gradient", "picture_words", ("step", "row", "column"), gradient, unit="nat",
                domains=step),
        channel("input.seen:words/blanked", "picture_words", ("step", "patch_row", "patch_column"), blanked,
                unit="nat", scale="diverging", domains=step),
        Axis(name=DOMAIN, length=words, frame=0),
    ]  # fmt: skip
    if words == len(NAMES):
        found.append(Labels(DOMAIN, NAMES, 0))
    if before:
        names = [f"row {r}, column {c}" for r, c in np.ndindex(*GRID)]
        found.append(Labels("seen patch", (*(f"[{n}]" for n in range(before)), *names), 0))
    else:
        found.append(Axis(name="seen patch", length=cells, layout="grid", grid=GRID, frame=0))
    return tuple(found)


def values(made: tuple[Any, ...], name: str) -> np.ndarray:
    return next(part[1] for part in made if isinstance(part, tuple) and part[0].name == name)


@pytest.fixture
def made() -> tuple[Any, ...]:
    return parts()


@pytest.fixture
def opened(made: tuple[Written, ...], tmp_path: Path) -> Iterator[Any]:
    with shown(tmp_path, "picture", *made, place=PLACE) as (_stage, panel):
        panel.looking.move(steps={DOMAIN: 0})
        yield panel


def test_the_table_has_each_word_in_each_map_over_the_picture(opened: Any, made: tuple[Any, ...]) -> None:
    image = opened.images[opened.table].image
    high, wide = round(MOST * 4 / 6), MOST
    assert image.shape == (4 * (high + GAP), 4 * (wide + GAP), 3), (
        "three words and the coverage; two heads and two more"
    )
    weights, seen = values(made, f"{PLACE}:attention"), values(made, "input.seen:image")[0]
    shade = (seen - seen.min()) / (seen.max() - seen.min()) * 255
    for word, head, row, column in ((0, 0, 0, 0), (1, 1, 3, 5), (2, 0, 2, 1)):
        cell = weights[head, word, row // 2 * 3 + column // 2]
        wanted = OVER * np.array(rgb(round(np.sqrt(cell) * 252), "attention")) + (1 - OVER) * shade[row, column]
        y, x = word * (high + GAP) + int((row + 0.5) * high / 4), head * (wide + GAP) + int((column + 0.5) * wide / 6)
        np.testing.assert_allclose(image[y, x], wanted, atol=2)
    assert opened.columns[1].below is not None
    loops = [sum(weights[1, word, cell] for word in range(3)) for cell in range(6)]
    np.testing.assert_allclose(opened.columns[1].below.reshape(-1), loops)
    ticks = opened.table.getAxis("left")._tickLevels[0]
    assert [text for _, text in ticks] == [*NAMES, "coverage"]
    below = opened.table.getAxis("bottom")._tickLevels[0]
    assert [text for _, text in below] == ["head 0", "head 1", "gradient", "blanked"]


def test_names_of_columns_do_not_overlap(opened: Any) -> None:
    """Where they have no room beside each other only the map that is drawn large is named: its title says the rest."""
    titles = [column.title for column in opened.columns]
    opened.chosen = 1
    for width, expected in ((1600, titles), (420, titles[1:2])):
        opened.resize(width, 700 if width > 1000 else 300)
        opened.grab()
        QApplication.processEvents()
        opened._fit()
        assert [name for _, name in opened.table.getAxis("bottom")._tickLevels[0]] == expected


def test_signs_are_on_both_sides_of_the_middle(opened: Any, made: tuple[Any, ...]) -> None:
    blanked = values(made, "input.seen:words/blanked")
    column = opened.columns[3]
    assert column.top == pytest.approx(np.abs(blanked).max())
    strongest = np.unravel_index(np.abs(blanked).argmax(), blanked.shape)
    drawn = coloured(column.values, column.top, signed=True)[strongest]
    assert tuple(drawn) == rgb(252 if blanked[strongest] > 0 else 0, "diverging")


def test_a_click_chooses_a_word_and_a_map_and_its_cell_is_told(opened: Any, made: tuple[Any, ...]) -> None:
    opened.pointed(opened.table, 3.1, 1.2)
    assert opened.looking.position.steps[DOMAIN] == 1 and opened.chosen == 3
    assert "above" in opened.large.titleLabel.text and "blanked" in opened.large.titleLabel.text
    rect = opened.images[opened.large].boundingRect()
    opened.pointed(opened.large, rect.width() * 0.9, rect.height() * 0.7)
    told = dict(opened.readout(opened.looking.position))
    number = values(made, "input.seen:words/blanked")[1, 1, 2]
    assert told["blanked [1], row 1, column 2  input.seen"].startswith(f"{number:.6g}"[:7])
    opened.pointed(opened.table, 1, 2)
    assert opened.looking.position.head == 1
    weight = values(made, f"{PLACE}:attention")[1, 2, 5]
    told = dict(opened.readout(opened.looking.position))
    assert told[f"head 1 [2], row 1, column 2  {PLACE}"].startswith(f"{weight:.6g}"[:6])
    assert set(opened.data()) == {
        part[0].name for part in made if isinstance(part, tuple) and part[0].kind in ("attention", "picture_words")
    }


def test_positions_before_the_patches_are_left_out(tmp_path: Path) -> None:
    made = parts(before=1)
    with shown(tmp_path, "picture", *made, place=PLACE) as (_stage, panel):
        weights = values(made, f"{PLACE}:attention")
        np.testing.assert_allclose(panel.columns[0].values[0].reshape(-1), weights[0, 0, 1:], rtol=1e-6)


def test_nan_is_pink_in_its_cell_alone(tmp_path: Path) -> None:
    made = parts(nan=True)
    with shown(tmp_path, "picture", *made, place=PLACE) as (_stage, panel):
        colours = coloured(panel.columns[0].values, 1.0, root=True)
        pink = (colours == rgb(NOT_A_NUMBER, "attention")).all(-1)
        assert pink[1].all() and not pink[0].any() and not pink[2].any()
        assert np.isfinite(panel.columns[3].top)


def test_many_words_are_shown_a_few_at_a_time(tmp_path: Path) -> None:
    made = tuple(part for part in parts(5000) if not (isinstance(part, tuple) and "words" in part[0].name))
    with shown(tmp_path, "picture", *made, place=PLACE) as (_stage, panel):
        panel.looking.move(steps={DOMAIN: 4321})
        assert 4321 in panel.words and len(panel.words) == MOST_WORDS
        weights = values(made, f"{PLACE}:attention")
        row = 4321 - panel.words.start
        np.testing.assert_allclose(panel.columns[1].values[row].reshape(-1), weights[1, 4321], rtol=1e-6)


def test_attention_to_something_else_is_not_shown(tmp_path: Path) -> None:
    weights = random.dirichlet(np.ones(3), (1, 3))
    made = channel("blocks:attention", "attention", ("head", "query", "key"), weights)
    with (
        pytest.raises(AssertionError),
        shown(tmp_path, "picture", made),
    ):
        pass


def test_without_a_picture_the_map_is_drawn_alone() -> None:
    from inspector.gui.panel.picture.mosaic import Column

    column = Column("gradient", "a:b", -1, np.array([[[0.0, 1.0]]]), 1.0)
    image = mosaic(None, [column], range(1), (9, 9, 9))
    assert tuple(image[5, 5]) == rgb(0, "sequential") and tuple(image[5, MOST - 5]) == rgb(252, "sequential")
    assert tuple(image[-1, -1]) == (9, 9, 9)


def test_a_picture_of_three_channels_keeps_its_colours() -> None:
    picture = np.zeros((3, 1, 2))
    picture[0, 0, 1] = 2.0
    assert grey(picture).tolist() == [[[0, 0, 0], [255, 0, 0]]]
    assert grey(np.full((1, 1, 1), np.nan)).tolist() == [[[0, 0, 0]]]
