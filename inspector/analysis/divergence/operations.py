"""The first operation of two runs whose results differ by more than rounding explains, though what it reads agrees.

Operations are taken in their order. What differs already where an operation reads it, and passes through, is no new
cause: only a difference that is larger than the operation's rounding and the amplified difference of its inputs is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from inspector.analysis.divergence.alignment import aligned_twice
from inspector.analysis.divergence.recorded import Made, Value, distance, rearranged
from inspector.analysis.divergence.rounding import ESTIMATE, FEW, own_rounding, passed_on, unit

FORM = ("only in A", "only in B", "replaced", "reads", "shape")
"""Causes that may be another way to compute the same: a sum in another order, with other intermediate results."""
SAME = 32.0
"""Units of rounding within which results (loss, gradients) are the same. Counter-example: an operation that was added
and changes every result by less than 4e-6, in float32, is not named as a cause; it is as another way to compute."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Where two runs part.

    `word`: "given" (a parameter or input differs before anything reads it), "operation" (same inputs, other result),
    "arguments" (and other arguments that are no tensors), "random" (and it draws random numbers), "shape", "reads"
    (it reads another part, or another result), "only in A", "only in B", "replaced" (what only one run does changes
    what the next common operation reads).
    a, b: the operation in each run; name: of what was given; distance ‖a − b‖₂ and what rounding explains of it;
    relative: distance / ‖a‖.
    """

    word: str
    a: Made | None
    b: Made | None
    distance: float
    explained: float
    relative: float
    name: str = ""
    rearranged: bool = False


@dataclass(slots=True)
class Compared:
    """All that was found while two sequences of operations were gone through.

    Attributes:
        cause: the first difference beyond rounding, None where there is none.
        pairs: how many operations were compared; only_a, only_b: those that one run alone has.
        largest: (relative difference, operation) of the result that differs most of those that rounding explains.
        given: name → relative difference of every parameter and input that differs beyond rounding.
        results: name → relative difference of loss and gradients.
        dtypes: the first operation whose result has another dtype.
        flipped: the first operation whose whole numbers or truth values differ since what it reads does, by rounding.
        otherwise: where the runs compute differently, with the same results: of a cause that shows in nothing.
        whole: whether the sequences could be aligned to their ends.
    """

    cause: Cause | None = None
    pairs: int = 0
    only_a: list[Made] = field(default_factory=list)
    only_b: list[Made] = field(default_factory=list)
    largest: tuple[float, Made | None] = (0.0, None)
    given: dict[str, float] = field(default_factory=dict)
    results: dict[str, float] = field(default_factory=dict)
    dtypes: tuple[Made, Made] | None = None
    flipped: Made | None = None
    otherwise: Cause | None = None
    whole: bool = True
    equal: bool = True


def compare(a: Sequence[Made], b: Sequence[Made]) -> Compared:
    """Go through both in order."""
    pairs, whole = aligned_twice([(one.text, one.key) for one in a], [(one.text, one.key) for one in b])
    found = Compared(pairs=len(pairs), whole=whole)
    ours, theirs = {i for i, _ in pairs}, {j for _, j in pairs}
    found.only_a = [one for one in a if one.number not in ours]
    found.only_b = [one for one in b if one.number not in theirs]
    walk = _Walk(a, b, dict(pairs), found)
    for i, j in pairs:
        walk.pair(a[i], b[j])
    if found.cause is not None and found.cause.word in FORM and found.results and walk.results_agree:
        found.cause, found.otherwise = None, found.cause
    return found


class _Walk:
    """The differences so far."""

    def __init__(self, a: Sequence[Made], b: Sequence[Made], partner: dict[int, int], found: Compared) -> None:
        self.a, self.b, self.partner, self.found = a, b, partner, found
        self.partners = set(partner.values())
        self.differs: dict[int, tuple[float, float]] = {}
        """Of each operation of a: (‖a − b‖, that / ‖a‖), the largest of its results."""
        self.worst = 0.0
        """The largest relative difference so far."""
        self.results_agree = True

    def pair(self, one: Made, other: Made) -> None:
        u = unit(*one.inputs, *one.outputs, *other.inputs, *other.outputs)
        changes = self._inputs(one, other, u)
        self._outputs(one, other, u, changes)

    # -- what is read

    def _inputs(self, one: Made, other: Made, u: float) -> list[float]:
        changes = []
        many = len(one.inputs) == len(other.inputs)
        for n, (x, y) in enumerate(zip(one.inputs, other.inputs, strict=False)):
            change = distance(x, y)
            changes.append(change)
            sources = one.sources[n], other.sources[n]
            if one.name == "result":
                self._result(one.module, x, change, u)
            elif change > self._allowed(x, y, sources, u):
                self._new(self._read_otherwise(one, other, n, change, self._allowed(x, y, sources, u)))
        if not many:
            self._new(Cause("reads", one, other, math.inf, 0.0, math.inf))
        return changes

    def _allowed(self, x: Value, y: Value, sources: tuple[int | str, int | str], u: float) -> float:
        """How far apart what is read may be, since what made it differs."""
        rounded = FEW * u * x.norm
        ours, theirs = sources
        if isinstance(ours, str) and isinstance(theirs, str):
            return rounded if x.dtype != y.dtype or x.floating else 0.0
        if isinstance(ours, int) and isinstance(theirs, int) and self.partner.get(ours) == theirs:
            change, _ = self.differs.get(ours, (0.0, 0.0))
            made = self.a[ours].outputs
            grown = math.sqrt(max(1.0, x.entries / max(1, made[0].entries))) if made else 1.0
            in_place = self.a[ours].name.endswith("_")
            return ESTIMATE * (change * grown + (self.worst * x.norm if in_place else 0.0)) + rounded
        return rounded + ESTIMATE * self.worst * x.norm

    def _read_otherwise(self, one: Made, other: Made, n: int, change: float, allowed: float) -> Cause:
        x, y = one.inputs[n], other.inputs[n]
        ours, theirs = one.sources[n], other.sources[n]
        share = _relative(change, x)
        if isinstance(ours, str) and isinstance(theirs, str) and ours == theirs:
            name = ours or "a tensor that no recorded operation made"
            self.found.given.setdefault(name, share)
            return Cause("given", one, other, change, allowed, share, name, rearranged(x, y))
        alone_a = self.a[ours] if isinstance(ours, int) and ours not in self.partner else None
        alone_b = self.b[theirs] if isinstance(theirs, int) and theirs not in self.partners else None
        if alone_a is None and alone_b is None:
            return Cause("reads", one, other, change, allowed, share, "", rearranged(x, y))
        word = "replaced" if alone_a and alone_b else "only in A" if alone_a else "only in B"
        return Cause(word, alone_a or one, alone_b or other, change, allowed, share)

    # -- what is made

    def _outputs(self, one: Made, other: Made, u: float, changes: list[float]) -> None:
        worst = (0.0, 0.0)
        for n, (x, y) in enumerate(zip(one.outputs, other.outputs, strict=False)):
            change = distance(x, y)
            if x.dtype != y.dtype and self.found.dtypes is None:
                self.found.dtypes = one, other
            if not change:
                continue
            self.found.equal = False
            own = max(own_rounding(one, n, u), own_rounding(other, n, u))
            passed = max(passed_on(one, n, u, changes), passed_on(other, n, u, changes))
            explained = ESTIMATE * (own + passed)
            share = _relative(change, x)
            if not x.floating and any(changes) and x.shape == y.shape:
                self.found.flipped = self.found.flipped or one
            elif change > explained:
                self._new(self._made_otherwise(one, other, x, y, change, explained))
            elif self.found.cause is None and share > self.found.largest[0]:
                self.found.largest = share, one
            worst = max(worst, (change, share))
            self.worst = max(self.worst, share)
        self.differs[one.number] = worst

    @staticmethod
    def _made_otherwise(one: Made, other: Made, x: Value, y: Value, change: float, explained: float) -> Cause:
        if x.shape != y.shape:
            word = "shape"
        elif one.random and other.random:
            word = "random"
        elif one.arguments != other.arguments:
            word = "arguments"
        else:
            word = "operation"
        return Cause(word, one, other, change, explained, _relative(change, x), "", rearranged(x, y))

    def _result(self, name: str, x: Value, change: float, u: float) -> None:
        share = self.found.results[name] = _relative(change, x)
        self.results_agree = self.results_agree and share <= SAME * u
        if self.found.equal and change:
            self.found.equal = False

    def _new(self, cause: Cause) -> None:
        if self.found.cause is None:
            self.found.cause = cause


def _relative(change: float, x: Value) -> float:
    """‖a − b‖ / ‖a‖; infinite where a is 0 and b is not."""
    return change / x.norm if x.norm else (math.inf if change else 0.0)
