"""Runs of a log as a View: their curves and histograms as channels along iteration axes, as a capture has them.

Of one run the channels are `log:NAME`, so that runs of different logs are compared under equal names; of several runs
together they are `RUN:NAME`. Curves are of kind "series", histograms are counts (iteration, bin) with a channel
`NAME/edges` (iteration, edge). Numbers belong to no frame: any frame number is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.damage import Damage
from inspector.capture.holes import Holes
from inspector.capture.in_a_cell import InACell
from inspector.capture.layout import CaptureError
from inspector.capture.logs.growing import Floats
from inspector.capture.logs.histogram_table import HistogramTable
from inspector.capture.logs.parts import Item, items_of, split_runs
from inspector.capture.logs.run_log import RunLog
from inspector.capture.logs.search import Search
from inspector.capture.logs.source import LogSource, Progress
from inspector.capture.pyramid import reduce_rows, shrink
from inspector.records import (
    Axis,
    Channel,
    Event,
    Finding,
    Frame,
    Log,
    Refusal,
    RunStart,
    RunStop,
    Scalar,
)  # fmt: skip
from inspector.records.plain_values import plain_value

Array = npt.NDArray[Any]
PLACE = "log"
"""The place of the channels of one run."""
PART_ROWS = 1 << 14


class LogView(InACell):
    """One run of a log, or all of them. Also a context manager.

    Attributes:
        runs: names of all runs that exist; shown: of those whose channels these are.
        events: restarts and whatever else the log says of its training, in order.
        frames, scalars, logs, findings, refusals, stop: as a capture has them; a log has none.
    """

    def __init__(
        self, path: Path | str, run: str | None = None, *, progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None, found: Search | None = None,
    ) -> None:  # fmt: skip
        """Open a file or a folder. `run`: the name of one run; None for the only one, or else all. `found`: its files,
        where they were looked for already.

        Raises CaptureError: for what is no log, for a run that does not exist, CancelledError.
        """
        self.path = Path(path)
        self.source = LogSource(self.path, progress, cancelled, found)
        self.frames: list[Frame] = []
        self.scalars: list[Scalar] = []
        self.logs: list[Log] = []
        self.findings: list[Finding] = []
        self.refusals: list[Refusal] = []
        self.stop: RunStop | None = None
        self.unchecked = 0
        if run is None and len(self.runs) == 1:
            (run,) = self.runs
        if run is not None and run not in self.runs:
            raise CaptureError(f"There is no run {run!r} in {self.path.name}; {listed_runs(self.runs)}.")
        self.run = run
        self._items: dict[str, Item] = {}
        self._channels: dict[str, Channel] = {}
        self._axes: dict[str, Axis] = {}
        self._changes: list[tuple[str, int]] | None = None
        self._describe()

    def __enter__(self) -> LogView:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _problem: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is open between two readings."""

    # -- runs

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of all runs that exist, in order. What `add_scalars` wrote belongs to the run above it."""
        return tuple(split_runs(self.source.runs))

    @property
    def shown(self) -> tuple[str, ...]:
        """Names of the runs whose channels these are."""
        return self.runs if self.run is None else (self.run,)

    def one(self, run: str) -> LogView:
        """One of the runs as a view of its own, which follows the same files."""
        if run not in self.runs:
            raise CaptureError(f"There is no run {run!r} in {self.path.name}; {listed_runs(self.runs)}.")
        made = object.__new__(LogView)
        made.__dict__.update(self.__dict__, run=run, _items={}, _changes=None)
        made._describe()
        return made

    def _run_log(self) -> RunLog | None:
        return None if self.run is None else self.source.runs.get(self.run)

    def _start(self) -> RunStart:
        """The run's title, its beginning, and in `meta` its settings ("config"), closing numbers ("summary"), notes
        ("texts"); of several runs together all of these by run ("runs")."""
        run = self._run_log()
        about = {"formats": self.source.formats, "files": len(self.source.files), "path": str(self.path)}
        if run is None:
            meta = {"log": about, "runs": {name: _meta(self.source.runs[name]) for name in self.runs}}
            return RunStart(run=str(self.path), title=self.path.name, meta=plain_value(meta))
        created = run.begin if np.isfinite(run.begin) else 0.0
        return RunStart(
            run=f"{self.path}:{run.name}", title=run.title, created=created,
            meta=plain_value({"log": about | {"run": run.name}, **_meta(run)}),
        )  # fmt: skip

    @property
    def status(self) -> str:
        """ "done" or "failed" where the format says so; else "unknown"."""
        found = {self.source.runs[name].status or "unknown" for name in self.shown}
        return found.pop() if len(found) == 1 else "unknown"

    @property
    def events(self) -> tuple[Event, ...]:
        """Of the runs that are shown, by iteration."""
        found = [event for name in self.shown for event in self.source.runs[name].events]
        return tuple(sorted(found, key=lambda event: event.iteration))

    # -- following

    def changed(self) -> bool:
        """Whether `refresh` is worth a call: always, as it only looks at sizes where nothing is new."""
        return True

    def refresh(self) -> frozenset[str]:
        """Read what is new; returns the names of the channels that are new, changed or are gone."""
        self.source.refresh()
        return self._describe()

    def _describe(self) -> frozenset[str]:
        self.start = self._start()
        changes = [(name, run.changes) for name, run in self.source.runs.items()]
        if changes == self._changes:
            return frozenset()
        self._changes = changes
        before = {name: (item.channel, item.revision) for name, item in self._items.items()}
        self._items = {}
        logs = split_runs(self.source.runs)
        for name in self.shown:
            place = PLACE if self.run is not None else name
            for item in items_of(logs.get(name, []), place, alone=self.run is not None):
                self._items.setdefault(item.channel.name, item)
        self._channels = {name: item.channel for name, item in self._items.items()}
        self._axes = {item.axis.name: item.axis for item in self._items.values()}
        now = {name: (item.channel, item.revision) for name, item in self._items.items()}
        return frozenset(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))

    # -- channels

    @property
    def channels(self) -> Mapping[str, Channel]:
        """By name: of each axis first its coordinates, then the curves and histograms along it."""
        return self._channels

    def _item(self, name: str) -> Item:
        if name not in self._items:
            some = list(self._items)[:12]
            more = f" and {len(self._items) - 12} more" if len(self._items) > 12 else ""
            raise CaptureError(f"There is no channel {name!r}; there are: {', '.join(some) or 'none'}{more}.")
        return self._items[name]

    def channel(self, name: str, frame: int = -1) -> Channel:
        """How a channel is described."""
        return self._item(name).channel

    def frame_of(self, name: str, frame: int = -1) -> int:
        """Numbers over training stand in frame 0."""
        self._item(name)
        return 0 if frame == -1 else frame

    def revision(self, name: str, frame: int = -1) -> int:
        """Grows whenever the channel changes."""
        return self._item(name).revision

    def extent(self, name: str, frame: int = -1) -> tuple[int, ...]:
        """The shape so far: of a curve the length of its axis."""
        return self._item(name).extent

    # -- numbers

    def array(self, name: str, frame: int = -1) -> Array:
        """The whole array, read-only; NaN where nothing was logged. Histograms are read from their file."""
        return self.block(name, frame)

    def block(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> Array:
        """A region of it."""
        item = self._item(name)
        if isinstance(item.values, HistogramTable):
            found = item.values.block(region, self.source.histogram)
        else:
            numbers: Floats = item.values
            found = numbers[region[0]] if region else numbers
            own = slice(*(region[0] if region else slice(None)).indices(item.extent[0])[:2])
            if len(numbers) < item.extent[0]:
                found = np.concatenate((numbers, np.full(item.extent[0] - len(numbers), np.nan)))[own]
        found.flags.writeable = False
        return found

    def overview(
        self, name: str, frame: int = -1, *, region: tuple[slice, ...] = (), size: tuple[int, ...] = (1000, 1000)
    ) -> tuple[Array, Array]:
        """(minima, maxima) over a region, in at most `size` cells; see `Capture.overview`. Read part by part."""
        extent = self.extent(name, frame)
        cuts = [slice(*cut.indices(n)[:2]) for cut, n in zip(region, extent, strict=False)]
        cuts += [slice(0, n) for n in extent[len(cuts) :]]
        factor = max(1, -(-(cuts[0].stop - cuts[0].start) // max(1, size[0])))
        many = max(1, PART_ROWS // factor) * factor
        lows, highs = [], []
        for first in range(cuts[0].start, max(cuts[0].stop, cuts[0].start + 1), many):
            part = self.block(name, frame, (slice(first, min(cuts[0].stop, first + many)), *cuts[1:]))
            lows.append(reduce_rows(part, factor, np.minimum))
            highs.append(reduce_rows(part, factor, np.maximum))
        return shrink(np.concatenate(lows), np.concatenate(highs), size)

    def known(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> npt.NDArray[np.bool_]:
        """True for every cell that was logged; a NaN that was logged is known."""
        item = self._item(name)
        if isinstance(item.values, HistogramTable):
            return item.values.known(region, self.source.histogram)
        whole = np.arange(item.extent[0]) < len(item.values)
        return whole[region[0]] if region else whole

    def holes(self, name: str, frame: int = -1) -> Holes:
        """The end of a curve that was not logged as far as others on its axis."""
        item = self._item(name)
        if not isinstance(item.values, HistogramTable) and len(item.values) < item.extent[0]:
            return Holes((((len(item.values), item.extent[0]),),))
        return Holes()

    # -- what is damaged

    @property
    def damage(self) -> tuple[Damage, ...]:
        """All that could not be read. A record that is lost may have belonged to any channel of its run."""
        return tuple(
            dict.fromkeys(
                one
                for name in self.shown
                for part in split_runs(self.source.runs)[name]
                for one in self.source.damage_of(part.run)
            )
        )

    @property
    def damaged(self) -> list[str]:
        """One sentence for each."""
        return [one.sentence for one in self.damage]

    def damage_of(self, name: str, frame: int = -1) -> tuple[Damage, ...]:
        """What may be lost of a channel."""
        item = self._item(name)
        return tuple(one for one in self.source.damage_of(item.run) if one.anywhere)

    def verify(self, most: int | None = None) -> list[str]:
        """All that was read was checked when it was read."""
        return self.damaged

    def check(self, seconds: float) -> frozenset[str]:
        """Nothing is left to check."""
        return frozenset()

    # -- axes

    @property
    def label_domains(self) -> tuple[str, ...]:
        """There are no labels: positions have numbers."""
        return ()

    def labels(self, domain: str, frame: int = -1) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def axes(self) -> Mapping[str, Axis]:
        """The iteration axes by name."""
        return self._axes

    def axis(self, name: str, frame: int = -1) -> Axis:
        """One of them; a plain line for another name."""
        found = self._axes.get(name)
        return Axis(name=name) if found is None else found

    def to_xarray(self, frame: int = -1) -> Any:
        """All channels as an xarray.Dataset (needs the extra `notebook`)."""
        from inspector.capture.tables import to_xarray

        return to_xarray(self, frame)


def _meta(run: RunLog) -> dict[str, Any]:
    found = {"config": run.config, "summary": run.summary, "texts": run.texts}
    return {name: value for name, value in found.items() if value}


def listed_runs(runs: tuple[str, ...]) -> str:
    """The end of a sentence: which runs there are."""
    some = ", ".join(runs[:12])
    return f"there are {some}{f' and {len(runs) - 12} more' if len(runs) > 12 else ''}"
