"""Histograms over training as a table that is read from their files when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.layout import CaptureError, TooLargeError
from inspector.capture.logs.growing import Floats

Find = Callable[[float, str], tuple[Floats, Floats]]
MOST_CELLS = 1 << 26
"""Numbers of one region: half a gigabyte."""


class HistogramTable:
    """Counts (iteration, bin), or edges (iteration, edge), NaN behind the last bin of an iteration with fewer.

    `places` is where each histogram lies; `rows` the length of the axis.
    """

    def __init__(self, name: str, places: Floats, rows: int, bins: int, *, edges: bool) -> None:
        self.name, self.places, self.rows, self.columns = name, places, rows, bins + edges
        self.edges = edges
        self._kept: tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_]] | None = None

    @property
    def extent(self) -> tuple[int, int]:
        """(iterations, bins) or (iterations, edges)."""
        return self.rows, self.columns

    def block(self, region: tuple[slice, ...], find: Find) -> npt.NDArray[np.float64]:
        """A region of the numbers. Raises CaptureError where a file cannot be read any more."""
        return self._read(region, find)[0].copy()

    def known(self, region: tuple[slice, ...], find: Find) -> npt.NDArray[np.bool_]:
        """The cells that there are."""
        return self._read(region, find)[1].copy()

    def _read(self, region: tuple[slice, ...], find: Find) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        cuts = [cut.indices(n) for cut, n in zip((*region, slice(None), slice(None))[:2], self.extent, strict=True)]
        wanted = range(*cuts[0])
        if len(wanted) * self.columns > MOST_CELLS:
            raise TooLargeError(
                f"{self.name} has {len(wanted):,} histograms of up to {self.columns:,} numbers: read a region of it."
            )
        if self._kept is None or self._kept[0] != cuts[0]:
            values = np.full((len(wanted), self.columns), np.nan)
            known = np.zeros(values.shape, np.bool_)
            for row, at in enumerate(wanted):
                if at < len(self.places):
                    found = self._one(float(self.places[at]), find)
                    values[row, : len(found)], known[row, : len(found)] = found, True
            self._kept = (cuts[0], values, known)
        _, values, known = self._kept
        own = slice(*cuts[1])
        return values[:, own], known[:, own]

    def _one(self, place: float, find: Find) -> Floats:
        edges, counts = find(place, self.name)
        found = edges if self.edges else counts
        if len(found) > self.columns:
            raise CaptureError(f"{self.name} has changed since its file was read.")
        return found
