"""The maps that a capture has of the words said of a picture: weights over its patches, gradients, blanked patches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture
from inspector.gui.panel.picture.mosaic import Column
from inspector.gui.widgets.plots.source import drawable
from inspector.records import Channel

Numbers = npt.NDArray[np.float64]
MOST_HEADS = 8
MOST_WORDS = 12
"""Rows of small pictures at a time."""
MOST_WEIGHTS = 1 << 22
"""Weights of which coverage is summed over all words."""
WORDS = (("step",), ("step", "row", "column"), ("step", "patch_row", "patch_column"))
PATCH = " patch"
_CELL = re.compile(r"row (\d+), column (\d+)\Z")


def is_attention(channel: Channel) -> bool:
    """Whether a channel has weights of heads."""
    return channel.kind == "attention" and channel.dims == ("head", "query", "key")


def grid_of(capture: Capture, channel: Channel, frame: int) -> tuple[int, int, int] | None:
    """(rows, columns, positions in front of them) of the patches that are the keys of a map; None for other keys."""
    domain = channel.domain("key")
    axis = capture.axis(domain, frame)
    keys = int(capture.extent(channel.name, frame)[2])
    if axis.grid is not None and axis.grid[0] * axis.grid[1] == keys:
        return (*axis.grid, 0)
    names = capture.labels(domain, frame)
    last = _CELL.match(names[-1]) if len(names) == keys and keys else None
    if last is None:
        return None
    rows, columns = int(last[1]) + 1, int(last[2]) + 1
    before = keys - rows * columns
    return (rows, columns, before) if before >= 0 else None


def picture_of(capture: Capture, channel: Channel | None, frame: int) -> Numbers | None:
    """The picture (channel, row, column) whose patches the keys of a map are; else the only one that was read."""
    found = [one for one in capture.channels.values() if one.kind == "input" and one.dims[-2:] == ("row", "column")]
    found = [one for one in found if one.signal in ("image", "picture")]
    wanted = "" if channel is None else f"input.{channel.domain('key').removesuffix(PATCH)}"
    own = [one for one in found if one.place == wanted] or [one for one in found if one.place == "input"] or found
    if not own or any(size == 0 for size in capture.extent(own[0].name, frame)):
        return None
    return np.ma.filled(capture.array(own[0].name, frame).astype(np.float64), np.nan)


def words_in_view(total: int, step: int | None) -> range:
    """At most MOST_WORDS words, the one at the cursor among them; they change only where it leaves them."""
    first = 0 if step is None else min(max(step, 0), max(0, total - 1)) // MOST_WORDS * MOST_WORDS
    return range(first, min(total, first + MOST_WORDS))


def of_attention(capture: Capture, channel: Channel, frame: int, words: range, head: int) -> list[Column]:
    """A column of each head (of at most eight, that of the cursor among them), with the coverage Σ_t α_t below."""
    found = grid_of(capture, channel, frame)
    assert found is not None
    rows, columns, before = found
    heads, queries, keys = capture.extent(channel.name, frame)
    first = min(max(head, 0), heads - 1) // MOST_HEADS * MOST_HEADS
    own = slice(first, min(heads, first + MOST_HEADS))
    shown = slice(words.start, min(words.stop, queries))
    values = _numbers(capture.block(channel.name, frame, (own, shown, slice(before, keys))))
    whole = heads * queries * keys <= MOST_WEIGHTS
    covered = _coverage(capture, channel, frame, (own, slice(before, keys))) if whole else None
    return [
        Column(
            f"head {number}" if heads > 1 else "attention", channel.name, number,
            _filled(values[at].reshape(-1, rows, columns), len(words)), 1.0, root=True,
            below=None if covered is None else covered[at].reshape(rows, columns),
            below_top=1.0 if covered is None else _largest(covered),
        )
        for at, number in enumerate(range(own.start, own.stop))
    ]  # fmt: skip


def _coverage(capture: Capture, channel: Channel, frame: int, cut: tuple[slice, slice]) -> Numbers:
    """(head, key) sums over all words; what is masked counts as 0."""
    values = _numbers(capture.block(channel.name, frame, (cut[0], slice(None), cut[1])))
    covered: Numbers = np.where(np.isneginf(values), 0.0, values).sum(1)
    return covered


def of_words(capture: Capture, channels: Sequence[Channel], frame: int, words: range) -> list[Column]:
    """A column of the gradients, one of what blanked patches change."""
    found = []
    for channel in channels:
        if len(channel.dims) != 3:
            continue
        values = _numbers(capture.array(channel.name, frame))
        signed = channel.scale == "diverging"
        own = _filled(values[words.start : words.stop], len(words))
        title = "blanked" if channel.signal.endswith("blanked") else "gradient"
        found.append(Column(title, channel.name, -1, own, _largest(values), signed=signed))
    return found


def _numbers(values: npt.NDArray[Any]) -> Numbers:
    return drawable(values).astype(np.float64)


def _filled(values: Numbers, many: int) -> Numbers:
    """As many words: NaN where there are fewer."""
    if len(values) >= many:
        return values
    missing = np.full((many - len(values), *values.shape[1:]), np.nan)
    return np.concatenate((values, missing))


def _largest(values: Numbers) -> float:
    finite = values[np.isfinite(values)]
    return float(np.abs(finite).max()) if len(finite) else 1.0
