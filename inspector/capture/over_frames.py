"""A channel over training: one number of it for each frame, along the iterations of the frames.

What a frame has at many steps (lags, ranks) is summarised; heads, ranks and eigenvalues stay curves of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inspector.capture.layout import CaptureError
from inspector.capture.view import View
from inspector.records import Channel, Frame

Floats = npt.NDArray[np.float64]
KEPT = ("head", "rank", "eigenvalue", "statistic")
"""Dims whose positions are curves of their own; all others are summarised."""
MOST_CURVES = 16
VANISHED, EXPLODED = 1e-3, 1e3
"""Norms between which a product of Jacobians is neither vanished nor exploded: the horizon is the first lag beyond."""
MARGIN = 0.1
"""Within this part of its range from either limit a gate counts as saturated."""
MIDDLE = ("median", "mean")
TABLES = ("health", "clipping", "decoding")
"""Kinds whose entries are different things (counts, norms, a step), of which no one number and no one unit is made."""
SHARE, SATURATED, HORIZON = "share above", "share saturated", "horizon"


@dataclass(frozen=True, slots=True)
class OverFrames:
    """A channel's summary over frames.

    Attributes:
        frames: the frames in which it has numbers, in order; iterations: (f,) of each, its number where no frame of
            the run says its iteration (`word` says which: "iteration" or "frame").
        names: of the curves, "" for the only one; values: (f, curves), NaN where nothing is known; unit: theirs.
    """

    frames: tuple[int, ...]
    iterations: Floats
    word: str
    names: tuple[str, ...]
    values: Floats
    unit: str


def _mean(values: Floats, _: float) -> Floats:
    found: Floats = values.mean(axis=0)
    return found


SUMMARIES: Mapping[str, Callable[[Floats, float], Floats]] = {
    "mean": _mean,
    "median": lambda values, _: np.quantile(values, 0.5, axis=0, method="inverted_cdf"),
    "largest": lambda values, _: values.max(axis=0),
    "smallest": lambda values, _: values.min(axis=0),
    "last": lambda values, _: values[-1],
    "p10": lambda values, _: np.quantile(values, 0.1, axis=0, method="inverted_cdf"),
    "p90": lambda values, _: np.quantile(values, 0.9, axis=0, method="inverted_cdf"),
    SHARE: lambda values, threshold: (values > threshold).mean(axis=0),
    SATURATED: _mean,
    HORIZON: _mean,
}  # fmt: skip
"""(n, …) values that are no NaN → (…) one number. Quantiles are values that occur, so that infinities do not spoil
them. A saturated share and a horizon are prepared before."""


def summaries_of(channel: Channel) -> tuple[str, ...]:
    """The summaries that a channel has, the most telling one first; () for one that is not summarised."""
    if not channel.dims or channel.dtype == "bool" or "iteration" in channel.dims:
        return ()
    if channel.value_domain or channel.kind in TABLES:
        return ()
    if channel.kind == "lag":
        return (HORIZON,) if channel.dims == ("statistic", "lag") else ("mean", "largest")
    found = [name for name in SUMMARIES if name not in (HORIZON, SATURATED)]
    if channel.limits is not None and channel.kind == "gate":
        found.insert(0, SATURATED)
    if channel.kind == "jacobian":
        found.sort(key=lambda name: name != "median")
    return tuple(found)


def over_frames(view: View, name: str, summary: str, threshold: float = 0.0) -> OverFrames:
    """Summarise a channel in every frame in which it has numbers.

    `threshold`: of the summary "share above". NaN is left out (a step without a Jacobian), infinities are not; where
    nothing is left the summary is NaN. Raises CaptureError for a summary that the channel does not have.
    """
    channel = view.channel(name)
    if summary not in summaries_of(channel):
        known = ", ".join(summaries_of(channel)) or "none"
        raise CaptureError(f"{name} has no summary {summary!r} over frames; it has {known}.")
    frames: tuple[Frame, ...] = tuple(getattr(view, "frames", ()))
    present = [frame for frame in frames if view.revision(name, frame.index)]
    rows = [one_frame(view, name, frame.index, summary, threshold) for frame in present]
    width = max((len(values) for _, values in rows), default=0)
    values = np.full((len(rows), width), np.nan)
    for n, (_, row) in enumerate(rows):
        values[n, : len(row)] = row
    names = max((found for found, _ in rows), key=len, default=())
    numbers, word = iterations_of(frames, present)
    return OverFrames(tuple(frame.index for frame in present), numbers, word, names, values, unit_of(channel, summary))


def iterations_of(frames: tuple[Frame, ...], present: list[Frame]) -> tuple[Floats, str]:
    """(iteration of each frame, "iteration"), or their numbers where some have none or all the same."""
    steps = [frame.step for frame in frames]
    if None in steps or (len(frames) > 1 and len(set(steps)) == 1):
        return np.array([float(frame.index) for frame in present]), "frame"
    return np.array([float(frame.step or 0) for frame in present]), "iteration"


def unit_of(channel: Channel, summary: str) -> str:
    """The unit of a summary."""
    if summary == HORIZON:
        return "steps"
    return "1" if summary in (SHARE, SATURATED) else channel.unit


def one_frame(view: View, name: str, frame: int, summary: str, threshold: float) -> tuple[tuple[str, ...], Floats]:
    """(names of the curves, (curves,) numbers) of one frame."""
    channel = view.channel(name, frame)
    values: Floats = np.ma.filled(view.array(name, frame).astype(np.float64), np.nan)
    if summary == HORIZON:
        return ("",), np.array([_horizon(channel, values)])
    dims = list(channel.dims)
    if dims[-1] == "part":  # real and imaginary part of an eigenvalue
        values, dims = np.hypot(values[..., 0], values[..., 1]), dims[:-1]
    if summary == SATURATED and channel.limits is not None:
        values = _saturated(values, *channel.limits)
    kept = next((dim for dim in KEPT if dim in dims and values.shape[dims.index(dim)] <= MOST_CURVES), None)
    if kept is None:
        return ("",), _reduced(values.reshape(-1, 1), summary, threshold)
    at = dims.index(kept)
    table = np.moveaxis(values, at, -1).reshape(-1, values.shape[at])
    if kept == "eigenvalue":
        table = -np.sort(-table, axis=1)
    names = channel.labels.get(kept) or tuple(f"{kept} {n}" for n in range(table.shape[1]))
    return names, _reduced(table, summary, threshold)


def _reduced(table: Floats, summary: str, threshold: float) -> Floats:
    """(n, curves) → (curves,): NaN is left out of each curve."""
    reduce = SUMMARIES[summary]
    found = np.full(table.shape[1], np.nan)
    for column in range(table.shape[1]):
        own = table[:, column]
        own = own[~np.isnan(own)]
        if len(own):
            with np.errstate(all="ignore"):
                found[column] = float(reduce(own[:, None], threshold)[0])
    return found


def _saturated(values: Floats, low: float, high: float) -> Floats:
    """1 near either limit, 0 between, NaN where there is no number."""
    margin = MARGIN * (high - low)
    with np.errstate(invalid="ignore"):
        near = (values < low + margin) | (values > high - margin)
    return np.where(np.isnan(values), np.nan, near.astype(np.float64))


def _horizon(channel: Channel, values: Floats) -> float:
    """The first lag at which the median over starts has vanished or exploded; infinite where it does at none, NaN where
    it is NaN before."""
    names = channel.labels.get("statistic", ())
    row = next((names.index(name) for name in MIDDLE if name in names), 0)
    median = values[row]
    missing = np.flatnonzero(np.isnan(median))
    known = median[: missing[0]] if len(missing) else median
    passed = np.flatnonzero((known < VANISHED) | (known > EXPLODED))
    return float(passed[0]) if len(passed) else math.nan if len(missing) else math.inf
