"""The contents of the rows of an index, read as they are written: records, labels, and where every page belongs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from inspector.capture.checksums import record_checksum
from inspector.capture.damage import Damage
from inspector.capture.index import NEWS, Rows
from inspector.capture.layout import COUNTED, MAJOR, CaptureError
from inspector.capture.older import compared
from inspector.capture.parsing import read_record
from inspector.capture.placing import Placing
from inspector.capture.row_numbers import NOUNS, RowNumbers
from inspector.capture.turns import give_way
from inspector.records import (
    Axis,
    Channel,
    Event,
    Finding,
    Frame,
    Labels,
    Log,
    Note,
    Refusal,
    RowCounts,
    RunStart,
    RunStop,
    Scalar,
)  # fmt: skip
from inspector.records.plain_text import plain_line

_LISTS = {
    Scalar: "scalars", Log: "logs", Finding: "findings", Refusal: "refusals", Labels: "_ahead", Event: "events",
    Note: "notes",
}  # fmt: skip
"""Where records of notes are."""


class Contents(Placing):
    """Filled row by row. What cannot be placed yet is stored and tried again whenever new rows arrive.

    Attributes:
        changes: grows whenever rows came, or a page was found damaged, so that what was made of them may be kept.
        start: how the run began; stop: how it ended, None while it runs or when it never ended.
        frames: in order; channels: by name, in the order in which they were declared, each as it was described last
            (see `Capture.channel` for how it was described in a frame).
        scalars, logs, findings, refusals, events, notes: as written.
    """

    def __init__(self) -> None:
        self.changes = 0
        self.start: RunStart
        self._seen = dict.fromkeys(NEWS, 0)
        self._lease: Rows = []
        self._major = MAJOR
        self._forget_run()

    def _forget_run(self) -> None:
        """Nothing of a run is known; which rows were seen stays, since those of another run have higher numbers."""
        super()._forget_run()
        self.stop: RunStop | None = None
        self.scalars: list[Scalar] = []
        self.logs: list[Log] = []
        self.findings: list[Finding] = []
        self.events: list[Event] = []
        self.notes: list[Note] = []
        self._names: dict[tuple[str, int], list[str]] = {}
        self._axes: dict[tuple[str, int], Axis] = {}
        self._counts = RowNumbers()
        self._ahead: list[Labels] = []

    def _take(self, news: Mapping[str, Rows], major: int = MAJOR) -> frozenset[str]:
        """Take new rows; returns the names of the channels that are new or got pages."""
        self.changes += 1
        self._major, self._lease = major, news["lease"]
        for table in NEWS:
            if news[table]:
                self._seen[table] = int(news[table][-1][0])
        for row in news["run"]:
            self._take_run(row)
        if not hasattr(self, "start"):
            return frozenset()  # the reader refuses it
        for row in news["frames"]:
            self._take_frame(self._read("frames", row, Frame))
        touched = {name for row in news["channels"] if (name := self._take_channel(row))}
        for row in news["notes"]:
            self._take_note(self._read("notes", row, object))
        self._take_labels()
        again = list(self._waiting.values()) if touched or news["frames"] else []
        for row in (*again, *news["pages"]):
            touched.add(self._take_page(row))
            give_way()
        touched.discard("")
        self._take_numbers(news)
        return frozenset(touched)

    # -- what is damaged

    def _take_numbers(self, news: Mapping[str, Rows]) -> None:
        """Look for rows that are missing in between; what is missing at the end is reported while it is missing."""
        for table in COUNTED:
            for sentence in self._counts.follow(table, (row[0] for row in news[table])):
                self._lose(table, sentence)
        if self._counts.missing_at_the_end().keys() & {"channels", "pages"}:
            self._doubt_gaps()

    def _lose(self, table: str, sentence: str) -> None:
        """Rows of a table are lost; a lost row of a channel or page may have belonged to any channel."""
        holds_cells = table in ("channels", "pages")
        self._blame(sentence, anywhere=holds_cells)
        if holds_cells:
            self._doubt_gaps()

    def _damaged_rows(self) -> list[Damage]:
        """Rows that could not be read or are missing, and those that cannot be placed yet."""
        ends = self._counts.missing_at_the_end().items()
        late = [] if self.stop is None else [
            Damage("", one.frame, None, f"Names of {one.domain!r} from {one.start} on have none before them.")
            for one in self._ahead
        ]  # fmt: skip
        if self._major > 1 and not (self._counts.begun and (self._counts.ended or self.stop is None)):
            late.append(Damage("", -1, None, "How many rows there were is missing from the index.", anywhere=True))
        return [
            *self._unreadable.values(),
            *(Damage("", -1, None, said, table in ("channels", "pages")) for table, said in ends),
            *self._without_place(),
            *late,
            *self._without_pages(),
        ]

    def _without_pages(self) -> list[Damage]:
        """In a finished capture of format 1, which counts no rows: cells that a channel declares and no page brought.

        A channel for which the run recorded why it was not (or only partly) written does not count, nor one with a
        declared fill.
        """
        if self._major > 1 or self.stop is None or self.stop.status != "done":
            return []
        excused = {refusal.channel for refusal in self.refusals}
        return [one for name in self.channels if name not in excused for one in self._lacking(name)]

    @property
    def format_version(self) -> int:
        """The major version of the format in which it was written."""
        return self._major

    # -- rows

    def _read(self, table: str, row: tuple[Any, ...], kind: type[Any]) -> Any:
        """The record of a row, or None, and the damage is noted."""
        try:
            return self._record(table, row, kind)
        except CaptureError as problem:
            self._lose(table, str(problem))
            return None

    def _record(self, table: str, row: tuple[Any, ...], kind: type[Any]) -> Any:
        """The record of a row, as it was written. Raises CaptureError."""
        number, text, *more, checksum = row
        noun = NOUNS[table][0].capitalize()
        shown = number if type(number) is int else plain_line(repr(number), 40)
        record = read_record(text, kind, f"{noun} {shown}")
        if not hasattr(self, "start") and not isinstance(record, RunStart):
            raise CaptureError("The index is damaged: it does not say how its run began.")
        run = "" if isinstance(record, RunStart) else self.start.run
        if self._major > 1 and checksum != record_checksum(run, table, number, text, str(more[0]) if more else ""):
            raise CaptureError(f"{noun} {number} of the index has changed since it was written.")
        return record

    def _take_run(self, row: tuple[Any, ...]) -> None:
        """The first row of the table must be readable, since without it nothing is known. Raises CaptureError."""
        read = self._read if hasattr(self, "start") else self._record
        record = read("run", row, object)
        if isinstance(record, RunStart):
            self._begin(record)
        elif isinstance(record, RunStop):
            self.stop = record
        elif isinstance(record, RowCounts):
            self._counts.note(record)

    def _begin(self, start: RunStart) -> None:
        """The run's start; more of its places; or another run that replaced it in the folder:
        then all is read again."""
        present = getattr(self, "start", None)
        if present is not None and present.run == start.run:
            start = replace(present, places=present.places + start.places)
        elif present is not None:
            self._forget_run()
        self.start = start

    def _take_channel(self, row: tuple[Any, ...]) -> str:
        """The name of a channel that is new or has a new description; "" for none."""
        channel = self._read("channels", row, Channel)
        if channel is None:
            return ""
        if self._major < 2:
            channel = compared(channel, row[1])
        problem = self._describe(row[0], channel, once=self._major < 2)
        if problem:
            self._lose("channels", problem)
        return "" if problem else str(channel.name)

    def _take_note(self, record: Any) -> None:
        name = _LISTS.get(type(record))
        if name is not None:
            getattr(self, name).append(record)
        elif isinstance(record, Axis):
            self._axes[record.name, record.frame] = record

    def _take_labels(self) -> None:
        """Names that continue the known ones; names that begin beyond wait for those before."""
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
