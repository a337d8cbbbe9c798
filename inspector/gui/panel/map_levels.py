"""The maps that a panel draws at every zoom: small ones at once, large ones and many thumbnails beside the window."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.attention.alignment import Alignment, alignment_of
from inspector.analysis.attention.map_pyramid import How, MapPyramid, Rect
from inspector.analysis.attention.map_source import MapChoice, MapSource
from inspector.gui.state.side_reader import SideReader, Task
from inspector.gui.widgets.images.cell_map import Look
from inspector.gui.widgets.maps.atlas import CELL, Picture, thumbnail

Array = npt.NDArray[Any]
SMALL = 1_500_000
"""Weights that are read and reduced at once: 1,200 × 1,200 take about 20 ms."""
KEPT_BYTES = 384 << 20
"""Bytes of levels that are kept of maps that were shown."""
WIDER = 0.25
"""The part of the view by which what is read in full is wider, so that dragging does not begin to read at once."""
THUMBNAIL, PYRAMID, DETAIL = 0, 1, 2
"""How urgent each is."""


class MapLevels:
    """Pyramids, details, thumbnails and alignments of the maps of one capture at a time."""

    def __init__(self) -> None:
        self.reader = SideReader()
        self._sources: dict[MapChoice, MapSource] = {}
        self._pyramids: OrderedDict[Hashable, MapPyramid] = OrderedDict()
        self._details: dict[Hashable, MapPyramid] = {}
        self._thumbnails: dict[Hashable, Picture] = {}
        self._alignments: dict[Hashable, Alignment] = {}
        self._asked: dict[Hashable, Task] = {}

    def forget(self) -> None:
        """Another capture."""
        self.reader.close()
        for known in (self._sources, self._pyramids, self._details, self._thumbnails, self._alignments, self._asked):
            known.clear()

    def source(self, view: Any, choice: MapChoice) -> MapSource:
        """The rows of a choice as they are now."""
        made = MapSource(view, choice)
        known = self._sources.get(choice)
        if known is None or known.view is not view or (known.shape, known.revision) != (made.shape, made.revision):
            known = self._sources[choice] = made
        return known

    def revision(self, view: Any, choice: MapChoice) -> Hashable:
        """What tells the numbers of a choice from older ones and from those of another."""
        source = self.source(view, choice)
        return (choice, source.shape, source.revision)

    # -- a map at every zoom

    def pyramid(self, view: Any, choice: MapChoice) -> MapPyramid:
        """The levels of a map, complete or as far as they were read."""
        source, key = self.source(view, choice), self.revision(view, choice)
        if key in self._pyramids:
            self._pyramids.move_to_end(key)
            return self._pyramids[key]
        small = source.shape[0] * source.shape[1] * len(source.heads) <= SMALL
        narrow = (
            source.narrow and not small
        )  # half the bytes are worth the time of the conversion only where they are many
        made = self._pyramids[key] = MapPyramid(source.shape, narrow=narrow, signed=choice.signed)
        self._drop(choice)

        def steps(own: Any) -> Iterator[None]:
            yield from made.build(_drawn(own, choice))

        self._do(view, Task(("pyramid", key), steps, PYRAMID), at_once=small)
        return made

    def _drop(self, choice: MapChoice) -> None:
        """Older numbers of the same map, and what was shown longest ago where there is too much of it."""
        newest = next(reversed(self._pyramids))
        for key in [key for key in self._pyramids if key[0] == choice and key != newest]:  # type: ignore[index]
            self._remove(key)
        while len(self._pyramids) > 1 and sum(one.nbytes for one in self._pyramids.values()) > KEPT_BYTES:
            self._remove(next(iter(self._pyramids)))

    def _remove(self, key: Hashable) -> None:
        del self._pyramids[key]
        self.reader.forget(("pyramid", key))

    def look(self, view: Any, choice: MapChoice, how: How) -> Look:
        """The cells of a map in view: every weight where the zoom shows it, read meanwhile where it is not stored."""
        pyramid, key = self.pyramid(view, choice), self.revision(view, choice)

        def cells(seen: Rect, size: tuple[int, int]) -> tuple[Array, Rect]:
            wanted = min(seen[2] / max(1, size[0]), seen[3] / max(1, size[1]))
            if wanted < pyramid.base and pyramid.base > 1 and pyramid.complete:
                detail = self._details.get(key)
                if detail is not None and detail.covers(seen) and detail.base <= max(1.0, wanted) * 2:
                    return detail.cells(seen, size, how)
                self._ask_detail(view, choice, key, seen, wanted)
            return pyramid.cells(seen, size, how)

        return cells

    def _ask_detail(self, view: Any, choice: MapChoice, key: Hashable, seen: Rect, wanted: float) -> None:
        """Read the part in view, and a little more around it, with every weight."""
        queries, keys = self.source(view, choice).shape
        left, top, across, down = seen
        rows = (max(0, int(top - WIDER * down)), min(queries, int(top + (1 + WIDER) * down) + 1))
        columns = (max(0, int(left - WIDER * across)), min(keys, int(left + (1 + WIDER) * across) + 1))
        base = 1
        while base * 2 <= wanted:
            base *= 2
        shape = (rows[1] - rows[0], columns[1] - columns[0])
        asked = ("detail", key, rows, columns, base)
        if min(shape) < 1 or asked in self._asked:
            return
        for older in [one for one in self._asked if isinstance(one, tuple) and one[0] == "detail"]:
            self.reader.forget(self._asked.pop(older).key)

        def steps(own: Any) -> Iterator[None]:
            source = _drawn(own, choice)
            part = MapPyramid(shape, narrow=source.narrow, signed=choice.signed, base=base)
            part.corner = (rows[0], columns[0])
            yield from part.build(source, columns=columns, first=rows[0])
            self._details.clear()
            self._details[key] = part
            yield

        task = self._asked[asked] = Task(asked, steps, DETAIL)
        self._do(view, task, at_once=False)

    @property
    def details(self) -> int:
        """How many parts were read in full and are kept; another number, another picture."""
        return sum(id(one) for one in self._details.values())

    # -- one picture of each head

    def thumbnail(self, view: Any, choice: MapChoice, *, at_once: bool) -> Picture | None:
        """The picture of a head; None while it is not computed yet."""
        source, key = self.source(view, choice), self.revision(view, choice)
        if key not in self._thumbnails and ("thumbnail", key) not in self._asked:

            def steps(own: Any) -> Iterator[None]:
                base, known = _thumbnail_base(source.shape), self._pyramids.get(key)
                if known is None or not known.complete or known.base > base:  # of a large map it is not read once more
                    known = MapPyramid(source.shape, narrow=source.narrow, signed=choice.signed, base=base)
                    yield from known.build(_drawn(own, choice))
                cells = next(one for one in known.levels if one.factor == base).largest
                self._thumbnails[key] = thumbnail(_of_its_largest(np.abs(cells) if choice.signed else cells))

            task = self._asked["thumbnail", key] = Task(("thumbnail", key), steps, THUMBNAIL)
            self._do(view, task, at_once=at_once)
            for older in [known for known in self._thumbnails if known[0] == choice and known != key]:  # type: ignore[index]
                del self._thumbnails[older]
                self._asked.pop(("thumbnail", older), None)
        return self._thumbnails.get(key)

    # -- what it says as an alignment

    def alignment(self, view: Any, choice: MapChoice) -> Alignment | None:
        """The alignment of a map; None while it is not computed yet."""
        source, key = self.source(view, choice), self.revision(view, choice)
        if key not in self._alignments and ("alignment", key) not in self._asked:

            def steps(own: Any) -> Iterator[None]:
                found = alignment_of(source if own is view else MapSource(own, choice))
                self._alignments.clear()
                self._alignments[key] = found
                yield

            task = self._asked["alignment", key] = Task(("alignment", key), steps, PYRAMID)
            self._do(view, task, at_once=source.shape[0] * source.shape[1] <= SMALL)
        return self._alignments.get(key)

    def _do(self, view: Any, task: Task, *, at_once: bool) -> None:
        self.reader.do(view, task, at_once=at_once)
        if task.error and at_once:
            raise ValueError(task.error)


def _drawn(view: Any, choice: MapChoice) -> MapSource:
    """The rows to be drawn: what is not known is covered, and is neither NaN nor masked below that."""
    return MapSource(view, choice, unknown=0.0)


def _thumbnail_base(shape: tuple[int, int]) -> int:
    """Weights along a side of the cells from which a thumbnail is made: of a small map each weight."""
    base = 1
    while max(shape) // (base * 2) >= 4 * CELL:
        base *= 2
    return base


def _of_its_largest(cells: Array) -> Array:
    """Weights that are no shares of 1 (scans, no softmax) relative to their largest; others as they are."""
    finite = cells[np.isfinite(cells)]
    largest = float(finite.max()) if finite.size else 0.0
    return cells / largest if largest > 1 + 1e-2 else cells
