"""Reading a capture, finished or growing, from a folder or from the one file that `inspector pack` makes."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from inspector.capture.assemble import Assembly, Seen
from inspector.capture.awaited import awaited_since
from inspector.capture.computed_pages import ComputedPages
from inspector.capture.damage import Damage
from inspector.capture.in_a_cell import InACell
from inspector.capture.index import Index
from inspector.capture.layout import BusyError, CaptureError
from inspector.capture.over_frames import OverFrames, over_frames
from inspector.capture.owner import is_alive, is_elsewhere
from inspector.capture.pack import unpack_index
from inspector.capture.pages import PageFiles
from inspector.capture.parsing import PageRow
from inspector.capture.pyramid import Pyramid, reduce_rows, shrink, with_nan
from inspector.capture.regular import in_words, regular_stat
from inspector.records import Axis, Channel
from inspector.records.unreadable import why_unreadable

Array = npt.NDArray[Any]
RunState = Literal["running", "done", "failed", "cancelled", "unfinished"]
SMALL_BYTES = 64 << 20
RAW_ROWS = 2_000
"""Fewer rows than this are reduced directly; more go through the pyramid."""
PAGES_AT_A_TIME, BYTES_AT_A_TIME = 128, 2 << 20
"""Pages whose levels of detail are found at a time, where that is done in parts, and about how many bytes at most."""
RETRY_SECONDS = 1.0
"""Seconds before `changed` requests another try of an index that could not be read."""
AWAITED_SECONDS = 2.0
"""For so long after a refresh what was read before it says that a training is waited for."""


class Capture(ComputedPages, InACell):
    """One capture, open for reading. Also a context manager. Raises CaptureError when it cannot be read.

    The records of a run are in the attributes that `Contents` lists; `damage` and `damaged` list what could not be
    read.
    """

    writer_ended = False
    """Set by who has ended its writer, which is still seen for a moment."""

    def __init__(self, path: Path | str) -> None:
        super().__init__()
        self.path = Path(path)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._index: Index | None = None
        self._retry = 0.0
        self._awaited: tuple[float | None, float] = (None, 0.0)
        try:
            self._open()
        except (OSError, ValueError) as problem:
            self.close()
            why = in_words(problem) if isinstance(problem, OSError) else why_unreadable(problem)
            raise CaptureError(f"{getattr(problem, 'filename', None) or self.path} cannot be read: {why}.") from None
        except BaseException:
            self.close()
            raise

    def _forget_run(self) -> None:
        """Nothing of a run is known, nor any level of detail of its arrays."""
        super()._forget_run()
        self._pyramids: dict[tuple[str, int, int], tuple[Pyramid, int]] = {}

    def _open(self) -> None:
        folder = self.path
        if self.path.is_dir():
            self._files = PageFiles(folder)
        else:
            try:
                regular_stat(self.path)
            except FileNotFoundError:
                raise CaptureError(f"There is no capture at {self.path}.") from None
            self._temporary = tempfile.TemporaryDirectory(prefix="inspector-")
            folder = Path(self._temporary.name)
            self._files = PageFiles(folder, unpack_index(self.path, folder), self.path)
        self._index = Index(folder)
        self._take(self._index.since(self._seen), self._index.major)
        if not hasattr(self, "start"):
            if any(self._seen.values()) or self._files.size():
                raise CaptureError(f"The index of {self.path.name} is damaged: it does not say how its run began.")
            raise CaptureError(f"{self.path.name} is empty: its run never began.")

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index and the page files; arrays that were returned stay valid."""
        if self._index is not None:
            self._index.close()
            self._index = None
            self._files.close()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    # -- following a run

    def changed(self) -> bool:
        """True when something was committed since the last refresh; cheap enough for every tick of a timer."""
        index = self._open_index()
        if self._retry and time.monotonic() < self._retry:
            return False
        try:
            return index.changed()
        except CaptureError:
            return True  # `refresh` finds out what is wrong, and reports it

    def _open_index(self) -> Index:
        if self._index is None:
            raise CaptureError(f"{self.path.name} is closed.")
        return self._index

    def refresh(self) -> frozenset[str]:
        """Read what is new; returns the names of the channels that are new or got pages.

        An index that is locked is tried again at the next refresh, and so is one that cannot be read, which is reported
        among the damage: what was read before stays.
        """
        index = self._open_index()
        if self.stop is None:
            self._awaited = (awaited_since(self.path), time.monotonic())
        try:
            news = index.since(self._seen)
        except BusyError:
            return frozenset()
        except CaptureError as problem:
            self._index_problem = Damage("", -1, None, str(problem))
            self._retry = time.monotonic() + RETRY_SECONDS
            return frozenset()
        self._index_problem, self._retry = None, 0.0
        return self._take(news, index.major)

    @property
    def status(self) -> RunState:
        """The state of the run at the last refresh: only a capture with its stop record is done. A run whose writer is
        dead, or whose index cannot be read any more, is unfinished."""
        if self.stop is not None:
            return self.stop.status
        if self.writer_ended or self._index_problem is not None:
            return "unfinished"
        alive = any(isinstance(pid, int) and isinstance(mark, str) and is_alive(pid, mark) for pid, mark in self._lease)
        return "running" if alive else "unfinished"

    @property
    def written_elsewhere(self) -> bool:
        """Whether another machine writes it, or wrote it, so that its process is not found here."""
        return any(isinstance(mark, str) and is_elsewhere(mark) for _, mark in self._lease)

    @property
    def awaited(self) -> float | None:
        """Since when (seconds since 1970) a listener waits for the training, whose connection broke: whether it still
        runs is not known; None where it does not.

        A training that comes back writes again, then is waited for no more: between two refreshes what was read before
        the last one counts, for a moment, as the state is that of then."""
        if self.status != "unfinished":
            return None
        before, then = self._awaited
        now = awaited_since(self.path)
        return before if now is None and time.monotonic() - then < AWAITED_SECONDS else now

    @property
    def was_replaced(self) -> bool:
        """Whether another capture has taken the place of this one, under its name, since it was opened."""
        return self._index is not None and not self._index.gone() and self._index.replaced()

    def _index_replaced(self) -> bool:
        if self._index is None:
            return False
        known = self._index_problem.sentence if self._index_problem is not None else ""
        gone, said = self._index.gone(), f"{self.path} was removed, moved or renamed since it was opened."
        if gone != (known == said) and (gone or not self._index.replaced()):
            self._index_problem = Damage("", -1, None, said) if gone else None  # None: it is back
            return True
        if not self._index.replaced() or known not in ("", said):
            return False
        sentence = (
            f"The index of {self.path.name} was replaced since it was opened; open it again to see what is there."
        )
        self._index_problem = Damage("", -1, None, sentence)
        return True

    # -- reading data

    def channel(self, name: str, frame: int = -1) -> Channel:
        """How a channel is described in a frame: method, title, formula, limits and labels may differ from frame to
        frame; kind, dims and dtype never do. For a frame in which it has no pages, its last description."""
        number = self.frame_of(name, frame)
        data = self._arrays.get((name, number))
        return self.channels[name] if data is None else data.channel

    def revision(self, name: str, frame: int = -1) -> int:
        """Grows whenever the channel gets a page, or one is found damaged; 0 while it has none."""
        return self._assembly(name, frame).revision

    def since(self, name: str, frame: int = -1, seen: Seen | None = None) -> tuple[int, Seen]:
        """(the first row that may differ from what was `seen`, what is seen now): rows before it are as they were."""
        return self._assembly(name, frame).since(seen)

    def extent(self, name: str, frame: int = -1) -> tuple[int, ...]:
        """The shape filled so far: the bounding box of the channel's pages."""
        return self._assembly(name, frame).extent

    def array(self, name: str, frame: int = -1) -> Array:
        """The whole array so far, read-only. What is not known is NaN in floats, and masked in whole numbers: then,
        and only then, a numpy masked array is returned."""
        return self._assembly(name, frame).array(self._source(name, frame))

    def block(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> Array:
        """A region of the array, touching only the pages that overlap it; what is not known as in `array`."""
        return self._assembly(name, frame).block(region, self._source(name, frame))

    def overview(
        self, name: str, frame: int = -1, *, region: tuple[slice, ...] = (), size: tuple[int, ...] = (1000, 1000)
    ) -> tuple[Array, Array]:
        """(minima, maxima) over a region of a (step,) or (step, unit) channel as floats, in at most `size` cells.

        The region's rows are widened to whole cells of the level used; a cell that covers anything that is NaN or not
        known is NaN.
        """
        data = self._assembly(name, frame)
        cuts = [cut.indices(n)[:2] for cut, n in zip(region, data.extent, strict=False)]
        cuts += [(0, n) for n in data.extent[len(cuts) :]]
        (first, stop), rest = cuts[0], tuple(slice(*cut) for cut in cuts[1:])
        wanted = (stop - first) / max(1, size[0])
        wide = stop - first > RAW_ROWS
        pyramid = self._pyramid(name, data, frame) if wide or self._is_behind(name, data, frame) else None
        level = pyramid.level_for(wanted) if pyramid is not None and wide else 1
        if pyramid is None or level == 1:
            raw = self._rows(name, data, frame, first, stop)[(slice(None), *rest)]
            factor = max(1, int(-(-wanted // 1)))
            low, high = reduce_rows(raw, factor, np.minimum), reduce_rows(raw, factor, np.maximum)
        else:
            low, high = (values[(slice(None), *rest)] for values in pyramid.take(level, first, stop))
        return shrink(low, high, size)

    def read_ahead(self, name: str, frame: int, seconds: float) -> bool:
        """Read a part of what a picture of a (step,) or (step, unit) channel needs, for about so much time of the
        processor and a page at least; returns whether all of it is there. What is drawn is the same, and comes
        sooner."""
        data, until = self._assembly(name, frame), time.thread_time() + seconds
        if not self.unread(name, frame):
            return True
        if not data.read_some(self._source(name, frame), until):
            return False
        while (used := self._reduced(name, data, frame)) < len(data.pages):
            few = int(BYTES_AT_A_TIME * len(data.pages) / max(1, _bytes_of(data)))
            self._pyramid(name, data, frame, used + max(1, min(few, PAGES_AT_A_TIME)))
            reduced = self._reduced(name, data, frame)
            if reduced <= used:  # it is too large to be kept
                break
            if time.thread_time() > until:
                return reduced == len(data.pages)
        return True

    def unread(self, name: str, frame: int = -1) -> int:
        """How many pages a picture of a (step,) or (step, unit) channel has still to read, or to find its levels of
        detail of; 0 for other channels, and for arrays that are not kept in memory."""
        data = self._assembly(name, frame)
        if not 1 <= len(data.extent) <= 2 or _bytes_of(data) > SMALL_BYTES:
            return 0
        return max(data.unread, len(data.pages) - self._reduced(name, data, frame))

    def unread_bytes(self, name: str, frame: int = -1) -> int:
        """About how many bytes these pages have: a few large ones take as long to read as thousands of small ones."""
        unread, data = self.unread(name, frame), self._assembly(name, frame)
        return _bytes_of(data) * unread // len(data.pages) if unread else 0

    def _reduced(self, name: str, data: Assembly, frame: int) -> int:
        """Of how many pages the levels of detail are found; all, where none are needed."""
        if data.extent[0] <= RAW_ROWS or np.dtype(data.channel.dtype).kind != "f" or len(data.pages) < 2:
            return len(data.pages)
        return self._pyramids.get((name, self.frame_of(name, frame), data.epoch), (None, 0))[1]

    def _is_behind(self, name: str, data: Assembly, frame: int) -> bool:
        """Whether a pyramid lacks pages. Any look at its array brings it up to date, so that the next look at all of a
        growing array does not have thousands of rows to make up for."""
        known = self._pyramids.get((name, self.frame_of(name, frame), data.epoch))
        return known is not None and known[1] < len(data.pages)

    def release(self, most: int) -> None:
        """Keep at most so many bytes of arrays in memory, the smallest ones; others are read again when they are asked
        for. Arrays that were returned stay valid. For who goes through many large arrays once."""
        held = 0
        for data in sorted(self._arrays.made, key=lambda one: one.assembled):
            held += data.assembled
            if held > most:
                data.release()

    def _pyramid(self, name: str, data: Assembly, frame: int, most: int | None = None) -> Pyramid:
        """The levels of detail of all pages, or of the first `most`."""
        key = (name, self.frame_of(name, frame), data.epoch)
        pyramid, used = self._pyramids.get(key, (Pyramid(data.gap), 0))
        data.check_room(data.extent, self._source(name, frame))
        pages = data.pages[used:most]
        for first, stop in _spans(pages):
            pyramid.update(first, stop, data.extent[0], lambda a, b: self._rows(name, data, frame, a, b))
        if not used:
            self._pyramids = {k: v for k, v in self._pyramids.items() if k[:2] != key[:2]}
        if data.keeps("levels", pyramid.nbytes):
            self._pyramids[key] = (pyramid, used + len(pages))
        else:
            self._pyramids.pop(key, None)
        return pyramid

    def _rows(self, name: str, data: Assembly, frame: int, first: int, stop: int) -> Array:
        """Some rows: from the array that grows with the run where it is small, else from the pages that hold them."""
        source = self._source(name, frame)
        size = np.prod(data.extent, dtype=float) * np.dtype(data.channel.dtype).itemsize
        if size <= SMALL_BYTES and len(data.pages) > 1:
            return with_nan(data.array(source)[first:stop])
        return with_nan(data.block((slice(first, stop),), source))

    @property
    def label_domains(self) -> tuple[str, ...]:
        """Every label domain of any frame, in the order written."""
        return tuple(dict.fromkeys(domain for domain, _frame in self._names))

    def labels(self, domain: str, frame: int = -1) -> tuple[str, ...]:
        """Names of the positions of a label domain; the newest frame's for -1, else those for every frame."""
        numbers = [number for known, number in self._names if known == domain and number >= 0]
        wanted = max(numbers, default=-1) if frame == -1 else frame
        return tuple(self._names.get((domain, wanted), self._names.get((domain, -1), [])))

    @property
    def axes(self) -> Mapping[str, Axis]:
        """The axes that the run described, by name, in the order written; the newest frame's of each."""
        return {name: self.axis(name) for name, _frame in self._axes}

    def axis(self, name: str, frame: int = -1) -> Axis:
        """What is known of an axis, whose name `Channel.domain(dim)` gives; one that was not described is a line.

        As with `labels`: the newest frame's for -1, else the frame's own, else what holds for every frame.
        """
        wanted = max((number for known, number in self._axes if known == name), default=-1) if frame == -1 else frame
        found = self._axes.get((name, wanted), self._axes.get((name, -1)))
        return Axis(name=name) if found is None else found

    def over_frames(self, name: str, summary: str, threshold: float = 0.0) -> OverFrames:
        """One number of a channel for each frame, along the iterations of the frames; see capture/over_frames.py."""
        return over_frames(self, name, summary, threshold)

    def to_xarray(self, frame: int = -1) -> Any:
        """All channels of a frame as an xarray.Dataset (needs the extra `notebook`); what is not known is NaN."""
        from inspector.capture.tables import to_xarray

        return to_xarray(self, frame)


def _bytes_of(data: Assembly) -> int:
    """Bytes of a whole array."""
    return math.prod(data.extent) * np.dtype(data.channel.dtype).itemsize


def _spans(pages: list[PageRow]) -> list[tuple[int, int]]:
    """The rows that some pages cover, touching ones joined, so that each row is reduced once."""
    spans: list[tuple[int, int]] = []
    for first, stop in sorted((page.start[0], page.start[0] + page.shape[0]) for page in pages):
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
        else:
            spans.append((first, stop))
    return spans


def open_capture(path: Path | str) -> Capture:
    """Open a capture folder or a packed capture for reading. Raises CaptureError."""
    return Capture(path)
