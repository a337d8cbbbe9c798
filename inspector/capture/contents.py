"""What the rows of an index say, taken in as they come: records, labels, and where every page belongs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from inspector.capture.assemble import Assembly
from inspector.capture.damage import Damage
from inspector.capture.index import NEWS, PageRow, Rows, read_page, read_record
from inspector.capture.layout import CaptureError
from inspector.capture.older import compared
from inspector.records import Axis, Channel, Finding, Frame, Labels, Log, Refusal, RunStart, RunStop, Scalar

Place = tuple[str, int, PageRow]
"""(channel, frame, page)."""


class Contents:
    """Filled row by row. What cannot be placed yet is kept and tried again whenever something new comes.

    Attributes:
        start: how the run began; stop: how it ended, None while it runs or when it never ended.
        frames: in order; channels: by name, in the order in which they were declared.
        scalars, logs, findings, refusals: as written.
    """

    def __init__(self) -> None:
        self.start: RunStart
        self._seen = dict.fromkeys(NEWS, 0)
        self._forget_run()

    def _forget_run(self) -> None:
        """Nothing of a run is known; which rows were seen stays, since those of another run have higher numbers."""
        self.stop: RunStop | None = None
        self.frames: tuple[Frame, ...] = ()
        self.channels: dict[str, Channel] = {}
        self.scalars: list[Scalar] = []
        self.logs: list[Log] = []
        self.findings: list[Finding] = []
        self.refusals: list[Refusal] = []
        self._arrays: dict[tuple[str, int], Assembly] = {}
        self._placed: list[Place] = []
        self._newest: dict[str, int] = {}
        self._names: dict[tuple[str, int], list[str]] = {}
        self._axes: dict[tuple[str, int], Axis] = {}
        self._numbers: dict[int, Channel] = {}
        self._unreadable: dict[str, Damage] = {}
        self._homeless: dict[Any, tuple[Any, ...]] = {}
        self._ahead: list[Labels] = []

    def _take(self, news: Mapping[str, Rows]) -> frozenset[str]:
        """Take in new rows; the names of the channels that are new or got pages."""
        for table, rows in news.items():
            if rows:
                self._seen[table] = int(rows[-1][0])
        for row in news["run"]:
            self._take_run(row[1])
        for row in news["frames"]:
            frame = self._read(row[1], Frame, "frame")
            self.frames = self.frames if frame is None else (*self.frames, frame)
        touched = {name for row in news["channels"] if (name := self._take_channel(*row))}
        for row in news["notes"]:
            self._take_note(row[1])
        self._take_labels()
        again = list(self._homeless.values()) if touched else []
        return frozenset(touched | {name for row in (*again, *news["pages"]) if (name := self._take_page(row))})

    def _damaged_rows(self) -> list[Damage]:
        """Rows that could not be read, and what still waits for its place."""
        homeless = [
            Damage("", row[2] if isinstance(row[2], int) else -1, None, f"Page {row[0]!r} belongs to no channel.", True)
            for row in self._homeless.values()
        ]
        late = [] if self.stop is None else [
            Damage("", one.frame, None, f"Names of {one.domain!r} from {one.start} on have none before them.")
            for one in self._ahead
        ]  # fmt: skip
        return [*self._unreadable.values(), *homeless, *late]

    def _blame(self, sentence: str, channel: str = "", frame: int = -1, *, anywhere: bool = False) -> None:
        self._unreadable.setdefault(sentence, Damage(channel, frame, None, sentence, anywhere))

    def _read(self, text: Any, kind: type[Any], what: str, *, anywhere: bool = False) -> Any:
        """The record in a cell, or None, and the damage is noted."""
        try:
            return read_record(text, kind, what)
        except CaptureError as problem:
            self._blame(str(problem), anywhere=anywhere)
            return None

    def _take_run(self, text: Any) -> None:
        """The first row of the table must be readable, since without it nothing is known. Raises CaptureError."""
        if not hasattr(self, "start"):
            record = read_record(text, object, "run row")
        else:
            record = self._read(text, object, "run row")
        if isinstance(record, RunStart):
            self._begin(record)
        elif isinstance(record, RunStop):
            self.stop = record

    def _begin(self, start: RunStart) -> None:
        """The run's start; more of its places; or another run that took the folder over: then all is read anew."""
        present = getattr(self, "start", None)
        if present is not None and present.run == start.run:
            start = replace(present, places=present.places + start.places)
        elif present is not None:
            self._forget_run()
        self.start = start

    def _take_channel(self, number: Any, text: Any) -> str:
        """The name of a channel that is new; "" for none."""
        channel = self._read(text, Channel, "channel", anywhere=True)
        if channel is None:
            return ""
        channel = compared(channel, text)
        if channel.name in self.channels:
            self._blame(f"The channel {channel.name} is declared twice; the second is left out.", anywhere=True)
            return ""
        self._numbers[number] = self.channels[channel.name] = channel
        return str(channel.name)

    def _take_page(self, row: tuple[Any, ...]) -> str:
        """The name of the channel that a page came to; "" where it cannot be read, or has to wait for its channel."""
        channel = self._numbers.get(row[1]) if isinstance(row[1], int) else None
        if channel is None:
            self._homeless[row[0]] = row
            return ""
        self._homeless.pop(row[0], None)
        try:
            page = read_page(row, np.dtype(channel.dtype).itemsize, len(channel.dims))
        except CaptureError as problem:
            self._blame(f"{channel.name}: {problem}", channel.name, row[2] if isinstance(row[2], int) else -1)
            return ""
        self._arrays.setdefault((channel.name, page.frame), Assembly(channel)).add(page)
        self._placed.append((channel.name, page.frame, page))
        self._newest[channel.name] = max(page.frame, self._newest.get(channel.name, -1))
        return channel.name

    def _take_note(self, text: Any) -> None:
        kinds: dict[type[Any], list[Any]] = {
            Scalar: self.scalars, Log: self.logs, Finding: self.findings, Refusal: self.refusals,
        }  # fmt: skip
        record = self._read(text, object, "note")
        if isinstance(record, Labels):
            self._ahead.append(record)
        elif isinstance(record, Axis):
            self._axes[record.name, record.frame] = record
        elif type(record) in kinds:
            kinds[type(record)].append(record)

    def _take_labels(self) -> None:
        """Names that follow on what is known; what begins beyond waits for those before."""
        waiting, placed = sorted(self._ahead, key=lambda one: one.start), True
        while waiting and placed:
            later = []
            for one in waiting:
                names = self._names.get((one.domain, one.frame), [])
                if 0 <= one.start <= len(names):
                    self._names[one.domain, one.frame] = names
                    names[one.start : one.start + len(one.names)] = one.names
                else:
                    later.append(one)
            placed, waiting = len(later) < len(waiting), later
        self._ahead = waiting
