"""Several runs as one view of curves: captures and logs, each of their series under the run's name.

The channels are `RUN:SIGNAL`, along axes of their own for each run; numbers belong to no frame. What belongs to frames
(states, Jacobians) is compared two at a time instead (`compare`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.coordinates import COORDINATE
from inspector.capture.damage import Damage
from inspector.capture.holes import Holes
from inspector.capture.layout import PACKED_SUFFIX, SUFFIX, CaptureError
from inspector.capture.logs.view import LogView
from inspector.capture.reader import Capture
from inspector.records import Axis, Channel, Event, RunStart
from inspector.records.plain_text import plain_line

Array = npt.NDArray[Any]
CURVES = ("series", "training", "histogram", COORDINATE)
BETWEEN = "▸"
MOST_RUNS = 12


@dataclass(frozen=True, slots=True)
class OneRun:
    """One run: how it is called, and the view with its curves."""

    name: str
    view: Capture | LogView


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a channel of the whole is: in which run, and its own name there."""

    run: OneRun
    name: str
    channel: Channel


class Together:
    """A View of the curves of several runs, which reads like a log of several runs. Also a context manager.

    Attributes: runs: their names, in the order given; run: the one that is shown alone, None for all.
    """

    def __init__(self, views: Sequence[Capture | LogView], run: str | None = None) -> None:
        """Raises CaptureError where there are none, or more than are drawn."""
        self.views = tuple(views)
        self.every = named_runs(self.views)
        if not self.every:
            raise CaptureError("There is no run to be drawn.")
        if len(self.every) > MOST_RUNS:
            raise CaptureError(f"At most {MOST_RUNS} runs are drawn together; these are {len(self.every)}.")
        self.runs = tuple(one.name for one in self.every)
        if run is not None and run not in self.runs:
            raise CaptureError(f"There is no run {run!r}; there are {', '.join(self.runs)}.")
        self.run = run
        self.path = Path(self.views[0].path)
        self.frames: list[Any] = []
        self.scalars: list[Any] = []
        self.logs: list[Any] = []
        self.findings: list[Any] = []
        self.refusals: list[Any] = []
        self.stop = None
        self.unchecked = 0
        self.label_domains: tuple[str, ...] = ()
        self.start = RunStart(run=" ".join(one.view.start.run for one in self.every), title=" and ".join(self.runs))
        self._places: dict[str, _Place] = {}
        self._describe()

    def __enter__(self) -> Together:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the captures."""
        for view in self.views:
            view.close()

    @property
    def shown(self) -> tuple[str, ...]:
        """Names of the runs whose channels these are."""
        return self.runs if self.run is None else (self.run,)

    def one(self, run: str) -> Together:
        """One of the runs, of the same open captures."""
        return Together(self.views, run)

    def run_of(self, channel: str) -> str:
        """The name of the run that a channel belongs to."""
        return self._place(channel).run.name

    def settings(self) -> dict[str, dict[str, Any]]:
        """By run what is known of its settings, nested ones with dots in their names."""
        return {one.name: settings_of(one.view) for one in self.every}

    @property
    def status(self) -> str:
        """ "running" where any of them is, else theirs where it is the same, else "unknown"."""
        found = {str(one.view.status) for one in self.every}
        return "running" if "running" in found else found.pop() if len(found) == 1 else "unknown"

    @property
    def events(self) -> tuple[Event, ...]:
        """None: what happened in one run is no event of another."""
        return ()

    # -- following

    def changed(self) -> bool:
        """Whether any has grown."""
        return any(view.changed() for view in self.views)

    def refresh(self) -> frozenset[str]:
        """Read what is new; returns the names of the channels that are new or have grown."""
        found = {(id(view), name) for view in self.views for name in view.refresh()}
        before = set(self._places)
        self._describe()
        return self._among(found) | (set(self._places) - before)

    def check(self, seconds: float) -> frozenset[str]:
        """Check pages that were not read yet, of all captures."""
        return self._among({(id(view), name) for view in self.views for name in view.check(seconds / len(self.views))})

    def _among(self, found: set[tuple[int, str]]) -> frozenset[str]:
        """The channels of the whole that are these of some views. A log of several runs names them with the run."""
        of_logs = {id(view) for view in self.views if isinstance(view, LogView) and view.run is None}
        grown = {number for number, _ in found}
        return frozenset(
            name for name, at in self._places.items()
            if any((id(view), at.name) in found or (id(view) in of_logs and id(view) in grown)
                   for view in self.views if _is_of(at.run.view, view))
        )  # fmt: skip

    def _describe(self) -> None:
        self._places = {}
        for one in self.every:
            if isinstance(one.view, LogView) and one.view not in self.views:
                one.view.refresh()  # one of the runs of a log, which reads nothing where its files have not grown
            if self.run not in (None, one.name):
                continue
            for own in one.view.channels.values():
                if own.kind in CURVES:
                    self._add(one, own)

    def _add(self, run: OneRun, own: Channel) -> None:
        """A channel under the name of its run; under that of its place too, where another one has the same signal."""
        domains = {dim: f"{run.name} {BETWEEN} {own.domain(dim)}" for dim in own.dims}
        safe = run.name.replace(":", "∶")
        channel = replace(own, name=f"{safe}:{own.signal}", domains=domains)
        if channel.name in self._places:
            channel = replace(own, name=f"{safe}:{own.place}/{own.signal}", domains=domains)
        self._places[channel.name] = _Place(run, own.name, channel)

    # -- channels

    @property
    def channels(self) -> Mapping[str, Channel]:
        """Those of the first run, then those of the next."""
        return {name: at.channel for name, at in self._places.items()}

    def _place(self, name: str) -> _Place:
        if name not in self._places:
            raise CaptureError(f"There is no channel {name!r} in these runs.")
        return self._places[name]

    def channel(self, name: str, frame: int = -1) -> Channel:
        """How a channel is described."""
        return self._place(name).channel

    def frame_of(self, name: str, frame: int = -1) -> int:
        """The newest of its run that has it."""
        at = self._place(name)
        return at.run.view.frame_of(at.name, -1)

    def revision(self, name: str, frame: int = -1) -> int:
        """Grows with the channel."""
        at = self._place(name)
        return at.run.view.revision(at.name, -1)

    def extent(self, name: str, frame: int = -1) -> tuple[int, ...]:
        """The shape so far."""
        at = self._place(name)
        return at.run.view.extent(at.name, -1)

    def array(self, name: str, frame: int = -1) -> Array:
        """The whole array."""
        at = self._place(name)
        return at.run.view.array(at.name, -1)

    def block(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> Array:
        """A region of it."""
        at = self._place(name)
        return at.run.view.block(at.name, -1, region)

    def overview(
        self, name: str, frame: int = -1, *, region: tuple[slice, ...] = (), size: tuple[int, ...] = (1000, 1000)
    ) -> tuple[Array, Array]:
        """(minima, maxima) over a region."""
        at = self._place(name)
        return at.run.view.overview(at.name, -1, region=region, size=size)

    def known(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> npt.NDArray[np.bool_]:
        """True for every cell that was logged."""
        at = self._place(name)
        return at.run.view.known(at.name, -1, region)

    def holes(self, name: str, frame: int = -1) -> Holes:
        """The cells that are not known."""
        at = self._place(name)
        return at.run.view.holes(at.name, -1)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """All that could not be read of any, with its run."""
        return tuple(
            replace(one, sentence=f"{run.name}: {one.sentence}") for run in self.every for one in run.view.damage
        )

    @property
    def damaged(self) -> list[str]:
        """One sentence for each."""
        return [one.sentence for one in self.damage]

    def damage_of(self, name: str, frame: int = -1) -> tuple[Damage, ...]:
        """What is lost of a channel."""
        at = self._place(name)
        return at.run.view.damage_of(at.name, -1)

    # -- axes

    def _own(self, domain: str) -> tuple[OneRun, str] | None:
        name, between, own = domain.partition(f" {BETWEEN} ")
        run = next((one for one in self.every if one.name == name), None)
        return (run, own) if between and run is not None else None

    def labels(self, domain: str, frame: int = -1) -> tuple[str, ...]:
        """Names of the positions of an axis of one run."""
        found = self._own(domain)
        return () if found is None else found[0].view.labels(found[1], -1)

    @property
    def axes(self) -> Mapping[str, Axis]:
        """The axes of the curves, run by run."""
        names = dict.fromkeys(at.channel.domain(dim) for at in self._places.values() for dim in at.channel.dims)
        return {name: self.axis(name) for name in names}

    def axis(self, name: str, frame: int = -1) -> Axis:
        """An axis of one run, with the title that it has there."""
        found = self._own(name)
        if found is None:
            return Axis(name=name)
        own = found[0].view.axis(found[1], -1)
        return replace(own, name=name, title=own.title or found[1])


def _is_of(part: Capture | LogView, whole: Capture | LogView) -> bool:
    """Whether a run's view is a view, or one of the runs of a log."""
    same = isinstance(part, LogView) and isinstance(whole, LogView) and part.source is whole.source
    return part is whole or same


def named_runs(views: Sequence[Capture | LogView]) -> list[OneRun]:
    """The runs of some captures and logs by names of which no two are the same."""
    parts: list[tuple[Path, str, Capture | LogView]] = []
    for view in views:
        if isinstance(view, LogView) and view.run is None:
            parts += [(view.path, run, view.one(run)) for run in view.runs]
        else:
            parts.append((view.path, "", view))
    stems = [_stem(path) for path, _, _ in parts]
    found: list[OneRun] = []
    for (path, run, view), stem in zip(parts, stems, strict=True):
        shared = len({other for other, _, _ in parts if _stem(other) == stem}) > 1
        name = f"{path.parent.name}/{stem}" if shared else stem
        name = f"{name}/{run}" if run and len({p for p, _, _ in parts}) > 1 else run or name
        count = sum(one.name == name or one.name.startswith(f"{name} (") for one in found)
        found.append(OneRun(f"{name} ({count + 1})" if count else name, view))
    return found


def _stem(path: Path) -> str:
    return path.name.removesuffix(PACKED_SUFFIX).removesuffix(SUFFIX)


# -- settings

TEXTS = "texts"
LONGEST_TEXT = 200


def settings_of(view: Capture | LogView) -> dict[str, Any]:
    """What a run's record of its beginning says of its settings: the `config` of a log, what a watched training knows
    of its optimizers; with dots between the names of nested ones."""
    meta = view.start.meta
    found: dict[str, Any] = {}
    for key, value in meta.items():
        if key in ("config", "training"):
            found |= _flat(value, "")
        elif key == TEXTS and isinstance(value, Mapping):  # notes of a run, as TensorBoard's add_text makes them
            found = {name: plain_line(str(text), LONGEST_TEXT) for name, text in value.items()} | found
        elif key not in ("log", "summary", TEXTS, "runs", "checkpoint"):
            found |= _flat(value, key)
    if view.start.subject:
        found["subject"] = view.start.subject
    if view.start.checkpoint:
        found["checkpoint"] = view.start.checkpoint
    if view.start.seed is not None:
        found["seed"] = view.start.seed
    return found


def _flat(value: Any, name: str) -> dict[str, Any]:
    """Nested dicts and lists as one, {"optimizers.0.class": …}."""
    items: list[tuple[Any, Any]] | None = None
    if isinstance(value, Mapping):
        items = list(value.items())
    elif isinstance(value, (list, tuple)) and any(isinstance(one, (Mapping, list, tuple)) for one in value):
        items = list(enumerate(value))
    if items is None:
        return {name or "value": value}
    found: dict[str, Any] = {}
    for key, item in items:
        found |= _flat(item, f"{name}.{key}" if name else str(key))
    return found


def differing_settings(settings: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """(name, the value of each run; None where it has none) of every setting that is not the same in all runs of
    which settings are known."""
    told = [own for own in settings.values() if own]
    names = dict.fromkeys(name for own in told for name in own)
    differing = [name for name in names if len({repr(own.get(name)) for own in told}) > 1]
    return [(name, [own.get(name) for own in settings.values()]) for name in differing]
