"""The rows of the table of tensors: of one file, or of two side by side."""

from __future__ import annotations

import math

from inspector.analysis.weights import WeightList
from inspector.gui.widgets.tables.sorted_table import Cell, Rows

NONE = "–"
"""In place of a number that does not exist: the mean of nothing."""
OF_ONE = (
    ("shape", "axes as in the file"), ("type", "as in the file"), ("norm", "of the finite elements"),
    ("min", "the least finite one"), ("max", "the largest finite one"), ("mean", "of the finite elements"),
    ("std", "of all finite elements"), ("NaN", "how many"), ("infinite", "how many"), ("zeros", "how many"),
    ("elements", "how many there are"),
)  # fmt: skip
STATISTIC = {"elements": "count", "NaN": "nan", "infinite": "inf"}
OF_TWO = (
    ("relative", "‖second − first‖ / ‖first‖"), ("norm ratio", "‖second‖ / ‖first‖"),
    ("cosine", "of the angle between both, as vectors"), ("largest", "the largest |second − first|"),
    ("differs", "equal bit by bit, in values, in shape, or in one file only"), ("not finite", "elements left out"),
    ("shape", "in the first file, and the second's where it is another"),
    ("type", "in the first file, and the second's where it is another"),
)  # fmt: skip
BETWEEN = {"norm ratio": "ratio", "not finite": "left out"}
CHANGED = 0
"""The column by which two files are sorted at first."""


def chosen_parts(found: WeightList, wanted: str, *, gates: bool) -> list[int]:
    """The numbers of parts whose names have every word of `wanted`; with `gates` those too."""
    words = wanted.casefold().split()
    return [
        number for number, part in enumerate(found.parts)
        if (gates or not part.gate) and all(word in part.title.casefold() for word in words)
    ]  # fmt: skip


def rows_of(found: WeightList, numbers: list[int]) -> Rows:
    """A row for each of these parts."""
    columns = OF_ONE if len(found.tables) == 1 else OF_TWO
    cell = _of_one if len(found.tables) == 1 else _of_two
    cells = [[cell(found, number, name) for name, _ in columns] for number in numbers]
    bad = [n for n, (name, _) in enumerate(columns) if name in ("NaN", "infinite", "not finite")]
    marked = {(row, column) for row, one in enumerate(cells) for column in bad if one[column] not in (0.0, NONE)}
    return Rows(
        [found.parts[number].title for number in numbers], [name for name, _ in columns], cells,
        [tip for _, tip in columns], frozenset(marked),
    )  # fmt: skip


def _of_one(found: WeightList, number: int, name: str) -> Cell:
    part = found.parts[number]
    if name == "shape":
        return part.shapes[0] or "scalar"
    if name == "type":
        return part.types[0]
    return _number(found.number(number, STATISTIC.get(name, name)))


def _of_two(found: WeightList, number: int, name: str) -> Cell:
    part = found.parts[number]
    if name in ("shape", "type"):
        both = [one or "scalar" if name == "shape" else one
                for one, there in zip(part.shapes if name == "shape" else part.types, part.there, strict=True)
                if there]  # fmt: skip
        return " / ".join(dict.fromkeys(both))
    if name == "differs":
        return how_it_differs(found, number)
    return _number(found.difference(number, BETWEEN.get(name, name)))


def how_it_differs(found: WeightList, number: int) -> str:
    """In a word or two."""
    part = found.parts[number]
    if not all(part.there):
        return f"only in the {'first' if part.there[0] else 'second'}"
    equal = found.difference(number, "equal")
    if math.isnan(equal):
        return "in shape"
    return "equal" if equal else "in values"


def _number(value: float) -> Cell:
    return NONE if math.isnan(value) else value
