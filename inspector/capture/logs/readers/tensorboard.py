"""TensorBoard event files: scalars in both encodings, histograms, hyperparameters and texts of one run each folder.

Event, Summary and HistogramProto are decoded as far as numbers need it; images, audio, graphs and embeddings are
left out. Scalars are packed as they are read; of a histogram only the place of its record is kept.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspector.capture.layout import CaptureError
from inspector.capture.logs.bins import proto_bins, proto_histogram, tensor_histogram
from inspector.capture.logs.growing import Floats
from inspector.capture.logs.marks import read_at
from inspector.capture.logs.reader import LOGS, Intake, OneFile
from inspector.capture.logs.run_log import Pending, RunLog
from inspector.capture.logs.tail import Tail
from inspector.capture.logs.tensors import Tensor, tensor_of
from inspector.capture.logs.tfrecord import HEADER, LARGEST, Window, windows
from inspector.capture.logs.wire import BadMessageError, double, fields, signed, single, text, varint
from inspector.records.plain_text import plain_line

WALL_TIME, STEP, SUMMARY, SESSION = 1, 2, 5, 7
TAG, SIMPLE, HISTOGRAM, TENSOR, METADATA = 1, 2, 5, 8, 9
START_OF_SESSION = 1
HPARAMS, DEEPEST = "hparams", 8
_HEAD, _FLOAT, _DOUBLE = struct.Struct("<Q"), struct.Struct("<f"), struct.Struct("<d")


@dataclass(slots=True)
class Value:
    """One value of a summary: where its parts are."""

    tag: str = ""
    simple: float | None = None
    histogram: tuple[int, int] | None = None
    tensor: tuple[int, int] | None = None
    plugin: str = ""
    content: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class Event:
    """One record."""

    time: float = float("nan")
    step: int = 0
    after_step: int = 0
    """Where the rest of the record begins: after its time and step."""
    restarts: bool = False
    values: list[Value] = field(default_factory=list)


class EventFile(OneFile):
    """One `events.out.tfevents` file, read window by window."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tail = Tail(path)
        self._plugins: dict[str, str] = {}
        self._lost = False
        self._known: dict[bytes, str] = {}
        """All of a record between its step and its last four bytes → the tag, for records of one float scalar."""

    def read(self, into: Intake) -> None:
        """Every record from where the last reading ended."""
        if self.tail.unchanged():
            return
        run = into.run()
        with self.tail.opened() as (file, size):
            for window in windows(file, self.tail.at, size, lost=self._lost):
                self._lost = window.lost
                for offset, what in window.bad:
                    run.lose(self.path.name, offset, what)
                self._take(window, run)
                run.flush()
                self.tail.reach(file, window.stop)
                into.progress(window.stop)

    def _take(self, window: Window, run: RunLog) -> None:
        data, known = window.data, self._known
        ready: dict[str, Pending | None] = {}
        for first, stop in window.records:
            at, step = first + 9, 0
            if stop - first > 16 and data[first] == 0x09:  # as nearly all records begin: the time, then the step
                if data[at] == 0x10:
                    step, at = varint(data, at + 1, stop) if data[at + 1] > 0x7F else (data[at + 1], at + 2)
                tag = known.get(data[at : stop - 4])
                if tag is not None:
                    pending = ready.get(tag) or ready.setdefault(tag, run.pending(tag))
                    if pending is not None:
                        value = _FLOAT.unpack_from(data, stop - 4)[0]
                        pending.add(signed(step), value, _DOUBLE.unpack_from(data, first + 1)[0])
                    continue
            self._take_slowly(window, first, stop, run)

    def _take_slowly(self, window: Window, first: int, stop: int, run: RunLog) -> None:
        where = window.base + first - HEADER
        try:
            event = event_of(window.data, first, stop)
            if event.time == event.time and not run.begin <= event.time:
                run.begin = event.time
            if event.restarts:
                run.restart(event.step)
            for value in event.values:
                self._take_value(window.data, event, value, run, where)
        except BadMessageError as problem:
            run.lose(self.path.name, where, f"a record is not an event: {problem}")
            return
        if len(event.values) == 1 and window.data[stop - 5 : stop - 4] == b"\x15" and _is_bare(event.values[0]):
            key = window.data[event.after_step : stop - 4]
            if event.after_step and len(self._known) < 100_000:
                self._known[key] = event.values[0].tag

    def _take_value(self, data: bytes, event: Event, value: Value, run: RunLog, where: int) -> None:
        if value.plugin and value.tag not in self._plugins:
            self._plugins[value.tag] = value.plugin
        plugin = self._plugins.get(value.tag, "")
        if value.plugin == HPARAMS:
            run.config.update(hyperparameters(data, *value.content))
        elif value.simple is not None:
            run.point(value.tag, event.step, value.simple, event.time)
        elif value.histogram is not None:
            run.histogram(value.tag, event.step, where, proto_bins(data, *value.histogram), event.time)
        elif value.tensor is not None and plugin in ("", "scalars", "histograms", "text"):
            self._take_tensor(tensor_of(data, *value.tensor), value.tag, plugin, event, run, where)

    @staticmethod
    def _take_tensor(tensor: Tensor, tag: str, plugin: str, event: Event, run: RunLog, where: int) -> None:
        if plugin == "text":
            run.text(tag, tensor.words)
        elif tensor.numbers is None:
            return
        elif plugin == "scalars" or (not plugin and len(tensor.numbers) == 1):
            if len(tensor.numbers):
                run.point(tag, event.step, float(tensor.numbers[0]), event.time)
        elif len(tensor.shape) == 2 and tensor.shape[1] == 3:
            run.histogram(tag, event.step, where, len(tensor.numbers) // 3, event.time)

    def histogram(self, where: int, name: str) -> tuple[Floats, Floats]:
        """Read the record again, and of its values the one with this tag."""
        with self.tail.opened() as (file, size):
            (length,) = _HEAD.unpack(read_at(file, where, 8).ljust(8, b"\0"))
            if length > min(LARGEST, size):
                raise CaptureError(f"{self.path.name} has changed: the histogram {name} is not there any more.")
            data = read_at(file, where + HEADER, length)
        try:
            for value in event_of(data, 0, len(data)).values:
                if value.tag == name and value.histogram is not None:
                    return proto_histogram(data, *value.histogram)
                if value.tag == name and value.tensor is not None:
                    numbers = tensor_of(data, *value.tensor).numbers
                    if numbers is not None:
                        return tensor_histogram(numbers)
        except BadMessageError as problem:
            raise CaptureError(f"{self.path.name}, byte {where:,}: {problem}.") from None
        raise CaptureError(f"{self.path.name} has changed: the histogram {name} is not there any more.")


def _is_bare(value: Value) -> bool:
    return value.simple is not None and not value.plugin and value.histogram is None and value.tensor is None


def event_of(data: bytes, first: int, stop: int) -> Event:
    """The parts of an Event. Raises BadMessageError."""
    found = Event()
    for number, kind, at, end in fields(data, first, stop):
        if (number, kind) == (WALL_TIME, 1):
            found.time = double(data, at)
            found.after_step = end if at == first + 1 else 0
        elif (number, kind) == (STEP, 0):
            found.step = signed(at)
            found.after_step = _after_step(data, first, stop)
        elif (number, kind) == (SUMMARY, 2):
            found.values += [_value(data, a, b) for n, k, a, b in fields(data, at, end) if (n, k) == (1, 2)]
        elif (number, kind) == (SESSION, 2):
            found.restarts = any(part[:3] == (1, 0, START_OF_SESSION) for part in fields(data, at, end))
    return found


def _after_step(data: bytes, first: int, stop: int) -> int:
    """Where a record goes on after a time and a step at its very beginning; 0 where it begins otherwise."""
    if data[first] != 0x09 or data[first + 9] != 0x10:
        return 0
    return varint(data, first + 10, stop)[1]


def _value(data: bytes, first: int, stop: int) -> Value:
    found = Value()
    for number, kind, at, end in fields(data, first, stop):
        if (number, kind) == (TAG, 2):
            found.tag = text(data, at, end)
        elif (number, kind) == (SIMPLE, 5):
            found.simple = single(data, at)
        elif (number, kind) == (HISTOGRAM, 2):
            found.histogram = at, end
        elif (number, kind) == (TENSOR, 2):
            found.tensor = at, end
        elif (number, kind) == (METADATA, 2):
            for part, inner, a, b in fields(data, at, end):
                if (part, inner) == (1, 2):
                    found.plugin, found.content = _plugin(data, a, b)
    return found


def _plugin(data: bytes, first: int, stop: int) -> tuple[str, tuple[int, int]]:
    name, content = "", (0, 0)
    for number, kind, at, end in fields(data, first, stop):
        if (number, kind) == (1, 2):
            name = text(data, at, end)
        elif (number, kind) == (2, 2):
            content = at, end
    return name, content


def hyperparameters(data: bytes, first: int, stop: int) -> dict[str, Any]:
    """Settings by name from the hparams plugin: its session_start_info has a map of google.protobuf.Value."""
    found: dict[str, Any] = {}
    for number, kind, at, end in fields(data, first, stop):
        if (number, kind) != (3, 2):
            continue
        for part, inner, a, b in fields(data, at, end):
            if (part, inner) == (1, 2):
                name, value = "", None
                for side, how, c, d in fields(data, a, b):
                    if (side, how) == (1, 2):
                        name = plain_line(text(data, c, d))
                    elif (side, how) == (2, 2):
                        value = _any(data, c, d, 0)
                found[name] = value
    return found


def _any(data: bytes, first: int, stop: int, depth: int) -> Any:
    """A google.protobuf.Value: number, text, truth value or a list of these."""
    for number, kind, at, end in fields(data, first, stop):
        if (number, kind) == (2, 1):
            return double(data, at)
        if (number, kind) == (3, 2):
            return plain_line(text(data, at, end))
        if (number, kind) == (4, 0):
            return bool(at)
        if (number, kind) == (6, 2) and depth < DEEPEST:
            return [_any(data, a, b, depth + 1) for n, k, a, b in fields(data, at, end) if (n, k) == (1, 2)][:1000]
    return None


class TensorBoard(OneFile):
    """Recognised by its first record: 24 bytes that say "brain.Event:2", or more with the writer's name."""

    title = "TensorBoard event files"
    summary = "Scalars, histograms, hyperparameters and texts; a run is a folder with event files."
    magic = (b"\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22",)
    names = ("events.out.tfevents.*", "*.tfevents.*", "*.tfevents")
    order = 10

    def sniff(self, path: Path, head: bytes) -> bool:
        """Newer writers put their name into the first record, which makes it longer."""
        return b"brain.Event:" in head[12:64] and head[4:8] == b"\0\0\0\0"

    def open(self, path: Path) -> EventFile:
        """One event file."""
        return EventFile(path)


LOGS.register("tensorboard")(TensorBoard())
