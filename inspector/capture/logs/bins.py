"""Histograms of other tools as edges (n + 1,) and counts (n,)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inspector.capture.layout import CaptureError
from inspector.capture.logs.growing import Floats
from inspector.capture.logs.wire import FIXED64, BadMessageError, double, fields, fixed_numbers

MOST_BINS = 1 << 16
BEYOND = 1e300
"""TensorFlow's outermost limits are ± the largest double; the extreme values that were seen stand there instead."""


def proto_bins(data: bytes, first: int, stop: int) -> int:
    """How many bins a HistogramProto has, as `proto_histogram` gives them. Raises BadMessageError."""
    return len(proto_histogram(data, first, stop)[1])


def proto_histogram(data: bytes, first: int, stop: int) -> tuple[Floats, Floats]:
    """A HistogramProto: right edges and counts, the smallest and the largest value. Raises BadMessageError."""
    found: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for number, kind, at, end in fields(data, first, stop):
        found[number].append((kind, at, end))
    low, high = (double(data, found[n][-1][1]) if found[n] and found[n][-1][0] == FIXED64 else np.nan for n in (1, 2))
    limits = fixed_numbers(data, found[6], "<f8")[:MOST_BINS]
    counts = fixed_numbers(data, found[7], "<f8")[:MOST_BINS]
    if not len(limits) or len(limits) != len(counts):
        raise BadMessageError(f"a histogram has {len(counts)} counts for {len(limits)} limits")
    left = low if low < limits[0] else limits[0]
    if limits[-1] > BEYOND:
        limits = np.concatenate((limits[:-1], [max(high, limits[-2]) if len(limits) > 1 else high]))
    if left == limits[0] and not counts[0] and len(counts) > 1:  # some writers begin with a bin of no width
        return limits, counts[1:]
    return np.concatenate(([left], limits)), counts


def tensor_histogram(numbers: Floats) -> tuple[Floats, Floats]:
    """A tensor (n, 3) of left edge, right edge, count."""
    rows = numbers[: len(numbers) // 3 * 3].reshape(-1, 3)[:MOST_BINS]
    return np.concatenate((rows[:1, 0], rows[:, 1])), rows[:, 2].copy()


def listed_bins(value: Mapping[str, Any]) -> int:
    """How many bins a histogram has that is a JSON object with its counts; 0 for anything else."""
    counts = value.get("values", value.get("counts"))
    return min(MOST_BINS, len(counts)) if isinstance(counts, list) else 0


def listed_histogram(value: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """A JSON object with counts ("values") and edges ("bins"), or the first edge, the width and the number of bins
    ("packedBins": min, size, count). Raises CaptureError."""
    counts, edges, packed = value.get("values", value.get("counts")), value.get("bins"), value.get("packedBins")
    try:
        if isinstance(packed, Mapping):
            edges = float(packed["min"]) + float(packed["size"]) * np.arange(len(_list(counts)) + 1)
        found = np.asarray(edges, np.float64)[: MOST_BINS + 1], np.asarray(counts, np.float64)[:MOST_BINS]
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise CaptureError(f"A histogram cannot be read: {type(problem).__name__}.") from None
    if found[0].ndim != 1 or found[1].ndim != 1 or len(found[0]) != len(found[1]) + 1:
        raise CaptureError("A histogram cannot be read: it needs one edge more than it has counts.")
    return found


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value
