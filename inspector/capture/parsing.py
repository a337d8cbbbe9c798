"""The cells of an index as records and page rows; anything else is rejected with a one-line message."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from inspector.capture.layout import MAX_ELEMENTS, MAX_JSON, CaptureError, elements
from inspector.records import BadRecordError, decode
from inspector.records.json_text import read_json
from inspector.records.plain_text import plain_sentence

MOST_QUOTED = 240
"""Characters of a message about a row: the row may hold megabytes of anything."""


@dataclass(frozen=True, slots=True)
class PageRow:
    """One committed page: the position of its bytes and its place in the channel's array.

    `channel` is the number of the description that the page was written under.
    """

    id: int
    channel: int
    frame: int
    file: int
    offset: int
    nbytes: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    crc: int


def read_record(text: Any, kind: type[Any], where: str) -> Any:
    """The record in a cell of the index. Raises CaptureError for anything else."""
    if not isinstance(text, str) or len(text) > 4 * MAX_JSON:
        raise CaptureError(f"{where} of the index is not text.")
    try:
        record = decode(text)
    except BadRecordError as problem:
        raise CaptureError(f"{where} of the index is damaged: {plain_sentence(str(problem), MOST_QUOTED)}") from None
    if not isinstance(record, kind):
        raise CaptureError(f"{where} of the index is a {type(record).__name__}.")
    return record


def read_page(row: tuple[Any, ...], itemsize: int, ndim: int) -> PageRow:
    """A page row whose numbers are consistent with each other and with its channel. Raises CaptureError."""
    numbers = (*row[:6], row[8])
    if set(map(type, numbers)) != {int} or min(numbers) < 0 or max(numbers) >= 2**62:
        raise CaptureError(f"Page {row[0]!r} has a damaged row.")
    start, shape = _ints(row[6]), _ints(row[7])
    count = elements(shape)
    if len(shape) != ndim or len(start) != ndim or count * itemsize != row[5]:
        raise CaptureError(f"Page {row[0]} has {row[5]} bytes, which does not fit its shape {shape}.")
    if any(s + n > MAX_ELEMENTS for s, n in zip(start, shape, strict=True)) or count > MAX_ELEMENTS:
        raise CaptureError(f"Page {row[0]} lies beyond any array.")
    return PageRow(row[0], row[1], row[2], row[3], row[4], row[5], start, shape, row[8])


def _ints(text: Any) -> tuple[int, ...]:
    if not isinstance(text, str) or len(text) > 200:
        raise CaptureError("A page has a damaged shape.")
    return _ints_of(text)


@lru_cache(maxsize=1 << 16)
def _ints_of(text: str) -> tuple[int, ...]:
    """Pages of all channels begin at the same steps, so that most texts come many times."""
    try:
        values = read_json(text)
    except ValueError:
        raise CaptureError("A page has a damaged shape.") from None
    if not isinstance(values, list) or not all(type(v) is int and 0 <= v < 2**40 for v in values):
        raise CaptureError("A page has a damaged shape.")
    return tuple(values)
