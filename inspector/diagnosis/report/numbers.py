"""The numbers of a finding's evidence: of each channel its shape, its range, and its values where the finding shows."""

from __future__ import annotations

import numpy as np

from inspector.capture import CaptureError, numbers_along, summary
from inspector.capture.curves import column_dim
from inspector.diagnosis.report.contents import Numbers
from inspector.diagnosis.rule import Captured
from inspector.records import Channel, Finding

MOST_VALUES = 6
CELLS = 64
"""Cells of each axis of the overview from which a range is read: of a large channel no more is in memory."""


def numbers_of(view: Captured, finding: Finding) -> tuple[Numbers, ...]:
    """A row for each channel of the evidence; one that does not exist, or cannot be read, says so."""
    return tuple(_numbers(view, name, finding) for name in finding.evidence)


def _numbers(view: Captured, name: str, finding: Finding) -> Numbers:
    try:
        channel = view.channel(name, finding.frame)
        extent = view.extent(name, finding.frame)
        words = map(channel.axis_word, channel.dims)
        shape = " × ".join(f"{word} {n:,}" for word, n in zip(words, extent, strict=True))
        if not view.revision(name, finding.frame) or 0 in extent:
            return Numbers(name, shape, channel.unit, problem="has no numbers")
        least, greatest = view.overview(name, finding.frame, size=(CELLS,) * len(extent))
        return Numbers(
            name, shape, channel.unit, _least(least), -_least(-np.ma.asarray(greatest)),
            _at(view, channel, finding, extent), summary(view.damage_of(name, finding.frame)),
        )  # fmt: skip
    except CaptureError as problem:
        return Numbers(name, problem=str(problem))


def _least(values: np.ndarray) -> float:
    """The smallest finite number, NaN where there is none."""
    plain = np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan)
    finite = plain[np.isfinite(plain)]
    return float(finite.min()) if finite.size else float("nan")


def _at(view: Captured, channel: Channel, finding: Finding, extent: tuple[int, ...]) -> tuple[tuple[str, float], ...]:
    """Of a channel over steps, or of one curve over iterations, its values at those of the finding."""
    if channel.dims == ("step",):
        wanted = [(f"step {step}", step) for step in finding.steps if 0 <= step < extent[0]]
    elif channel.dims[:1] == ("iteration",) and column_dim(channel) is None:
        along = numbers_along(view, channel.domain("iteration"), finding.frame)
        places = {} if along is None else {int(number): row for row, number in enumerate(along[: extent[0]])}
        wanted = [(f"iteration {one:,}", places[one]) for one in finding.iterations if one in places]
    else:
        return ()
    found = []
    for words, row in wanted[:MOST_VALUES]:
        region = (slice(row, row + 1), *(slice(0, n) for n in extent[1:]))
        value = np.ma.filled(np.ma.asarray(view.block(channel.name, finding.frame, region)).astype(np.float64), np.nan)
        found.append((words, float(value.ravel()[0])))
    return tuple(found)
