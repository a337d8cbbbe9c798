"""The positions along an axis of channels: their number, their layout, what they count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Layout = Literal["line", "grid", "layers", "hypotheses"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis that any number of channels share. The names of its positions are Labels of the same name.

    A channel's dim lies along the axis that `Channel.domain(dim)` names. An axis that was not described is a line whose
    title is its name, so that a capture needs a record only where there is more to say.

    Attributes:
        name: the label domain: "step", "answer step", "iteration", "layer", …
        title: the title shown at the axis, for example "source step"; the name where it is left empty.
        length: how many positions there are; None where that is not known (yet).
        layout: how positions lie: a "line" (a sequence in order), a "grid" (a picture cut into patches, row by row),
            "layers" (of a stack, the first nearest to the input), or "hypotheses" (alternatives beside each other, as
            in a beam, without an order in time).
        grid: (rows, columns) where `layout` is "grid"; position i lies in row i // columns and column i % columns.
        unit: what positions are counted or measured in, for example "iteration"; "" for bare positions.
        frame: the frame to which it applies; -1 for every frame (as in Labels).

    Raises ValueError for a description that contradicts itself.
    """

    name: str
    title: str = ""
    length: int | None = None
    layout: Layout = "line"
    grid: tuple[int, int] | None = None
    unit: str = ""
    frame: int = -1

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("An axis has no name; it has that of a label domain, for example 'step'.")
        object.__setattr__(self, "title", self.title or self.name)
        if self.length is not None and self.length < 0:
            raise ValueError(f"Axis {self.name!r}: a length of {self.length} is negative.")
        if (self.layout == "grid") is not (self.grid is not None):
            raise ValueError(f"Axis {self.name!r}: (rows, columns) belong to the layout 'grid', and to it alone.")
        if self.grid is not None:
            self._check_grid(self.grid)

    def _check_grid(self, grid: tuple[int, int]) -> None:
        if min(grid) < 1:
            raise ValueError(f"Axis {self.name!r}: a grid of {grid[0]} × {grid[1]} has no cells.")
        if self.length is None:
            object.__setattr__(self, "length", math.prod(grid))
        elif self.length != math.prod(grid):
            raise ValueError(f"Axis {self.name!r}: {grid[0]} × {grid[1]} cells are not {self.length} positions.")
