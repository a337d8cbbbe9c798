"""Two references compared channel by channel: whether, and if so the largest difference, where it is, and how much the
whole has changed."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.weights import norm_of
from inspector.capture import Comparison, numbers_along
from inspector.capture.by_parts import PART_CELLS, parts_of

Array = npt.NDArray[Any]
ITERATION = "iteration"
OF_AXES = ("coordinate",)
"""Kinds that number the positions of axes: they are no numbers of a model."""


@dataclass(frozen=True, slots=True)
class ComparedChannel:
    """A channel of two references.

    Attributes:
        name, title, unit: of the channel; `how`: "difference", "ratio", "separate", or "" with the `reason` why it is
            not compared; method: how both were computed, where that says more than "exact".
        shape: what both have in common; dims: the names of its axes.
        largest: the difference of the largest size, second minus first, or the ratio furthest from 1; of ratios and
            differences alike only of cells that are finite on both sides. None where there is none.
        at: its position along each axis; place: the same in words; first, second: the numbers there.
        relative: the Frobenius norm of second minus first by that of the first, over the same cells; infinite where the
            first is all zero and the second is not; None where there is none.
        cells, unknown, nonfinite: how many there are, how many are not known on one side or the other (gaps of aligned
            steps too), and how many of the known ones are not finite on one side or the other; unequal: how many of the
            known ones differ at all (two NaN do not).
    """

    name: str
    title: str
    how: str
    reason: str = ""
    method: str = ""
    unit: str = ""
    dims: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    largest: float | None = None
    at: tuple[int, ...] = ()
    place: str = ""
    first: float | None = None
    second: float | None = None
    relative: float | None = None
    cells: int = 0
    unknown: int = 0
    nonfinite: int = 0
    unequal: int = 0


@dataclass(slots=True)
class _Sums:
    """What is added up over the parts of a channel."""

    norm: float = 0.0
    change: float = 0.0
    """Roots of summed squares, of the first run's numbers and of the differences."""
    cells: int = 0
    unknown: int = 0
    nonfinite: int = 0
    unequal: int = 0
    size: float = -1.0
    at: tuple[int, ...] = ()
    pair: tuple[float, float] = (math.nan, math.nan)


def compared_channels(both: Comparison) -> list[ComparedChannel]:
    """Every channel of either side, in the order of the second one: compared first, then those that are not."""
    known = dict.fromkeys((*both.after.view.channels, *both.before.view.channels))
    described = {**both.before.view.channels, **both.after.view.channels}
    names = [name for name in known if described[name].kind not in OF_AXES]
    refused, apart = both.refused, set(both.separate)
    found = [compared_channel(both, name) for name in names if name not in refused and name not in apart]
    found += [ComparedChannel(name, described[name].title, "", refused[name]) for name in names if name in refused]
    reason = "Its numbers are read one run at a time."
    return found + [ComparedChannel(name, described[name].title, "separate", reason) for name in names if name in apart]


def compared_channel(both: Comparison, name: str) -> ComparedChannel:
    """One channel that is compared. Raises CaptureError where it is not, with the reason."""
    *_, found = part_by_part(both, name)
    assert found is not None
    return found


def part_by_part(both: Comparison, name: str) -> Iterator[ComparedChannel | None]:
    """The same with a None after each part that was read, so that a window can go on meanwhile."""
    channel, extent, sums = both.channel(name), both.extent(name), _Sums()
    for cut in parts_of(extent, PART_CELLS):
        _add(both, name, cut, channel.compare == "ratio", sums)
        yield None
    some = sums.cells > sums.unknown + sums.nonfinite
    first, second = sums.pair
    with np.errstate(all="ignore"):
        largest = float(_ratio(np.float64(first), np.float64(second))) if channel.compare == "ratio" else second - first
    relative = sums.change / sums.norm if sums.norm else (math.inf if sums.change else 0.0)
    yield ComparedChannel(
        name, channel.title, channel.compare, "", channel.method if channel.method != "exact" else "", channel.unit,
        channel.dims, extent, largest if some else None, sums.at, place_in_words(both, name, sums.at) if some else "",
        first if some else None, second if some else None, relative if some else None,
        sums.cells, sums.unknown, sums.nonfinite, sums.unequal,
    )  # fmt: skip


def npz_of(both: Comparison, found: Sequence[ComparedChannel]) -> bytes:
    """The differences and ratios of these channels, by their names, as an .npz; NaN where either is not known."""
    out = io.BytesIO()
    numbers = {one.name: both.array(one.name) for one in found if one.how in ("difference", "ratio")}
    np.savez(out, **numbers)  # type: ignore[arg-type]
    return out.getvalue()


def _add(both: Comparison, name: str, cut: tuple[slice, ...], ratio: bool, sums: _Sums) -> None:
    first, second = (
        np.ma.getdata(side.view.block(name, side.frame, cut)).astype(np.float64) for side in (both.before, both.after)
    )
    known = both.known(name, -1, cut)
    fine = known & np.isfinite(first) & np.isfinite(second)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    sums.cells += first.size
    sums.unknown += int((~known).sum())
    sums.nonfinite += int((known & ~fine).sum())
    sums.unequal += int((known & ~same).sum())
    with np.errstate(all="ignore"):
        change = np.where(fine, second - first, 0.0)
        sums.change = math.hypot(sums.change, norm_of(change))
        sums.norm = math.hypot(sums.norm, norm_of(np.where(fine, first, 0.0)))
        sizes = np.abs(np.log(np.abs(_ratio(first, second)))) if ratio else np.abs(change)
    sizes = np.where(fine, np.nan_to_num(sizes, nan=0.0, posinf=np.inf), -1.0)
    if not sizes.size or sizes.max() <= sums.size:
        return
    where = np.unravel_index(int(sizes.argmax()), sizes.shape)
    sums.size, sums.pair = float(sizes[where]), (float(first[where]), float(second[where]))
    sums.at = tuple(int(n) + part.start for n, part in zip(where, cut, strict=True))


def _ratio(first: Any, second: Any) -> Any:
    """Second by first; 1 where both are 0, as in `Comparison.block`."""
    return np.where((first == 0) & (second == 0), 1.0, np.divide(second, first))


def place_in_words(both: Comparison, name: str, at: Sequence[int]) -> str:
    """A position of a channel in words: "step 17 'e', unit 3"; of aligned steps the number on each side."""
    channel, side = both.channel(name), both.after
    told = []
    for dim, position in zip(channel.dims, at, strict=True):
        domain, word = channel.domain(dim), channel.axis_word(dim)
        if dim in channel.labels:
            told.append(f"{word} {_at(channel.labels[dim], position) or position}")
            continue
        label = _at(side.view.labels(domain, side.frame), position)
        number = f"{position}"
        if domain in both.alignments:
            alignment = both.alignments[domain]
            one, other = int(alignment.first[position]), int(alignment.second[position])
            number = f"{one}" if one == other else f"{one} of the first and {other} of the second"
        elif dim == ITERATION and (counted := numbers_along(side.view, domain, side.frame)) is not None:
            number = f"{counted[position]:.15g}"
        told.append(f"{word} {number}" + (f" {label!r}" if label else ""))
    return ", ".join(told)


def _at(names: Sequence[str], position: int) -> str:
    return names[position] if position < len(names) else ""
