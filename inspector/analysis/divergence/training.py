"""The first iteration, and the parameter, at which two trainings are further apart than rounding explains.

Within an iteration things are looked at in the order in which they act on each other: weights at the beginning, batch,
loss, gradients, settings of the optimizer, weights after the step. What was apart in the iterations before grows, also
where nothing new happens; a cause is what is apart by more than GROWTH times the largest difference so far.

Counter-example: a parameter whose gradient is zero but for rounding (a bias in front of a softmax over its axis) is
moved by Adam by about its learning rate in a direction that rounding decides. So of a weight, what its own gradient's
rounding can turn in the update is explained.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from inspector.analysis.divergence.rounding import UNITS
from inspector.analysis.divergence.series import Floats, Recorded

GROWTH = 32.0
"""How many times larger a difference may be than the largest one at the iterations that were recorded before."""
WEIGHT, GRADIENT, LOSS = 64.0, 256.0, 256.0
"""Units of rounding that a first difference may have: relative to the weight, to all gradients together, to the
loss."""
TURNED = 64.0
"""A relative difference of a gradient changes an update of Adam's by so many times as much at most."""


@dataclass(frozen=True, slots=True)
class Parting:
    """Where two trainings part. `word`: "start", "batch", "loss", "gradient", "settings", "weight", or "curve" (of a
    log). `name`: the parameter, setting or curve; `others`: how many more at that iteration. Differences are relative.
    """

    word: str
    iteration: float
    name: str
    others: int
    relative: float
    explained: float
    a: float = math.nan
    b: float = math.nan


@dataclass(slots=True)
class Trainings:
    """What came of comparing two trainings.

    Attributes:
        parting: the first difference beyond rounding, None where there is none.
        iterations: how many iterations both recorded; last: the last of them.
        largest: (relative difference, iteration, name) that is the largest of weights, and is explained.
        settings: settings that differ at the first common iteration, name → (a, b).
        by: "fingerprints", "norms" or "curves": what was compared.
    """

    parting: Parting | None = None
    iterations: int = 0
    last: float = math.nan
    largest: tuple[float, float, str] = (0.0, math.nan, "")
    settings: dict[str, tuple[float, float]] = field(default_factory=dict)
    by: str = ""


def compare_trainings(a: Recorded, b: Recorded, unit: float = UNITS["float32"]) -> Trainings:
    """Go through the iterations that both recorded."""
    common = sorted(a.iterations & b.iterations)
    exact = bool(a.prints.get("weight") and b.prints.get("weight"))
    by = "fingerprints" if exact else "norms" if a.norms and b.norms else "curves"
    found = Trainings(iterations=len(common), last=common[-1] if common else math.nan, by=by)
    walk = _Walk(a, b, unit, found, exact)
    for at in common:
        for parting in walk.at(at):
            found.parting = found.parting or parting
        if found.parting is not None:
            break
    return found


class _Walk:
    """The differences so far."""

    def __init__(self, a: Recorded, b: Recorded, unit: float, found: Trainings, exact: bool) -> None:
        self.a, self.b, self.unit, self.found, self.exact = a, b, unit, found, exact
        order = {name: n for n, name in enumerate(b.names)}
        pairs = [(n, order[name]) for n, name in enumerate(a.names) if name in order]
        self.ours = np.array([n for n, _ in pairs], dtype=np.int64)
        self.theirs = np.array([m for _, m in pairs], dtype=np.int64)
        self.names = [a.names[n] for n, _ in pairs]
        self.before = {"weight": 0.0, "gradient": 0.0, "loss": 0.0, "curve": 0.0}
        self.turned = np.zeros(len(pairs))
        self.last: Floats | None = None

    def at(self, at: float) -> Iterator[Parting]:
        yield from self._start(at)
        if self.a.processes == self.b.processes:  # else each part of a batch was another process's
            yield from self._exactly("batch", at, self.a.batches, self.b.batches)
        yield from self._numbers("loss", at, {"loss": self.a.losses}, {"loss": self.b.losses}, LOSS)
        yield from self._gradient(at)
        yield from self._settings(at)
        yield from self._weight(at)
        yield from self._numbers("curve", at, self.a.others, self.b.others, LOSS)

    @property
    def grown(self) -> float:
        """What any relative difference may be, since something was apart before."""
        return GROWTH * max(self.before.values())

    # -- tensors

    def _pair(self, word: str, at: float) -> tuple[Floats, Floats, Floats] | None:
        """(distance, norm in a, norm in b) by parameter, NaN where it is not known."""
        exact = self.exact or word == "start"
        tables = [(one.prints if exact else one.norms).get(word, {}) for one in (self.a, self.b)]
        if at not in tables[0] or at not in tables[1] or not len(self.ours):
            return None
        x, y = (table[at][which] for table, which in zip(tables, (self.ours, self.theirs), strict=True))
        if not exact:
            return _distances(x[:, None], y[:, None])
        return _distances(x, y)

    def _start(self, at: float) -> Iterator[Parting]:
        pair = self._pair("start", at)
        if pair is not None:
            change, norm, _ = pair
            self.last = self.a.prints["start"][at][self.ours]
            yield from self._largest("start", at, change, norm, WEIGHT * self.unit * norm)

    def _gradient(self, at: float) -> Iterator[Parting]:
        pair = self._pair("gradient", at)
        if pair is None:
            return
        change, norm, _ = pair
        whole = math.sqrt(float(np.nansum(np.square(norm[np.isfinite(norm)]))))
        share = max(GRADIENT * self.unit, self.grown)
        with np.errstate(invalid="ignore", divide="ignore"):
            self.turned = np.nan_to_num(np.minimum(1.0, TURNED * change / np.maximum(norm, 1e-300)), nan=1.0)
        yield from self._largest("gradient", at, change, np.maximum(norm, 1e-300), np.full_like(norm, share * whole))
        total = float(np.nanmax(change, initial=0.0)) / whole if whole else 0.0
        if math.isfinite(total):
            self.before["gradient"] = max(self.before["gradient"], total)

    def _weight(self, at: float) -> Iterator[Parting]:
        pair = self._pair("weight", at)
        if pair is None:
            return
        change, norm, _ = pair
        allowed = max(WEIGHT * self.unit, self.grown) * norm + 2 * self.turned * self._update(at)
        yield from self._largest("weight", at, change, norm, allowed)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.nan_to_num(change / np.maximum(norm, 1e-300), nan=0.0, posinf=0.0)
        if len(shares) and self.found.parting is None:
            n = int(shares.argmax())
            if shares[n] > self.found.largest[0]:
                self.found.largest = float(shares[n]), at, self.names[n]
            fair = shares[norm > 1e-6 * float(np.nanmax(norm, initial=0.0))]
            self.before["weight"] = max(self.before["weight"], float(fair.max(initial=0.0)))

    def _update(self, at: float) -> Floats:
        """‖θ after − θ before‖ by parameter, from fingerprints; 0 where it is not known."""
        if not self.exact:
            return np.zeros(len(self.names))
        now = self.a.prints["weight"][at][self.ours]
        before, self.last = self.last, now
        if before is None or before.shape != now.shape:
            return np.zeros(len(self.names))
        moved: Floats = np.nan_to_num(np.sqrt(np.mean(np.square(now - before), axis=1)))
        return moved

    def _largest(self, word: str, at: float, change: Floats, norm: Floats, allowed: Floats) -> Iterator[Parting]:
        with np.errstate(invalid="ignore", divide="ignore"):
            excess = np.where(change > allowed, change / np.maximum(norm, 1e-300), 0.0)
            share = np.divide(allowed, np.maximum(norm, 1e-300))
        beyond = np.flatnonzero(excess > 0)
        if len(beyond):
            n = int(beyond[excess[beyond].argmax()])
            yield Parting(word, at, self.names[n], len(beyond) - 1, float(excess[n]), float(share[n]))

    # -- numbers

    def _exactly(
        self, word: str, at: float, ours: Mapping[float, float], theirs: Mapping[float, float]
    ) -> Iterator[Parting]:
        if at in ours and at in theirs and ours[at] != theirs[at]:
            yield Parting(word, at, "", 0, math.nan, 0.0)

    def _numbers(
        self, word: str, at: float, ours: Mapping[str, Mapping[float, float]],
        theirs: Mapping[str, Mapping[float, float]], units: float,
    ) -> Iterator[Parting]:  # fmt: skip
        allowed = max(units * self.unit, self.grown)
        worst, beyond = 0.0, []
        for name in ours:
            x, y = ours[name].get(at), theirs.get(name, {}).get(at)
            if x is None or y is None or x == y or (math.isnan(x) and math.isnan(y)):
                continue
            share = abs(x - y) / max(abs(x), abs(y))
            if not share <= allowed:
                beyond.append(Parting(word, at, name, 0, share, allowed, x, y))
            else:
                worst = max(worst, share)
        self.before[word] = max(self.before[word], worst)
        yield from beyond[:1]

    def _settings(self, at: float) -> Iterator[Parting]:
        ours, theirs = self.a.settings.get(at), self.b.settings.get(at)
        if ours is None or theirs is None:
            return
        names = [*ours, *(name for name in theirs if name not in ours)]
        differ = {name: (ours.get(name, math.nan), theirs.get(name, math.nan)) for name in names}
        differ = {name: pair for name, pair in differ.items() if not math.isclose(*pair, rel_tol=1e-9, abs_tol=0.0)}
        if differ:
            self.found.settings = self.found.settings or differ
            name, (x, y) = next(iter(differ.items()))
            yield Parting("settings", at, name, len(differ) - 1, math.nan, 0.0, x, y)


def _distances(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """(‖x − y‖, ‖x‖, ‖y‖) estimated from fingerprints (p, 8); infinite where one alone is not finite."""
    with np.errstate(invalid="ignore"):
        change, one, other = (np.sqrt(np.mean(np.square(part), axis=1)) for part in (x - y, x, y))
    lost = np.isfinite(one) != np.isfinite(other)
    return np.where(lost, np.inf, change), one, other
