"""The runs of a log taken apart into channels, and runs that `add_scalars` wrote put back together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from inspector.capture.logs.curves import Curve, IterationAxis
from inspector.capture.logs.growing import Floats
from inspector.capture.logs.histogram_table import HistogramTable
from inspector.capture.logs.run_log import EPOCH, TIME, TOKENS, RunLog
from inspector.records import ITERATION_DOMAIN, Axis, Channel
from inspector.records.plain_text import plain_line

LONGEST_TITLE = 300
UNITS = {TIME: "s", EPOCH: "epoch", TOKENS: "token"}
FORMULAS = {
    TIME: "seconds since the run began, as logged with the first curve of the axis",
    EPOCH: "epoch as logged beside the values",
    TOKENS: "tokens as logged beside the values",
}
NUMBERED = "number of the training iteration at each position of the axis"
STEPPED = "the metric by which the log says that some of its curves are numbered"
BY = "by/"
"""In front of the names of such coordinates; the metric is a curve too."""


@dataclass(frozen=True, slots=True)
class Part:
    """A run, and what stands in front of the names of its curves: of a part that `add_scalars` wrote, the key."""

    run: RunLog
    key: str = ""

    def named(self, name: str) -> str:
        """The name of a curve within the whole run."""
        return f"{name}/{self.key}" if self.key else name


@dataclass(frozen=True, slots=True)
class Item:
    """A channel and its numbers: those of a curve may be fewer than its axis has positions."""

    channel: Channel
    axis: Axis
    run: RunLog
    values: Floats | HistogramTable
    extent: tuple[int, ...]
    revision: int


def split_runs(runs: Mapping[str, RunLog]) -> dict[str, list[Part]]:
    """The parts of each run by its name.

    `SummaryWriter.add_scalars("a/b", {"x": …})` makes a folder `a_b_x` whose only tag is "a/b": it belongs to the
    run of the folder above, as the curve "a/b/x". Counter-example: a run that somebody named so by hand.
    """
    found = {name: [Part(run)] for name, run in runs.items()}
    for name, run in runs.items():
        above, _, folder = name.rpartition("/")
        parent = above if above else next((other for other, one in runs.items() if one.is_root and other != name), "")
        key = _key(run, folder) if parent in runs else ""
        if key:
            found[parent].append(Part(run, key))
            del found[name]
    return found


def _key(run: RunLog, folder: str) -> str:
    if len(run.curves.by_name) != 1:
        return ""
    (tag,) = run.curves.by_name
    begin = tag.replace("/", "_") + "_"
    return folder.removeprefix(begin) if folder.startswith(begin) else ""


def items_of(parts: list[Part], place: str, *, alone: bool) -> Iterator[Item]:
    """All channels of a run under a place; of several runs together the axes have the place in their names too."""
    place = plain_line(place.replace(":", "."), 600)
    for part in parts:
        described: dict[int, Axis] = {}
        for curve in part.run.curves.by_name.values():
            if curve.axis is None:
                continue
            if id(curve.axis) not in described:
                axis = described[id(curve.axis)] = _axis(curve.axis, part, "" if alone else place)
                yield from _coordinates(curve.axis, axis, part, place)
            yield from _channels(curve, described[id(curve.axis)], part, place)


def _axis(axis: IterationAxis, part: Part, place: str) -> Axis:
    own = part.named(axis.name or next(iter(part.run.curves.by_name))) if part.key else axis.name
    words = [ITERATION_DOMAIN, place, own]
    name = "/".join(plain_line(word.replace(":", "."), LONGEST_TITLE) for word in words if word)
    return Axis(name=name, title=part.run.along, length=len(axis.numbers), unit=part.run.along)


def _coordinates(axis: IterationAxis, about: Axis, part: Part, place: str) -> Iterator[Item]:
    """The iteration of each position first: it numbers the axis."""
    suffix = about.name.removeprefix(ITERATION_DOMAIN)
    if suffix.startswith(f"/{place}"):
        suffix = suffix.removeprefix(f"/{place}")
    columns = {ITERATION_DOMAIN: axis.numbers.view()}
    for name, own in axis.others.items():
        numbers = own.view()
        columns[name] = numbers - part.run.begin if name == TIME and np.isfinite(part.run.begin) else numbers
    for name, numbers in columns.items():
        known = name == ITERATION_DOMAIN or name in FORMULAS
        word = name if known else f"{BY}{plain_line(name.replace(':', '.'), LONGEST_TITLE)}"
        channel = Channel(
            name=f"{place}:{word}{suffix}", kind="coordinate", dims=("iteration",), shape=(None,), dtype="float64",
            unit=UNITS.get(name, about.unit if known else ""),
            title=plain_line(name, LONGEST_TITLE) if name != ITERATION_DOMAIN else about.title,
            compare="separate", domains={"iteration": about.name},
            formula=FORMULAS.get(name, NUMBERED if known else STEPPED),
        )  # fmt: skip
        revision = part.run.cleared * (1 << 40) + len(axis.numbers)
        yield Item(channel, about, part.run, numbers, (len(axis.numbers),), revision)


def _channels(curve: Curve, axis: Axis, part: Part, place: str) -> Iterator[Item]:
    name = part.named(curve.name)
    signal = plain_line(name.replace(":", "."), 10_000)
    revision, length = part.run.cleared * (1 << 40) + curve.revision, axis.length or 0
    for edges in (False, True) if curve.histogram else (False,):
        dims = ("iteration", "edge" if edges else "bin") if curve.histogram else ("iteration",)
        channel = Channel(
            name=f"{place}:{signal}{'/edges' if edges else ''}", kind="histogram" if curve.histogram else "series",
            dims=dims, shape=(None,) * len(dims), dtype="float64", title=plain_line(name, LONGEST_TITLE),
            compare="separate", domains={"iteration": axis.name}, method="as logged",
            formula="edges of the bins" if edges else "counts by bin" if curve.histogram else "",
        )  # fmt: skip
        if not curve.histogram:
            yield Item(channel, axis, part.run, curve.values.view(), (length,), revision)
            continue
        table = HistogramTable(curve.name, curve.values.view(), length, curve.bins, edges=edges)
        yield Item(channel, axis, part.run, table, table.extent, revision)
