"""The cells of an index as records and page rows; anything else is rejected with a one-line message."""

from __future__ import annotations

from functools import lru_cache
from operator import add
from typing import Any, NamedTuple

from inspector.capture.layout import MAX_ELEMENTS, MAX_JSON, CaptureError, elements
from inspector.records import BadRecordError, decode
from inspector.records.json_text import read_json
from inspector.records.plain_text import plain_sentence

MOST_QUOTED = 240
"""Characters of a message about a row: the row may hold megabytes of anything."""
MOST_LISTED = 200
"""Characters of a list of whole numbers."""
MOST = 2**62


class PageRow(NamedTuple):  # a frozen dataclass takes four times as long to make, and there are hundreds of thousands
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


def require_page(row: tuple[Any, ...], itemsize: int, ndim: int) -> None:
    """Raise CaptureError for a page row whose numbers are not consistent with each other and with its channel."""
    number, channel, frame, file, offset, nbytes, begins, lengths, crc, _checksum = row
    try:
        together = (
            number | channel | frame | file | offset | nbytes | crc
        )  # negative, or as large, where one of them is
    except TypeError:
        together = -1
    if not 0 <= together < MOST:
        raise CaptureError(f"Page {number!r} has a damaged row.")
    if type(begins) is not str or type(lengths) is not str or len(begins) > MOST_LISTED or len(lengths) > MOST_LISTED:
        raise CaptureError("A page has a damaged shape.")
    start, shape, count, farthest = _placed(begins, lengths)
    if len(shape) != ndim or len(start) != ndim or count * itemsize != nbytes:
        raise CaptureError(f"Page {number} has {nbytes} bytes, which does not fit its shape {shape}.")
    if count > MAX_ELEMENTS or farthest > MAX_ELEMENTS:
        raise CaptureError(f"Page {number} lies beyond any array.")


def page_of(row: tuple[Any, ...]) -> PageRow:
    """The page of a row that was checked."""
    number, channel, frame, file, offset, nbytes, begins, lengths, crc, _checksum = row
    start, shape, _count, _farthest = _placed(begins, lengths)
    return PageRow(number, channel, frame, file, offset, nbytes, start, shape, crc)


@lru_cache(maxsize=1 << 16)
def _placed(begins: str, lengths: str) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
    """(where a page begins, its shape, how many cells that are, the farthest end along an axis). Pages of all channels
    begin at the same steps, so that most texts come many times."""
    start, shape = _ints_of(begins), _ints_of(lengths)
    return start, shape, elements(shape), max(map(add, start, shape), default=0)


@lru_cache(maxsize=1 << 10)
def _ints_of(text: str) -> tuple[int, ...]:
    try:
        values = read_json(text)
    except ValueError:
        raise CaptureError("A page has a damaged shape.") from None
    if not isinstance(values, list) or not all(type(v) is int and 0 <= v < 2**40 for v in values):
        raise CaptureError("A page has a damaged shape.")
    return tuple(values)
