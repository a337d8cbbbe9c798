"""What moved first before a spike: the loss, a gradient or an update, of which parameter, at which iteration.

A curve has moved from the first of the iterations, one after the other up to the spike, in which it is far above what
is usual for it: more than `FAR` median absolute deviations above the median of the iterations before the look-back.
Within one iteration the order is that in which it is computed: loss, gradient, update, which is in the next loss.

What would make it wrong: iterations that were not recorded; a drift too slow to be far at any iteration; a spread that
is wide by itself (a noisy loss hides its own beginning); and that what moves first need not be the cause.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from inspector.analysis.verdict import Verdict
from inspector.capture import CaptureError, curves_of, points_of
from inspector.capture.view import View

Floats = npt.NDArray[np.float64]
LOSS, GRADIENT, UPDATE = "loss", "gradient", "update"
ORDER = (LOSS, GRADIENT, UPDATE)
LOOK_BACK, USUAL, LEAST = 50, 200, 20
"""Recorded iterations before the spike in which something may have moved; those before them that tell what is usual,
and how many of these are needed."""
FAR = 5.0
"""Half of the distance that makes a spike: what moved first is not yet as far as what is called one.
Counter-example: a gradient whose norms are spread over decades has a wide deviation, and begins late."""
FLOOR = 0.01
"""The least deviation, relative to the median: curves that hardly vary would move with every rounding."""
NOTHING = "nothing was recorded often enough before this iteration to tell what moved first"
STILL = "nothing was far above its usual size before or at this iteration"
_TABLES = {"training:loss": LOSS, "parameters:gradient/norm": GRADIENT, "parameters:update/norm": UPDATE}


@dataclass(frozen=True, slots=True)
class Track:
    """One curve: what it is of (LOSS, GRADIENT or UPDATE), of which parameter, iterations (n,) and values (n,)."""

    what: str
    name: str
    iterations: Floats
    values: Floats


@dataclass(frozen=True, slots=True)
class Move:
    """Where a curve began to be far above what is usual: how many deviations then, the value, and the median before."""

    iteration: float
    what: str
    name: str
    far: float
    value: float
    usual: float

    def __str__(self) -> str:
        of = f" of {self.name}" if self.name else ""
        size = f"{self.value:.3g}, usually {self.usual:.3g}" if math.isfinite(self.value) else "not finite"
        return f"the {self.what}{of} at iteration {self.iteration:,.10g} ({size})"


@dataclass(frozen=True, slots=True)
class Chronology:
    """Moves in their order; the verdict ("loss", "gradient", "update": what was first, or "unknown"); and `wrong`, what
    would make it wrong here."""

    moves: tuple[Move, ...]
    verdict: Verdict
    wrong: str


def chronology(tracks: Sequence[Track], at: float) -> Chronology:
    """What moved first before iteration `at`."""
    found = [_move(track, at) for track in tracks]
    apart = max((_apart(track, at) for track in tracks), default=0.0)
    known = any(one is not None for one in found)
    moves = [one for one in found if isinstance(one, Move)]
    moves.sort(key=lambda one: (one.iteration, ORDER.index(one.what), -one.far))
    wrong = (
        f"Recorded iterations lie up to {apart:,.10g} apart here. " if apart > 1 else ""
    ) + "A slow drift, a noisy curve and what is not recorded are not seen; what moved first need not be the cause"
    if not moves:
        return Chronology((), Verdict("unknown", STILL if known else NOTHING), wrong)
    first = moves[0]
    numbers = {"iteration": first.iteration, "before": at - first.iteration, "far": first.far}
    return Chronology(tuple(moves), Verdict(first.what, _sentence(moves), numbers), wrong)


def chronology_at(view: View, iteration: float) -> Chronology:
    """The same from what a watched training has recorded. Curves that cannot be read are left out."""
    tracks = []
    for curve in curves_of(view):
        what = _TABLES.get(curve.channel.name)
        if what is None:
            continue
        try:
            points = points_of(view, curve)
        except CaptureError:
            continue
        fine = points.known & np.isfinite(points.x)
        name = "" if curve.column is None else curve.name
        tracks.append(Track(what, name, points.x[fine], points.y[fine]))
    return chronology(tracks, iteration)


def _move(track: Track, at: float) -> Move | Literal[False] | None:
    """Where it began to be far; False where it is not at the spike; None where too little is known."""
    until = int(np.searchsorted(track.iterations, at, "right"))
    x, y = track.iterations[:until], track.values[:until]
    if not len(x) or x[-1] != at:
        return None
    before = y[max(0, until - LOOK_BACK - USUAL) : max(0, until - LOOK_BACK)]
    if np.isfinite(before).sum() < LEAST:  # a young run: half of what there is tells what is usual
        before = y[: until // 2]
    before = before[np.isfinite(before)]
    if len(before) < LEAST // 2:
        return None
    usual = float(np.median(before))
    spread = max(float(np.median(np.abs(before - usual))), FLOOR * abs(usual), 1e-300)
    recent = y[max(0, until - LOOK_BACK) :]
    with np.errstate(over="ignore", invalid="ignore"):
        far = np.where(np.isfinite(recent), (recent - usual) / spread, np.inf)
    near = np.flatnonzero(far <= FAR)
    begun = 0 if not len(near) else int(near[-1]) + 1
    if begun >= len(recent):
        return False
    place = until - len(recent) + begun
    return Move(float(x[place]), track.what, track.name, float(far[begun]), float(y[place]), usual)


def _apart(track: Track, at: float) -> float:
    """The largest distance between recorded iterations shortly before the spike."""
    until = int(np.searchsorted(track.iterations, at, "right"))
    near = track.iterations[max(0, until - LOOK_BACK) : until]
    return float(np.diff(near).max()) if len(near) > 1 else 0.0


def _sentence(moves: Sequence[Move]) -> str:
    """First of each sort, then how many others."""
    firsts: list[Move] = []
    for move in moves:
        if move.what not in {one.what for one in firsts}:
            firsts.append(move)
    said = [f"{'first' if not n else 'then'} {one}" for n, one in enumerate(firsts)]
    left = len(moves) - len(firsts)
    return ", ".join(said) + (
        f"; {left} more {'curve' if left == 1 else 'curves'} after their kind's first" if left else ""
    )
