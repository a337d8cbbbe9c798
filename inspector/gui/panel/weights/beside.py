"""What stands beside the map of a tensor: histograms, of gates too, singular values, norms of rows and of columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.weights import WeightList, norms, singular_values, spectrum_sentence
from inspector.gui.panel.weights.page import WeightsPage
from inspector.gui.panel.weights.plots import Drawn, histogram
from inspector.gui.panel.weights.values import SMALL, TensorRows
from inspector.gui.state.side_reader import SideReader, Task

Array = npt.NDArray[Any]
HISTOGRAM, OF_GATES, SPECTRUM, ROWS, COLUMNS, NOTHING = (
    "histogram", "histogram of each gate", "singular values", "norms of rows", "norms of columns", "nothing",
)  # fmt: skip
BESIDE = (HISTOGRAM, OF_GATES, SPECTRUM, ROWS, COLUMNS, NOTHING)
AT_ONCE, MOST_WORK = 3e7, 4e10
"""Multiplications of singular values that are computed in the thread of the window, and the most beside it."""
KEPT = 12
"""Results that are kept."""
PICTURE_ONLY = "Read every number first: this is a picture of the tensor."


class Beside:
    """Draws it, and computes beside the window what takes long."""

    def __init__(self, reader: SideReader) -> None:
        self.reader = reader
        self._known: dict[Hashable, Any] = {}

    def forget(self) -> None:
        """Another capture."""
        self._known.clear()

    def draw(
        self, page: WeightsPage, chosen: str, found: WeightList, part: int, source: TensorRows | None, *, exact: bool
    ) -> None:
        """One of them. `exact`: whether the source has all values, and is no picture."""
        if chosen in (HISTOGRAM, OF_GATES, NOTHING):
            self._draw_histogram(page, found, part, gates=chosen == OF_GATES)
            return
        log = chosen == SPECTRUM
        axes = ("σ", "rank") if log else ("norm", "row" if chosen == ROWS else "column")
        curves, title = self._numbers(chosen, source if exact else None)
        page.draw_beside(curves, axes, title, log=log)

    def _draw_histogram(self, page: WeightsPage, found: WeightList, part: int, *, gates: bool) -> None:
        wanted = found.gates_of(found.parts[part].tensor) if gates else []
        two = len(found.tables) == 2
        curves = []
        for side, name in enumerate(found.files):
            for one in wanted or [part]:
                told = f"{found.parts[one].gate} · {name}" if wanted and two else found.parts[one].gate or name
                low, high = found.number(one, "min", side), found.number(one, "max", side)
                made = histogram(told if wanted else name, found.histograms[side][one], low, high,
                                 density=bool(wanted) or two)  # fmt: skip
                curves += [made] if made is not None else []
        what = "density" if wanted or two else "elements"
        title = _counted(found, part) if not wanted else "histograms of the gates"
        page.draw_beside(curves, (what, "value"), "no gates here" if gates and not wanted else title, log=False)

    def _numbers(self, chosen: str, source: TensorRows | None) -> tuple[list[Drawn], str]:
        if source is None:
            return [], PICTURE_ONLY
        rows, columns = source.shape
        work = float(rows) * columns * min(rows, columns)
        if chosen == SPECTRUM and work > MOST_WORK:
            return [], f"No singular values of {rows:,} × {columns:,}: they take too long."
        what = "spectrum" if chosen == SPECTRUM else "norms"
        small = source.size <= SMALL and (chosen != SPECTRUM or work <= AT_ONCE)
        known = self._computed(what, source, at_once=small)
        if known is None:
            return [], "being computed …"
        if chosen == SPECTRUM:
            values, title = known
            return ([Drawn("σ", np.arange(1.0, len(values) + 1), values)] if len(values) else []), title
        along = known[0] if chosen == ROWS else known[1]
        left = f", {known[2]:,} not finite left out" if known[2] else ""
        return [Drawn(chosen, np.arange(len(along), dtype=np.float64), along)], f"{chosen}{left}"

    def _computed(self, what: str, source: TensorRows, *, at_once: bool) -> Any:
        """Singular values with what they say, or norms; None while they are being computed."""
        view = source.view
        key = (what, source.cut, tuple(view.revision(name, source.frame) for name in source.cut.names))
        if key not in self._known:

            def steps(own: Any) -> Iterator[None]:
                matrix = TensorRows(own, source.cut, source.frame).all()
                self._known[key] = _spectrum(matrix) if what == "spectrum" else norms(matrix)
                yield

            while len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = None
            self.reader.do(view, Task(key, steps, 2), at_once=at_once)
        return self._known.get(key)


def _spectrum(matrix: Array) -> tuple[Array, str]:
    bad = int((~np.isfinite(matrix)).sum())
    if bad:
        return np.zeros(0), f"no singular values: {bad:,} elements are not finite"
    values = singular_values(matrix)
    return values, spectrum_sentence(values)


def _counted(found: WeightList, part: int) -> str:
    """What is left out of a histogram."""
    sides = range(len(found.tables))
    bad = sum(int(np.nan_to_num(found.number(part, what, side))) for what in ("nan", "inf") for side in sides)
    return "histogram" + (f", {bad:,} not finite left out" if bad else "")
