"""Reading a capture, finished or growing, from a folder or from the one file that `inspector pack` makes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from inspector.capture.assemble import Assembly
from inspector.capture.index import Index, PageRow, read_page, read_record
from inspector.capture.layout import CaptureError
from inspector.capture.owner import is_alive
from inspector.capture.pack import unpack_index
from inspector.capture.pages import PageFiles
from inspector.capture.pyramid import Pyramid, reduce_rows, shrink
from inspector.records import Channel, Finding, Frame, Labels, Log, Refusal, RunStart, RunStop, Scalar

Array = npt.NDArray[Any]
RunState = Literal["running", "done", "failed", "cancelled", "unfinished"]
SMALL_BYTES = 64 << 20
RAW_ROWS = 2_000
"""Fewer rows than this are reduced directly; more go through the pyramid."""


class Capture:
    """One capture, open for reading. Also a context manager. Raises CaptureError when it cannot be read.

    Attributes:
        start: how the run began; stop: how it ended, None while it runs or when it never ended.
        frames: in order; channels: by name, in the order in which they were declared.
        scalars, logs, findings, refusals: as written; damaged: one sentence for everything that could not be read.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        folder, spans = self.path, None
        if not self.path.exists():
            raise CaptureError(f"There is no capture at {self.path}.")
        self._index: Index | None = None
        try:
            if self.path.is_file():
                self._temporary = tempfile.TemporaryDirectory(prefix="inspector-")
                folder = Path(self._temporary.name)
                spans = unpack_index(self.path, folder)
            self._files = PageFiles(folder, spans, self.path if spans is not None else None)
            self._index = Index(folder)
            self._reset()
            self.refresh()
            if not hasattr(self, "start"):
                raise CaptureError(f"{self.path.name} is empty: its run never began.")
        except BaseException:
            self.close()
            raise

    def _reset(self) -> None:
        self.start: RunStart
        self.stop: RunStop | None = None
        self.frames: tuple[Frame, ...] = ()
        self.channels: dict[str, Channel] = {}
        self.scalars: list[Scalar] = []
        self.logs: list[Log] = []
        self.findings: list[Finding] = []
        self.refusals: list[Refusal] = []
        self.damaged: list[str] = []
        self._numbers: dict[int, Channel] = {}
        self._seen = dict.fromkeys(("run", "frames", "channels", "pages", "notes"), 0)
        self._data: dict[tuple[str, int], Assembly] = {}
        self._newest: dict[str, int] = {}
        self._pyramids: dict[tuple[str, int], tuple[Pyramid, int]] = {}
        self._labels: dict[tuple[str, int], list[str]] = {}
        self._version = -1

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index and the maps; arrays that were handed out stay valid."""
        if self._index is not None:
            self._index.close()
            self._index = None
            self._files.forget()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    # -- following a run

    def changed(self) -> bool:
        """True when something was committed since the last refresh; cheap enough for every tick of a timer."""
        return self._open_index().data_version() != self._version

    def _open_index(self) -> Index:
        if self._index is None:
            raise CaptureError(f"{self.path.name} is closed.")
        return self._index

    def refresh(self) -> frozenset[str]:
        """Take in what is new; the names of the channels that are new or got pages."""
        self._version = self._open_index().data_version()
        for (text,) in self._new("run", "record"):
            record = read_record(text, object, "run row")
            if isinstance(record, RunStart):
                self._begin(record)
            elif isinstance(record, RunStop):
                self.stop = record
        for (text,) in self._new("frames", "record"):
            self.frames = (*self.frames, read_record(text, Frame, "frame"))
        touched = self._new_channels()
        self._take_notes()
        return frozenset(touched | self._new_pages())

    def _begin(self, start: RunStart) -> None:
        """The run's start; more of its places; or another run that took the folder over, and all is read anew."""
        present = getattr(self, "start", None)
        if present is not None and present.run == start.run:
            start = replace(present, places=present.places + start.places)
        elif present is not None:
            version, seen = self._version, self._seen
            self._reset()
            self._version, self._seen = version, seen
        self.start = start

    def _new(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        rows = self._open_index().rows(
            f"SELECT id, {columns} FROM {table} WHERE id > ? ORDER BY id", (self._seen[table],)
        )
        if rows:
            self._seen[table] = int(rows[-1][0])
        return [row[1:] for row in rows]

    def _new_channels(self) -> set[str]:
        fresh = set()
        for number, text in self._new("channels", "id, record"):
            try:
                channel = read_record(text, Channel, "channel")
            except CaptureError as problem:
                self.damaged.append(str(problem))
                continue
            self._numbers[number] = self.channels[channel.name] = channel
            fresh.add(channel.name)
        return fresh

    def _new_pages(self) -> set[str]:
        touched = set()
        columns = "id, channel, frame, file, offset, nbytes, start, shape, crc"
        for row in self._new("pages", columns):
            channel = self._numbers.get(row[1]) if isinstance(row[1], int) else None
            if channel is None:
                self.damaged.append(f"Page {row[0]!r} belongs to no channel.")
                continue
            try:
                page = read_page(row, np.dtype(channel.dtype).itemsize, len(channel.dims))
            except CaptureError as problem:
                self.damaged.append(f"{channel.name}: {problem}")
                continue
            self._data.setdefault((channel.name, page.frame), Assembly(channel)).add(page)
            self._newest[channel.name] = max(page.frame, self._newest.get(channel.name, -1))
            touched.add(channel.name)
        return touched

    def _take_notes(self) -> None:
        kinds: dict[type[Any], list[Any]] = {
            Scalar: self.scalars, Log: self.logs, Finding: self.findings, Refusal: self.refusals,
        }  # fmt: skip
        for _kind, text in self._new("notes", "kind, record"):
            try:
                record = read_record(text, object, "note")
            except CaptureError as problem:
                self.damaged.append(str(problem))
                continue
            if isinstance(record, Labels):
                names = self._labels.setdefault((record.domain, record.frame), [])
                if 0 <= record.start <= len(names):
                    names[record.start : record.start + len(record.names)] = record.names
            elif type(record) in kinds:
                kinds[type(record)].append(record)

    @property
    def status(self) -> RunState:
        """How the run stands: only a capture that holds its end is done; a dead writer leaves it unfinished."""
        if self.stop is not None:
            return self.stop.status
        alive = any(
            isinstance(pid, int) and isinstance(mark, str) and is_alive(pid, mark)
            for pid, mark in self._open_index().rows("SELECT pid, started FROM lease")
        )
        return "running" if alive else "unfinished"

    # -- reading data

    def frame_of(self, name: str, frame: int = -1) -> int:
        """The frame that -1 stands for: the newest one in which the channel has pages."""
        if name not in self.channels:
            raise CaptureError(f"There is no channel {name!r}; there are: {_some(self.channels)}.")
        return self._newest.get(name, -1) if frame == -1 else frame

    def _assembly(self, name: str, frame: int) -> Assembly:
        number = self.frame_of(name, frame)
        found = self._data.get((name, number))
        return found if found is not None else Assembly(self.channels[name])

    def revision(self, name: str, frame: int = -1) -> int:
        """Grows whenever the channel gets a page; 0 while it has none."""
        return self._assembly(name, frame).revision

    def extent(self, name: str, frame: int = -1) -> tuple[int, ...]:
        """The shape filled so far: the bounding box of the channel's pages."""
        return self._assembly(name, frame).extent

    def array(self, name: str, frame: int = -1) -> Array:
        """The whole array so far, read-only; gaps are NaN in floats and 0 in integers."""
        return self._read(name, self._assembly(name, frame), None)

    def block(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> Array:
        """A region of the array, touching only the pages that overlap it."""
        return self._read(name, self._assembly(name, frame), region)

    def _read(self, name: str, data: Assembly, region: tuple[slice, ...] | None) -> Array:
        def view(row: PageRow) -> Array | None:
            part = self._files.view(row, data.channel.dtype)
            if part is None:
                sentence = f"{name}: {self._files.damage(row)}."
                if sentence not in self.damaged:
                    self.damaged.append(sentence)
            return part

        return data.array(view) if region is None else data.block(region, view)

    def overview(
        self, name: str, frame: int = -1, *, region: tuple[slice, ...] = (), size: tuple[int, ...] = (1000, 1000)
    ) -> tuple[Array, Array]:
        """(minima, maxima) over a region of a (step,) or (step, unit) channel, in at most `size` cells.

        The region's rows are widened to whole cells of the level used; a cell that covers any NaN is NaN.
        """
        data = self._assembly(name, frame)
        cuts = [cut.indices(n)[:2] for cut, n in zip(region, data.extent, strict=False)]
        cuts += [(0, n) for n in data.extent[len(cuts) :]]
        (first, stop), rest = cuts[0], tuple(slice(*cut) for cut in cuts[1:])
        wanted = (stop - first) / max(1, size[0])
        pyramid = self._pyramid(name, data, frame) if stop - first > RAW_ROWS else None
        level = pyramid.level_for(wanted) if pyramid is not None else 1
        if pyramid is None or level == 1:
            raw = self._rows(name, data, first, stop)[(slice(None), *rest)]
            factor = max(1, int(-(-wanted // 1)))
            low, high = reduce_rows(raw, factor, np.minimum), reduce_rows(raw, factor, np.maximum)
        else:
            low, high = (values[(slice(None), *rest)] for values in pyramid.take(level, first, stop))
        return shrink(low, high, size)

    def _pyramid(self, name: str, data: Assembly, frame: int) -> Pyramid:
        key = (name, self.frame_of(name, frame))
        pyramid, used = self._pyramids.get(key, (Pyramid(), 0))
        for first, stop in _spans(data.pages[used:]):
            pyramid.update(first, stop, data.extent[0], lambda a, b: self._rows(name, data, a, b))
        self._pyramids[key] = (pyramid, len(data.pages))
        return pyramid

    def _rows(self, name: str, data: Assembly, first: int, stop: int) -> Array:
        """Some rows: from the array that grows with the run where it is small, else from the pages that hold them."""
        size = np.prod(data.extent, dtype=float) * np.dtype(data.channel.dtype).itemsize
        if size <= SMALL_BYTES:
            return self._read(name, data, None)[first:stop]
        return self._read(name, data, (slice(first, stop),))

    @property
    def label_domains(self) -> tuple[str, ...]:
        """Every label domain of any frame, in the order written."""
        return tuple(dict.fromkeys(domain for domain, _frame in self._labels))

    def labels(self, domain: str, frame: int = -1) -> tuple[str, ...]:
        """Names of the positions of a label domain; the newest frame's for -1, else those for every frame."""
        numbers = [number for known, number in self._labels if known == domain and number >= 0]
        wanted = max(numbers, default=-1) if frame == -1 else frame
        return tuple(self._labels.get((domain, wanted), self._labels.get((domain, -1), [])))

    def verify(self) -> list[str]:
        """Check every page against its checksum; the sentences about those that are damaged."""
        for (name, _frame), data in self._data.items():
            for row in data.pages:
                if self._files.view(row, data.channel.dtype, check=True) is None:
                    sentence = f"{name}: {self._files.damage(row)}."
                    if sentence not in self.damaged:
                        self.damaged.append(sentence)
        return list(self.damaged)

    def to_xarray(self, frame: int = -1) -> Any:
        """All channels of a frame as an xarray.Dataset (needs the extra `notebook`)."""
        from inspector.capture.tables import to_xarray

        return to_xarray(self, frame)


def _spans(pages: list[PageRow]) -> list[tuple[int, int]]:
    """The rows that some pages cover, touching ones joined, so that each row is reduced once."""
    spans: list[tuple[int, int]] = []
    for first, stop in sorted((page.start[0], page.start[0] + page.shape[0]) for page in pages):
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
        else:
            spans.append((first, stop))
    return spans


def _some(names: dict[str, Channel]) -> str:
    listed = ", ".join(list(names)[:12])
    return listed + (f" and {len(names) - 12} more" if len(names) > 12 else "") if names else "none"


def open_capture(path: Path | str) -> Capture:
    """Open a capture folder or a packed capture for reading. Raises CaptureError."""
    return Capture(path)
