"""A table of small pictures, a word a row: the picture in grey, with a map of the word's numbers over it in colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inspector.gui.widgets.theme import INFINITE, LAST, MASKED, NOT_A_NUMBER, colour_table

Numbers = npt.NDArray[np.float64]
Colours = npt.NDArray[np.uint8]
OVER = 0.62
"""The part of a pixel's colour that is the map's; the rest is the picture's."""
LEAST, MOST = 40, 160
"""Pixels along the longer side of a small picture."""
GAP = 4
"""Pixels between two of them."""


@dataclass(frozen=True, slots=True)
class Column:
    """Maps of one kind.

    Attributes:
        title: at the axis; name: of the channel; head: of attention, else −1.
        values: (word, rows, columns); top: the number with the last colour; signed: whether 0 is in the middle;
        root: whether colours go with the square root, as those of attention do elsewhere.
        below: (rows, columns) for the row below the words; None for nothing.
    """

    title: str
    name: str
    head: int
    values: Numbers
    top: float
    signed: bool = False
    root: bool = False
    below: Numbers | None = None
    below_top: float = 1.0


def indices(values: Numbers, top: float, *, signed: bool, root: bool) -> npt.NDArray[np.uint8]:
    """Colour indices: 0 to LAST, and those of NaN, +∞ and masked (−∞)."""
    with np.errstate(all="ignore"):
        share = values / (top if top > 0 else 1.0)
        share = (share + 1) / 2 if signed else np.sqrt(np.clip(share, 0, None)) if root else share
        found = np.rint(np.clip(np.nan_to_num(share, nan=0.0, posinf=1.0, neginf=0.0), 0, 1) * LAST)
    out: npt.NDArray[np.uint8] = found.astype(np.uint8)
    out[np.isnan(values)] = NOT_A_NUMBER
    out[np.isposinf(values)] = INFINITE
    out[np.isneginf(values)] = INFINITE if signed else MASKED
    return out


def coloured(values: Numbers, top: float, *, signed: bool = False, root: bool = False) -> Colours:
    """(rows, columns, 3); masked cells are black."""
    table = colour_table("diverging" if signed else "attention" if root else "sequential")
    packed = table[indices(values, top, signed=signed, root=root)]
    return np.stack((packed >> 16 & 255, packed >> 8 & 255, packed & 255), -1).astype(np.uint8)


def resized(picture: npt.NDArray[np.uint8], size: tuple[int, int]) -> Colours:
    """The nearest pixels (h, w, 3) of a picture (rows, columns, 3)."""
    rows, columns = ((np.arange(many) * have) // many for many, have in zip(size, picture.shape[:2], strict=True))
    chosen: Colours = picture[rows][:, columns]
    return chosen


def over(ground: Colours | None, colours: Colours, size: tuple[int, int]) -> Colours:
    """A map over a picture, (h, w, 3); the map alone where there is no picture."""
    above = resized(colours, size).astype(np.float64)
    if ground is None:
        return above.astype(np.uint8)
    below = resized(ground, size).astype(np.float64)
    return np.rint(OVER * above + (1 - OVER) * below).astype(np.uint8)


def size_of(ground: Colours | None, grid: tuple[int, int], longest: int) -> tuple[int, int]:
    """(h, w) of a small picture whose longer side has about so many pixels, in the proportions of the picture."""
    rows, columns = grid if ground is None else ground.shape[:2]
    longer = max(rows, columns, 1)
    return max(1, round(longest * rows / longer)), max(1, round(longest * columns / longer))


def mosaic(
    ground: Colours | None, columns: Sequence[Column], words: Sequence[int], empty: tuple[int, int, int]
) -> Colours:
    """All words of all columns, and the row below them where a column has one; every cell with a gap on its right and
    below it, so that all are equally large."""
    grid = columns[0].values.shape[1:]
    high, wide = size_of(ground, (grid[0], grid[1]), MOST)
    with_below = any(column.below is not None for column in columns)
    shape = ((len(words) + with_below) * (high + GAP), len(columns) * (wide + GAP), 3)
    out = np.empty(shape, np.uint8)
    out[:] = empty
    for at, column in enumerate(columns):
        shown = [(column.values[word], column.top, column.signed, column.root) for word in words]
        if column.below is not None:
            shown.append((column.below, column.below_top, False, False))
        for row, (values, top, signed, root) in enumerate(shown):
            top_left = row * (high + GAP), at * (wide + GAP)
            cell = over(ground, coloured(values, top, signed=signed, root=root), (high, wide))
            out[top_left[0] : top_left[0] + high, top_left[1] : top_left[1] + wide] = cell
    return out


def grey(picture: Numbers) -> Colours:
    """A picture (channel, row, column) or (row, column) from its least number, black, to its largest, white; three
    channels are red, green and blue."""
    finite = picture[np.isfinite(picture)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    share = np.nan_to_num((picture - low) / ((high - low) or 1.0), nan=0.0, posinf=1.0, neginf=0.0)
    planes = share[None] if share.ndim == 2 else share
    planes = planes if len(planes) == 3 else np.repeat(planes.mean(0, keepdims=True), 3, 0)
    return np.moveaxis(np.rint(np.clip(planes, 0, 1) * 255).astype(np.uint8), 0, -1)
