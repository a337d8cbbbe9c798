"""W&B's offline files, `run-ID.wandb`: history, configuration and summary of one run.

The framing is in `leveldb_log.py`; the records are protocol buffers, of which history items come in three
representations: JSON text under a key, the same under a list of nested keys, and typed values.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from inspector.capture.layout import CaptureError
from inspector.capture.logs.bins import listed_bins, listed_histogram
from inspector.capture.logs.growing import Floats
from inspector.capture.logs.json_values import DEEPEST, BadJsonError, number_of, numbers_in, parsed
from inspector.capture.logs.leveldb_log import records
from inspector.capture.logs.marks import read_at
from inspector.capture.logs.reader import LOGS, Intake, OneFile, folder_of
from inspector.capture.logs.run_log import EPOCH, NOTHING, RunLog
from inspector.capture.logs.tail import Tail
from inspector.capture.logs.wandb_metrics import StepMetrics, readings
from inspector.capture.logs.wire import BadMessageError, double, fields, text
from inspector.records.plain_text import plain_line

MAGIC = b":W&B\xe1\xbe"
HEADER = 7
VERSION = 0
HISTORY, SUMMARY, CONFIG, STATS, METRIC, RUN, EXIT = 2, 3, 5, 7, 12, 17, 18
"""Fields of a Record."""
PARTS = frozenset({"_type", "values", "bins", "packedBins"})
"""Parts of a histogram, which a summary lists one by one."""
MOST_KEYS = 10_000
TOLD = 1 << 20
"""Bytes between two reports of progress."""


class WandbFile(OneFile):
    """One `.wandb` file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tail = Tail(path)
        self.tail.at = HEADER
        self._metrics = StepMetrics()
        self._step = 0.0

    def read(self, into: Intake) -> None:
        """Every complete record from where the last reading ended."""
        if self.tail.unchanged():
            return
        with self.tail.opened() as (file, size):
            if size < HEADER:
                return
            head = read_at(file, 0, HEADER)
            if head[:6] != MAGIC or head[6] != VERSION:
                raise CaptureError(
                    f"{self.path.name} is not a W&B file that can be read: it begins with {head.hex()}; expected "
                    f"{MAGIC.hex()}{VERSION:02x}."
                )
            run = into.run()
            told = at = self.tail.at
            for record in records(file, at, size):
                if record.problem:
                    run.lose(self.path.name, record.start, record.problem)
                else:
                    self._take(record.data, record.start, run)
                at = record.stop
                if at - told > TOLD:
                    told = at
                    self.tail.reach(file, at)
                    into.progress(at)
            run.flush()
            self.tail.reach(file, at)
            into.progress(at)

    def _take(self, data: bytes, where: int, run: RunLog) -> None:
        try:
            for number, kind, at, end in fields(data):
                if kind != 2:
                    continue
                if number == HISTORY:
                    self._history(data, at, end, where, run)
                elif number == CONFIG:
                    _update(data, at, end, run.config)
                elif number == SUMMARY:
                    _update(data, at, end, run.summary)
                elif number == METRIC:
                    self._metrics.define(data, at, end)
                elif number == STATS:
                    measured, time = readings(data, at, end)
                    run.row(self._step, measured, time)
                elif number == RUN:
                    _about(data, at, end, run)
                elif number == EXIT:
                    codes = [value for part, inner, value, _ in fields(data, at, end) if (part, inner) == (1, 0)]
                    run.status = "failed" if codes and codes[-1] else "done"
        except BadMessageError as problem:
            run.lose(self.path.name, where, f"a record cannot be read: {problem}")

    def _history(self, data: bytes, at: int, end: int, where: int, run: RunLog) -> None:
        values, special, step = _row(data, at, end)
        step = values.pop("_step", step)
        time, values = values.pop("_timestamp", math.nan), _public(values)
        if time == time and not run.begin <= time:
            run.begin = time
        others = self._metrics.row(values) or NOTHING
        if "epoch" in values:
            others = {**others, EPOCH: values["epoch"]}
        self._step = step if step == step else self._step
        run.row(step, values, time, others)
        for name, value in special.items():
            if value.get("_type") == "histogram":
                run.histogram(name, step, where, listed_bins(value), time)

    def histogram(self, where: int, name: str) -> tuple[Floats, Floats]:
        """Read the row again, and take this value of it."""
        with self.tail.opened() as (file, size):
            record = next(records(file, where, size), None)
        try:
            for number, _kind, at, end in fields(record.data if record is not None else b""):
                if number == HISTORY and record is not None:
                    return listed_histogram(_row(record.data, at, end)[1].get(name, {}))
        except BadMessageError as problem:
            raise CaptureError(f"{self.path.name}, byte {where:,}: {problem}.") from None
        raise CaptureError(f"{self.path.name} has changed: the histogram {name} is not there any more.")


def _public(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if not name.startswith("_")}


def _row(data: bytes, at: int, end: int) -> tuple[dict[str, float], dict[str, dict[str, Any]], float]:
    """(numbers by name, objects with a "_type" by name, the step) of a history record."""
    values: dict[str, float] = {}
    objects: dict[str, dict[str, Any]] = {}
    step = math.nan
    for number, kind, first, stop in fields(data, at, end):
        if (number, kind) == (2, 2):  # the step on its own
            step = next((float(value) for n, k, value, _ in fields(data, first, stop) if (n, k) == (1, 0)), 0.0)
        elif (number, kind) == (1, 2):
            keys, value = _item(data, first, stop)
            known = number_of(value)
            if known is not None:
                values["/".join(keys)] = known
            if isinstance(value, dict) and "_type" not in value:
                values |= {f"{'/'.join(keys)}/{name}": own for name, own in numbers_in(value).items()}
            elif isinstance(value, dict):
                objects["/".join(keys)] = value
            elif len(keys) > 1:
                objects.setdefault("/".join(keys[:-1]), {})[keys[-1]] = value
    typed = {name: value for name, value in objects.items() if isinstance(value.get("_type"), str)}
    for name in typed:
        values = {word: own for word, own in values.items() if not word.startswith(f"{name}/")}
    return values, typed, step


def _item(data: bytes, at: int, end: int) -> tuple[list[str], Any]:
    """(keys, value) of an item of history, summary or configuration. The newest representation that is there counts."""
    keys: list[str] = []
    value: Any = None
    for number, kind, first, stop in fields(data, at, end):
        if number in (1, 2) and kind == 2 and len(keys) <= DEEPEST:
            keys.append(text(data, first, stop))
        elif number == 16 and kind == 2:
            value = _json(data[first:stop])
        elif number == 4 and kind == 0:
            value = bool(first)
        elif number == 5 and kind == 0:
            value = (first >> 1) ^ -(first & 1)  # ZigZag
        elif number == 6 and kind == 1:
            value = double(data, first)
        elif number == 7 and kind == 2:
            value = text(data, first, stop)
        elif number == 8 and kind == 2:
            value = _json(data[first:stop])
    return keys, value


def _json(raw: bytes) -> Any:
    try:
        return parsed(raw)
    except BadJsonError:
        return None


def _update(data: bytes, at: int, end: int, known: dict[str, Any]) -> None:
    """Settings or closing numbers: what is updated, and what is removed."""
    for number, kind, first, stop in fields(data, at, end):
        if kind != 2 or number not in (1, 2):
            continue
        keys, value = _item(data, first, stop)
        name = plain_line("/".join(keys))
        if not keys or keys[0].startswith("_") or (len(keys) > 1 and keys[-1] in PARTS):
            continue
        if number == 2:
            known.pop(name, None)
        elif (name in known or len(known) < MOST_KEYS) and not (isinstance(value, dict) and "_type" in value):
            known[name] = value


def _about(data: bytes, at: int, end: int, run: RunLog) -> None:
    """The run's own record: its name, project and settings."""
    words: dict[int, str] = {}
    for number, kind, first, stop in fields(data, at, end):
        if number == 4 and kind == 2:
            _update(data, first, stop, run.config)
        elif number in (1, 3, 8, 9) and kind == 2:
            words[number] = plain_line(text(data, first, stop), 200)
    run.title = words.get(8) or words.get(1) or run.title
    for number, name in ((3, "project"), (9, "notes")):
        if words.get(number):
            run.texts[name] = words[number]


class Wandb(OneFile):
    """Recognised by its header, `:W&B` and 0xBEE1."""

    title = "W&B offline run"
    summary = "History, measurements of the machine, configuration and summary of one run, as `wandb` writes it."
    magic = (MAGIC,)
    names = ("run-*.wandb", "*.wandb")
    order = 10

    def open(self, path: Path) -> WandbFile:
        """One run."""
        return WandbFile(path)

    def run_of(self, path: Path, root: Path) -> str:
        """The run's id from the file's name, below the folder in which runs lie side by side."""
        name = path.stem.removeprefix("run-")
        above = folder_of(path.parent, root) if path.parent != root and path != root else ""
        above = above.removesuffix("wandb").rstrip("/")
        return f"{above}/{name}" if above else name


LOGS.register("wandb")(Wandb())
