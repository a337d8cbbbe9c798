"""What every target of logs tries: all of a log is read, and reading it as it grows gives what reading it at once gives."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
from target import FoundError, require_sentence

from inspector.capture import CaptureError, open_log
from inspector.capture.logs import LogView

MOST_CHANNELS = 40
FOLLOWS = ("inspector.capture.logs", "inspector.records.plain_text")
Points = dict[tuple[str, str], tuple[tuple[float, ...], tuple[float, ...]]]


def read_all(path: Path) -> LogView:
    """Open a log and look at everything that panels look at. Raises CaptureError, FoundError."""
    with open_log(path) as log:
        for sentence in log.verify():
            require_sentence(sentence)
        for run in log.runs[:MOST_CHANNELS]:
            one = log.one(run)
            assert one.events is not None and one.status and one.start.title is not None
            for name in list(one.channels)[:MOST_CHANNELS]:
                _look(one, name)
        return log


def _look(log: LogView, name: str) -> None:
    """A histogram may turn out to be damaged when it is read, which is said."""
    try:
        array = log.array(name)
        if array.shape != log.extent(name):
            raise FoundError(f"{name} has the shape {array.shape}, and is said to have {log.extent(name)}")
        log.overview(name)
        log.known(name)
        log.holes(name)
    except CaptureError as problem:
        require_sentence(str(problem))


def points(log: LogView) -> Points:
    """{(run, curve): (iterations, values)} of the curves that are no histograms."""
    found: Points = {}
    for run, own in log.source.runs.items():
        for name, curve in own.curves.by_name.items():
            if not curve.histogram and len(curve):
                steps = curve.axis.numbers.now[: len(curve)] if curve.axis is not None else ()
                found[run, name] = tuple(map(float, steps)), tuple(map(float, curve.values.now[: len(curve)]))
    return found


def grown(data: bytes, path: Path, unit: bytes = b"") -> None:
    """Read a log at once, then a copy that comes in two parts. Raises CaptureError, FoundError.

    The first part ends anywhere, or behind `unit` where one is given.
    """
    path.write_bytes(data)
    whole = points(read_all(path))
    cut = zlib.crc32(data) % (len(data) + 1)
    cut = data.rfind(unit, 0, cut) + len(unit) if unit else cut
    other = path.parent / "grows" / path.name
    other.parent.mkdir()
    other.write_bytes(data[:cut])
    try:
        log = open_log(other)
    except CaptureError:
        return  # so far it is no log
    with other.open("ab") as file:
        file.write(data[cut:])
    log.refresh()
    found = points(log)
    if not _same(found, whole):
        names = [name for name in {**found, **whole} if not _same_points(found.get(name), whole.get(name))]
        raise FoundError(f"read in two parts (at byte {cut}) it has other points of {names[:1]}")


def _same(one: Points, other: Points) -> bool:
    return one.keys() == other.keys() and all(_same_points(one[key], other[key]) for key in one)


def _same_points(one: object, other: object) -> bool:
    if one is None or other is None:
        return one is other
    pairs = zip(one, other, strict=True)  # type: ignore[call-overload]
    return all(len(a) == len(b) and np.array_equal(a, b, equal_nan=True) for a, b in pairs)
