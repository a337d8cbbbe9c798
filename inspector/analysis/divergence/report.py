"""Both comparisons of two runs, as one verdict: text for people, data for scripts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from inspector.analysis.divergence.operations import Cause, Compared, compare
from inspector.analysis.divergence.recorded import Made, operations_of
from inspector.analysis.divergence.rounding import UNITS
from inspector.analysis.divergence.series import damage_of_series, recorded
from inspector.analysis.divergence.training import Parting, Trainings, compare_trainings
from inspector.analysis.verdict import Verdict
from inspector.capture.view import View
from inspector.records import counted

NOTHING = (
    "Neither operations nor series over training are in both: record them with inspector run --with operations, or "
    "with inspector.watch(…, fingerprints=True)"
)
DOUBT = (
    "wrong where a distance, known from 16 random signs, is off by more than a factor of three (four in a million), "
    "where an operation amplifies the change that it got more than the one unit of rounding that was tried, and where "
    "what is not recorded differs (views, code that is no tensor operation)"
)
DOUBT_OF_TRAINING = {
    "fingerprints": "wrong where training itself turns rounding into large steps within one recorded interval (Adam on "
    "gradients near zero, a chaotic recurrence), or where arithmetic was coarser than the parameters' dtype "
    "(autocast): give that dtype",
    "norms": "of norms only, since fingerprints were not recorded in both: tensors with equal norms may differ, so the "
    "first difference may be earlier",
    "curves": "of logged curves only: parameters may differ before",
}
MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Divergence:
    """What came of comparing two runs.

    Attributes:
        operations, training: the verdicts; None where the runs have nothing of that to compare. Words: "none" where
            nothing differs beyond rounding, "identical" where no bit does, else what differs first (see
            operations.Cause and training.Parting).
        compared, trainings: the numbers behind them.
        doubts: what would make them wrong. damage: what of the trainings is damaged, and was not compared.
    """

    operations: Verdict | None = None
    training: Verdict | None = None
    compared: Compared | None = None
    trainings: Trainings | None = None
    doubts: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether anything differs beyond rounding."""
        told = (self.operations, self.training)
        return any(one is not None and one.word not in ("none", "identical") for one in told)

    @property
    def nothing(self) -> bool:
        """Whether there was nothing to compare."""
        return self.operations is None and self.training is None

    def lines(self) -> list[str]:
        """For people."""
        lost = [f"Not compared, since it is damaged: {one}" for one in self.damage]
        if self.nothing:
            return lost or [f"{NOTHING}."]
        told = []
        if self.operations is not None and self.compared is not None:
            told += [f"operations: {self.operations.sentence}.", *(f"  {one}" for one in _details(self.compared))]
        if self.training is not None:
            told.append(f"training: {self.training.sentence}.")
        return [*told, *lost, *(f"This is {one}." for one in self.doubts)]

    def data(self) -> dict[str, Any]:
        """For JSON; infinities and NaN as text."""
        found: dict[str, Any] = {"differs": self.differs, "doubts": list(self.doubts), "damage": list(self.damage)}
        for name, verdict in (("operations", self.operations), ("training", self.training)):
            if verdict is not None:
                numbers = {k: v if math.isfinite(v) else str(v) for k, v in verdict.numbers.items()}
                found[name] = {"word": verdict.word, "sentence": verdict.sentence, "numbers": numbers}
        if self.compared is not None:
            found["operations"]["details"] = list(_details(self.compared))
            cause = self.compared.cause
            found["operations"]["line"] = "" if cause is None else ((cause.b or cause.a) and _line(cause)) or ""
        if self.trainings is not None and self.trainings.parting is not None:
            parting = self.trainings.parting
            found["training"] |= {"iteration": parting.iteration, "name": parting.name}
        return found


def first_divergence(a: View, b: View, *, frame_a: int = -1, frame_b: int = -1, dtype: str = "") -> Divergence:
    """Compare two runs: their operations where both recorded them, and their trainings.

    `dtype`: judge rounding as that of this dtype where it is coarser than what the runs say (autocast to bfloat16).
    Raises CaptureError, and ValueError for an unknown dtype.
    """
    if dtype and dtype not in UNITS:
        raise ValueError(f"dtype is {dtype!r}; expected one of {', '.join(UNITS)}.")
    ours, theirs = operations_of(a, frame_a), operations_of(b, frame_b)
    compared = compare(ours, theirs) if ours and theirs else None
    series = recorded(a), recorded(b)
    damage = tuple(f"{view.start.title}: {said}" for view in (a, b) if (said := damage_of_series(view)))
    unit = max(UNITS.get(dtype, 0.0), *(_unit(view) for view in (a, b)))
    trainings = compare_trainings(*series, unit) if series[0].iterations & series[1].iterations else None
    doubts = [DOUBT] if compared is not None else []
    if trainings is not None:
        doubts.append(DOUBT_OF_TRAINING[trainings.by])
    return Divergence(
        None if compared is None else _operations(compared),
        None if trainings is None else _training(trainings), compared, trainings, tuple(doubts), damage,
    )  # fmt: skip


def _unit(view: View) -> float:
    """Of the coarsest dtype that the parameters of a watched training have."""
    known = view.start.meta.get("training", {})
    names = known.get("dtypes", ()) if isinstance(known, dict) else ()
    return max((UNITS[name] for name in names if name in UNITS), default=UNITS["float32"])


# -- operations


def _operations(found: Compared) -> Verdict:
    share, largest = found.largest
    numbers = {"compared": float(found.pairs), "largest": share}
    if found.cause is not None:
        cause = found.cause
        numbers |= {"relative": cause.relative, "distance": cause.distance, "explained": cause.explained}
        return Verdict(cause.word, _sentence(cause), numbers)
    if found.otherwise is not None:
        named = _sentence(found.otherwise).partition("; ")[0]
        most = max(found.results.values())
        said = f"the same results up to rounding, at most {most:.2g} apart, computed in another way: {named}"
        return Verdict("none", said, numbers | {"largest": most})
    if found.equal and not found.only_a and not found.only_b:
        return Verdict("identical", f"all {counted(found.pairs, 'operation', ',')} gave the same bits", numbers)
    at = f", at {largest.where}" if largest is not None else ""
    said = f"no difference beyond rounding in {counted(found.pairs, 'operation', ',')}; the largest is {share:.2g}{at}"
    return Verdict("none", said if share else f"no difference in {counted(found.pairs, 'operation', ',')}", numbers)


def _sentence(cause: Cause) -> str:
    a, b = cause.a, cause.b
    assert a is not None and b is not None
    how = f"by about {cause.relative:.2g} of its norm, where rounding explains {_share(cause):.2g}"
    order = "; the entries seem to be the same in another order" if cause.rearranged else ""
    match cause.word:
        case "given":
            return f"{cause.name} differs before anything has run, {how}{order}; it is first read by {b.where}"
        case "only in A":
            return f"A alone has {a.where}, and what comes of it differs {how}"
        case "only in B":
            return f"B alone has {b.where}, and what comes of it differs {how}"
        case "replaced":
            return f"A has {a.where} where B has {b.where}; what comes of them differs {how}"
        case "reads":
            return f"{_both(a, b)} reads something else in B, though all that was made before agrees{order}"
        case "shape":
            return f"{_both(a, b)} makes {a.outputs[0].shape} in A and {b.outputs[0].shape} in B"
        case "random":
            said = "draws other random numbers (seed, device, or something drew before it)"
            return f"{_both(a, b)} {said}: its result differs {how}"
        case "arguments":
            return f"{_both(a, b)} has other arguments, ({a.arguments}) and ({b.arguments}): its result differs {how}"
    return f"{_both(a, b)} gives another result though what it reads agrees: it differs {how}{order}"


def _share(cause: Cause) -> float:
    return cause.explained * cause.relative / cause.distance if 0 < cause.distance < math.inf else cause.explained


def _both(a: Made, b: Made) -> str:
    return a.where if a.line == b.line else f"{a.where}, in B {b.line or 'elsewhere'},"


def _line(cause: Cause) -> str:
    return next((one.line for one in (cause.b, cause.a) if one is not None and one.line), "")


def _details(found: Compared) -> Iterator[str]:
    cause = found.cause
    if len(found.given) > 1 or (found.given and cause is not None and cause.word != "given"):
        named = sorted(found.given.items(), key=lambda item: -item[1])
        yield f"given values that differ: {_shares(named)}"
    if found.results:
        most = sorted(found.results.items(), key=lambda item: -item[1])
        yield f"relative differences of results: {_shares(most)}"
    if found.dtypes is not None:
        one, other = found.dtypes
        yield f"first other dtype: {one.where}: {one.outputs[0].dtype} in A, {other.outputs[0].dtype} in B"
    for run, alone in (("A", found.only_a), ("B", found.only_b)):
        if alone:
            yield f"{counted(len(alone), 'operation', ',')} only in {run}, the first {alone[0].where}"
    if found.flipped is not None:
        yield f"whole numbers or truth values that rounding turned: first at {found.flipped.where}"
    if not found.whole:
        yield "the two are too different to be aligned throughout: only their beginnings and ends were compared"


def _shares(named: list[tuple[str, float]]) -> str:
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return ", ".join(f"{name} {share:.2g}" for name, share in named[:MOST_NAMED]) + more


# -- training


def _training(found: Trainings) -> Verdict:
    share, at, name = found.largest
    numbers = {"iterations": float(found.iterations), "largest": share}
    if found.parting is None:
        most = f"; the largest of weights is {share:.2g} ({name}, iteration {at:.15g})" if share else ""
        both = f"{counted(found.iterations, 'iteration', ',')} that both recorded"
        said = f"no difference beyond rounding and its growth in {both}"
        return Verdict("none", said + most, numbers)
    parting = found.parting
    numbers |= {"iteration": parting.iteration, "relative": parting.relative, "explained": parting.explained}
    return Verdict(parting.word, _parting(parting), numbers)


def _parting(one: Parting) -> str:
    more = f" and {one.others} more" if one.others else ""
    at = f"iteration {one.iteration:.15g}"
    by = f"by about {one.relative:.2g} of its norm, where rounding explains {one.explained:.2g}"
    match one.word:
        case "start":
            return f"{one.name}{more} differ{'' if one.others else 's'} before the first step, {by}"
        case "batch":
            return f"{at}: the batch is another one (its hash differs), with the same weights up to rounding"
        case "gradient":
            whose = f"{'gradients' if one.others else 'gradient'} of {one.name}{more}"
            how = f"differ{'' if one.others else 's'} {by}"
            return f"{at}: the {whose} {how}; the weights and batches before agree"
        case "settings":
            return f"{at}: the optimizer's {one.name}{more} is {one.a:.6g} in A and {one.b:.6g} in B"
        case "weight":
            how = f"differ{'' if one.others else 's'} after the step {by}"
            return f"{at}: the weight {one.name}{more} {how}; gradients and settings agree"
    what = "the loss" if one.word == "loss" else one.name
    share = f"{one.relative:.2g}, where rounding explains {one.explained:.2g}"
    return f"{at}: {what} is {one.a:.9g} in A and {one.b:.9g} in B, relative difference {share}"
