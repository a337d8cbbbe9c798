"""Whether two captures say the same: the same channels, refusals and messages, and numbers equal to rounding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.capture import Capture

LOOSE = ("parameters:clipping/by_value", "parameters:clipping/norms", "attention")
"""Shares of entries that are 0, histograms, and maps stored as float16: rounding moves single entries by more."""
COUNTED = ":health/"
"""Counts of NaN, infinite, negative, zero and positive numbers: of what is 0 up to rounding the last three vary."""
SURE = (0, 4, 5, 6)
TIMES = ("seconds",)
"""Channels and messages about time differ from run to run."""


def differences(one: Capture, other: Capture, *, tolerance: float = 2e-4) -> Iterator[str]:
    """A line for each difference; `tolerance` is relative to a channel's largest number."""
    said = [{str(message) for message in capture.logs} for capture in (one, other)]
    refused = [{str(refusal) for refusal in capture.refusals} for capture in (one, other)]
    for what, (first, second) in (("message", said), ("refusal", refused)):
        yield from (f"{what} of the first only: {text}" for text in sorted(first - second))
        yield from (f"{what} of the second only: {text}" for text in sorted(second - first))
    names = [set(capture.channels) for capture in (one, other)]
    yield from (f"{name} of the first only" for name in sorted(names[0] - names[1]))
    yield from (f"{name} of the second only" for name in sorted(names[1] - names[0]))
    for name in sorted(names[0] & names[1]):
        if not name.endswith(TIMES):
            yield from (f"{name}: {text}" for text in _numbers(one, other, name, tolerance))


def _numbers(one: Capture, other: Capture, name: str, tolerance: float) -> Iterator[str]:
    for frame in range(len(one.frames)):
        first, second = (np.ma.filled(np.ma.asarray(c.array(name, frame), dtype=float), np.nan) for c in (one, other))
        if COUNTED in name:
            first, second = first[list(SURE)], second[list(SURE)]
        if first.shape != second.shape:
            yield f"shapes {first.shape} and {second.shape}"
            continue
        if first.size and not np.array_equal(np.isfinite(first), np.isfinite(second)):
            yield "numbers that are not finite lie elsewhere"
            continue
        real = np.isfinite(first)
        size = max(np.abs(first[real]).max(initial=0.0), 1e-12)
        worst = np.abs(first[real] - second[real]).max(initial=0.0)
        if worst > (1e-2 if name.endswith(LOOSE) else tolerance) * size:
            yield f"differs by {worst:.3g}, of at most {size:.3g}"
