"""The share of the state that a unit retains over a span of steps: the product of its memory gate over the span."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Read = Callable[[int, int], Array]
LIMIT = 2_000_000
"""Entries (steps × units) that are multiplied for one plot; beyond that, only some steps are computed."""
MOST_SAMPLES, FEWEST_SAMPLES = 256, 16


def retained(gate: Array, span: int, *, high: bool = True) -> Array:
    """∏ of the last `span` rows of a memory gate (step, unit), g or 1 − g: row t is the share of row t − span that is
    left.

    The first span − 1 rows are −∞: their span begins before the first step. A row is NaN as long as its span has a NaN
    or an infinity.
    """
    kept = gate.astype(np.float64) if high else 1 - gate.astype(np.float64)
    out = np.full(kept.shape, -np.inf)
    if len(kept) < span:
        return out
    if kept.min(initial=1.0) > 0 and kept.max(initial=1.0) < np.inf:  # as of every gate that saturates nowhere
        out[span - 1 :] = _in_span(np.log(kept), span)
        np.exp(out[span - 1 :], out=out[span - 1 :])
        return out
    nothing, unknown = kept == 0, ~np.isfinite(kept)
    result = np.exp(_in_span(np.log(np.where(nothing | unknown, 1.0, np.abs(kept))), span))
    result[_in_span(kept < 0, span, np.int32) % 2 == 1] *= -1
    result[_in_span(nothing, span, np.int32) > 0] = 0
    result[_in_span(unknown, span, np.int32) > 0] = np.nan
    out[span - 1 :] = result
    return out


def _in_span(values: Array, span: int, dtype: type = np.float64) -> Array:
    """Sums of the last `span` rows, from row span − 1 on; of flags how many are True."""
    total: Array = np.zeros((len(values) + 1, values.shape[1]), dtype)
    np.cumsum(values, axis=0, dtype=dtype, out=total[1:])
    found: Array = total[span:] - total[:-span]
    return found


def largest_of(values: Array, cells: int) -> Array:
    """At most `cells` rows, each the largest of the rows that it represents; NaN stays."""
    if len(values) <= cells:
        return values
    largest: Array = np.maximum.reduceat(values, np.arange(cells) * len(values) // cells, axis=0)
    return largest


def retention_over(
    read: Read, steps: int, units: int, cut: tuple[int, int], span: int, *, high: bool, backward: bool
) -> Array:
    """Retention of the steps `cut`, whole or at evenly spaced steps where they are too many.

    `read(first, stop)` gives rows of the gate. A backward direction retains from later steps to earlier ones.
    """
    first, stop = cut
    if (stop - first + span) * units <= LIMIT:
        before, after = (first, min(steps, stop + span - 1)) if backward else (max(0, first - span + 1), stop)
        values = read(before, after)
        rows = retained(values[::-1], span, high=high)[::-1] if backward else retained(values, span, high=high)
        return rows[first - before : stop - before]
    count = max(FEWEST_SAMPLES, min(MOST_SAMPLES, stop - first, LIMIT // max(1, span * units)))
    middles = first + ((np.arange(count) + 0.5) * (stop - first) / count).astype(int)
    return np.stack([at_step(read, steps, int(t), span, units, high=high, backward=backward) for t in middles])


def at_step(read: Read, steps: int, step: int, span: int, units: int, *, high: bool, backward: bool) -> Array:
    """Retention of every unit at one step; −∞ where the span goes beyond the sequence."""
    begin, end = (step, step + span) if backward else (step - span + 1, step + 1)
    if begin < 0 or end > steps:
        return np.full(units, -np.inf)
    values = read(begin, end).astype(np.float64)
    product: Array = np.prod(values if high else 1 - values, axis=0)
    return product
