"""Names for the axes of what panels write as numbers, where that is no channel."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DataAxes = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""By what `Panel.data` calls it: (names of the axes, names along the last one, () where its positions are numbers)."""
BY_STEP: tuple[tuple[str, ...], tuple[str, ...]] = (("step",), ())
UNITS: DataAxes = MappingProxyType({
    "units": (("found", "what"), ("unit", "sign", "F1", "exact", "searched")),
    "spans": (("span", "what"), ("first", "last", "share on", "score")),
    "on": BY_STEP,
})  # fmt: skip
