"""Records of bounded size: what is written or sent is never longer than what a reader accepts.

Texts come from anywhere (a message of five megabytes, a label of one), lists may have a hundred thousand entries. Where
a record is too long, its long texts are cut with a mark of how much is missing; names of positions and the tree
of modules are spread over several records instead, since each entry counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from inspector.records.codec import encode
from inspector.records.plain_values import plain_value
from inspector.records.run import Frame, Labels, RunStart

TEXT_LENGTHS = (100_000, 20_000, 4_000, 1_000)
"""Characters to which a text is cut, tried in turn. Never fewer: names of channels and places are at most as long."""
LIST_LENGTHS = (10_000, 1_000, 100, 10)
MAX_LABEL = 10_000
"""Characters of one label in a list that is too long as a whole."""
CHUNK = 4_096
"""Entries of a spread list in one record, unless fewer fill it."""
GEOMETRY = ("dims", "shape", "limits", "kind", "dtype")
"""Fields of a channel without which it cannot be read; they are short by their nature."""


def encoded(record: Any, most: int) -> list[bytes]:
    """The record as JSON of at most `most` bytes: one piece, or several where a list is spread over more records."""
    if isinstance(record, (RunStart, Frame)) and record.meta:
        record = replace(record, meta=plain_value(record.meta))
    data = encode(record)
    if len(data) <= most:
        return [data]
    if isinstance(record, Labels):
        return list(_labels(record, most))
    if isinstance(record, RunStart) and record.places:
        return list(_start(record, most))
    return [encode(_cut(record, most))]


def cut(text: str, most: int) -> str:
    """The text, or its first `most` characters and how many more there were."""
    return text if len(text) <= most else f"{text[:most]} … [{len(text) - most:,} more characters]"


def _cut(record: Any, most: int) -> Any:
    for length in TEXT_LENGTHS:
        record = _texts(record, length)
        if len(encode(record)) <= most:
            return record
    for length in LIST_LENGTHS:
        record = _lists(record, length)
        if len(encode(record)) <= most:
            return record
    tables: dict[str, Any] = {
        part.name: {} for part in fields(record) if isinstance(getattr(record, part.name), Mapping)
    }
    return replace(record, **tables)


def _texts(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return cut(value, most)
    return _within(value, lambda item: _texts(item, most))


def _lists(value: Any, most: int) -> Any:
    if isinstance(value, (list, tuple)) and len(value) > most:
        more = (f"… [{len(value) - most:,} more]",) if isinstance(value[0], str) else ()
        value = type(value)((*value[:most], *more))
    elif isinstance(value, Mapping) and len(value) > most:
        value = dict(list(value.items())[:most])
    return _within(value, lambda item: _lists(item, most))


def _within(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with everything in it changed, but for a channel's geometry."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in fields(value) if part.name not in GEOMETRY}
        return replace(value, **{name: change(item) for name, item in parts.items()})
    if isinstance(value, Mapping):
        return {str(change(str(key))): change(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(change(item) for item in value)
    return value


def _labels(record: Labels, most: int) -> Iterator[bytes]:
    """The same names in several records, each name of limited length."""
    domain = cut(record.domain, TEXT_LENGTHS[-1])
    names = tuple(cut(name, MAX_LABEL) for name in record.names)

    def part(first: int, stop: int) -> Labels:
        return Labels(domain, names[first:stop], record.frame, record.start + first)

    return _spread(part, len(names), most)


def _start(record: RunStart, most: int) -> Iterator[bytes]:
    """How the run began with the first places, then the others under the same `run`."""
    bare = _cut(replace(record, places=()), most // 2)
    places = tuple(replace(place, module=cut(place.module, TEXT_LENGTHS[-1])) for place in record.places)

    def part(first: int, stop: int) -> RunStart:
        started: RunStart = replace(bare, places=places[first:stop], meta=bare.meta if first == 0 else {})
        return started

    return _spread(part, len(places), most)


def _spread(part: Callable[[int, int], Any], count: int, most: int) -> Iterator[bytes]:
    """All `count` entries in records of at most CHUNK, and of fewer where those are too long."""
    for first in range(0, count, CHUNK):
        yield from _halved(part, first, min(first + CHUNK, count), most)


def _halved(part: Callable[[int, int], Any], first: int, stop: int, most: int) -> Iterator[bytes]:
    """The entries from `first` to before `stop` in as many records as it takes, in order."""
    data = encode(part(first, stop))
    if len(data) <= most or stop - first <= 1:
        yield data
    else:
        middle = (first + stop) // 2
        yield from _halved(part, first, middle, most)
        yield from _halved(part, middle, stop, most)
