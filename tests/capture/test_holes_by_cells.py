"""Holes of pages that lie anywhere, beside one loop over the cells of all pages in turn."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from inspector.capture.assemble import marks_of
from inspector.capture.damage import Box
from inspector.capture.holes import DAMAGED, KNOWN, MISSING, holes_of
from inspector.capture.parsing import PageRow


def page(number: int, start: tuple[int, ...], shape: tuple[int, ...]) -> PageRow:
    return PageRow(number, 0, 0, 0, 0, 0, start, shape, 0)


def by_cells(bounds: Box, pages: list[PageRow], bad: set[int], filled: bool) -> dict[tuple[int, ...], int]:
    cells = dict.fromkeys(product(*(range(*side) for side in bounds)), KNOWN if filled else MISSING)
    for one in pages:
        for cell in product(*(range(first, first + n) for first, n in zip(one.start, one.shape, strict=True))):
            if cell in cells:
                cells[cell] = DAMAGED if one.id in bad else KNOWN
    return cells


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_holes_are_those_of_a_loop_over_the_cells(seed: int, axes: int) -> None:
    random = np.random.default_rng([seed, axes])
    bounds: Box = tuple((int(low), int(low) + int(random.integers(1, 7))) for low in random.integers(0, 4, axes))
    pages = [
        page(n, tuple(random.integers(0, 9, axes).tolist()), tuple(random.integers(0, 5, axes).tolist()))
        for n in range(int(random.integers(0, 12)))
    ]
    bad, filled = {n for n in range(12) if random.random() < 0.3}, bool(random.integers(2))
    found = holes_of(bounds, pages, lambda row: row.id in bad, filled=filled)
    cells = by_cells(bounds, pages, bad, filled)
    seen = dict.fromkeys(cells, KNOWN)
    for boxes, mark in ((found.missing, MISSING), (found.damaged, DAMAGED)):
        for box in boxes:
            for cell in product(*(range(*side) for side in box)):
                assert seen[cell] == KNOWN, "each cell is in one box"
                seen[cell] = mark
    assert seen == cells
    mask = marks_of(bounds, found)
    assert (mask is not None) == any(mark != KNOWN for mark in cells.values())
