"""NaN or infinity over training, with what came first: exact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.diagnosis.series import Line, lines_of, listed, table_of, the_only
from inspector.records import Finding, Severity

COUNTS = "parameters:gradient/non_finite"
OF_OTHERS = ("training:weights/", "training:asked/")
"""Numbers that other rules compare: that they are not finite follows from weights or outputs that are not."""
CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
REMEDY = (
    "Open the first iteration: what comes after is its consequence. Usual causes: a learning rate that is too large, a "
    "logarithm or root of 0, a division by a norm that is 0, float16; clipping does not repair a NaN."
)
DIVERGED = (
    "It grew until no number could hold it: lower the learning rate, warm it up, clip the gradient by its norm, or "
    "begin with smaller recurrent weights; go back to a checkpoint before the rise."
)
MADE = "training:loss/broken_by"
FUSED = "loss = nn.functional.binary_cross_entropy_with_logits(scores, targets)  # or cross_entropy"
OPERATIONS = {
    "logarithm": "Compute the logarithm together with what makes its number: cross_entropy or log_softmax of scores, "
    "logsigmoid or binary_cross_entropy_with_logits; or clamp(min=1e-8) before the logarithm. Clipping does not help.",
    "division": "Add a small number to what is divided by, or leave out the rows for which it is 0 (an empty mask, a "
    "length of 0, a deviation of one value).",
    "root": "Keep what the root is taken of at 0 or above: clamp(min=1e-8).",
}
"""What to write in the place of an operation, by a word of it."""
ROSE, BEGINNING = 100.0, 10
"""Times the median of the first so many losses that the last finite one is, where the loss rose before it broke. A
logarithm of 0 or a division by it breaks a loss that has not. A judgement."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Something that is not finite in some iterations.

    Attributes:
        what: in a sentence. first: the iteration. count: " in 3 of 40 points". finite (k,): iterations in which it is.
        channel: that has it. loss, norm: whether it is the loss, or the norm of the gradient. run: of a log.
        names: of parameters whose gradient it is.
    """

    what: str
    first: float
    count: str
    finite: npt.NDArray[np.float64]
    channel: str
    loss: bool = False
    norm: bool = False
    run: str = ""
    names: tuple[str, ...] = ()
    rose: tuple[float, float] | None = None
    """Of a loss: from which number to which it rose before."""


class NonFiniteTraining:
    """Reads the loss and the counts of non-finite gradient entries. Skipped steps of a GradScaler are no iterations of
    a watched training; a log may have their norms, so a norm that is finite again before the loss breaks is said to be.
    """

    id = "IN102"
    title = "The training became NaN or infinite"
    summary = "The loss, or the gradient of a parameter, is not finite in some iteration."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series", "training")
    needs = ()
    limits = ()
    reference = "IEEE 754: NaN passes through every further operation"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each curve with such points, the loss first. The first one of a run tells of the gradient too, where
        that was not finite before it or with it; what comes after is a consequence, and is not told."""
        entries, broken = _entries(run), _curves(run)
        told = set[str]()
        made = _made_by(run)
        for one in (one for one in broken if not one.norm):
            before = [other for other in entries + broken if (other.norm or other.names) and other.run == one.run]
            cause = min(before, key=lambda other: other.first, default=None)  # entries first: they name parameters
            new = cause is not None and one.run not in told and cause.first <= one.first
            found = _together(one, cause if new else None)
            yield _of_operations(found, made) if one.loss and made and made[0] <= one.first else found
            if one.loss or new:
                told.add(one.run)
        alone = {one.run: one for one in reversed(entries + broken) if (one.norm or one.names) and one.run not in told}
        for one in alone.values():
            severity: Severity = "error" if one.names else "warning"
            yield _finding(severity, one.what, one.first, one.names, (one.channel,), one.count)


def _made_by(run: Run) -> tuple[float, tuple[str, ...]] | None:
    """The iteration of the first loss that is not finite, and the operations that made it so; None where not known."""
    table = table_of(run, MADE)
    hit = np.zeros((0, 0), bool) if table is None else table.values > 0
    if table is None or not hit.any():
        return None
    row = int(hit.any(1).argmax())
    return float(table.iterations[row]), tuple(name for name, one in zip(table.names, hit[row], strict=False) if one)


def _of_operations(found: Finding, made: tuple[float, tuple[str, ...]]) -> Finding:
    """Names the operation and what is written in its place."""
    said = f"{found.message}; in iteration {made[0]:g} the loss computes {' and '.join(made[1])}"
    remedy = next((OPERATIONS[word] for word in OPERATIONS if any(word in one for one in made[1])), found.remedy)
    return replace(
        found,
        message=said,
        remedy=remedy,
        code=FUSED if remedy is OPERATIONS["logarithm"] else found.code,
        evidence=(*found.evidence, MADE),
    )


def _together(one: Broken, cause: Broken | None) -> Finding:
    """What a curve says, and the gradient that broke before it or in the same iteration."""
    severity: Severity = "error" if one.loss else "warning"
    if cause is None:
        more = one.count if one.rose is None else f"{one.count}{_risen(one.rose)}"
        found = _finding(severity, one.what, one.first, (), (one.channel,), more)
        return found if one.rose is None else replace(found, remedy=DIVERGED, code=CLIP)
    evidence = (one.channel, cause.channel)
    if one.rose is not None and cause.first >= one.first - 1:
        said = f"{one.count}{_risen(one.rose)}, and so is {cause.what}"
        return replace(_finding(severity, one.what, one.first, cause.names, evidence, said), remedy=DIVERGED, code=CLIP)
    if cause.first == one.first:
        return _finding(severity, one.what, one.first, cause.names, evidence, f"{one.count}, and so is {cause.what}")
    between = ((cause.finite > cause.first) & (cause.finite < one.first)).any()
    more = f"{cause.count}{', and was finite again after that' if between else ''}; "
    more += f"{one.what}{one.count} from iteration {one.first:g} on"
    return _finding(severity, cause.what, cause.first, cause.names, evidence, more)


def _risen(rose: tuple[float, float]) -> str:
    return f"; before that it rose from {rose[0]:.3g} to {rose[1]:.3g}"


def _rise(y: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    """From which number to which a curve (n,) rose before its first point that is not finite; None where it did not."""
    before = y[: int(np.argmin(np.isfinite(y)))]
    if len(before) < 3:
        return None
    began, last = float(np.median(before[:BEGINNING])), float(before[-3:].max())
    if len(before) <= BEGINNING:
        began = float(before[0])
    return (began, last) if last > ROSE * max(abs(began), 1e-3) else None


def _finding(
    severity: Severity, what: str, first: float, names: tuple[str, ...], evidence: tuple[str, ...], more: str = ""
) -> Finding:
    return Finding(
        rule="nonfinite-training", severity=severity, place=the_only(names), places=tuple(names),
        message=f"{what} is not finite first at iteration {first:g}{more}", evidence=evidence, iterations=(int(first),),
        sure="exact for what was recorded: an earlier iteration may not have been",
        unless="a metric that may be undefined (a mean over nothing) was logged",
        remedy=REMEDY, code="torch.autograd.set_detect_anomaly(True)",
    )  # fmt: skip


def _curves(run: Run) -> list[Broken]:
    """The curves that are not finite somewhere, the loss first, then the earliest."""
    lines = [line for line in lines_of(run) if not line.channel.startswith(OF_OTHERS)]
    known = {line.curve.key for line in lines}
    of_tables = lines_of(run, ("loss", "gradient norm"))
    lines += [line for line in of_tables if line.curve.key not in known]  # columns
    found = [_broken(line) for line in lines if not np.isfinite(line.y).all()]
    return sorted(found, key=lambda one: (not one.loss, one.first))


def _broken(line: Line) -> Broken:
    bad, curve = ~np.isfinite(line.y), line.curve
    named = f"{curve.run}: {curve.name}" if curve.run else curve.name
    plain = curve.role == "loss" and not curve.run and curve.name == "loss"
    return Broken(
        what="the loss" if plain else named, first=float(line.x[bad].min()),
        count=f" in {int(bad.sum())} of {len(line.y)} points", finite=line.x[~bad], channel=line.channel,
        loss=curve.role == "loss", rose=_rise(line.y) if curve.role == "loss" else None,
        norm=curve.role == "gradient norm", run=curve.run,
    )  # fmt: skip


def _entries(run: Run) -> list[Broken]:
    """The parameters in whose gradients an entry is not finite, of the first iteration with one: none or one."""
    counts = table_of(run, COUNTS)
    bad = np.zeros(0, bool) if counts is None else (counts.values > 0).any(axis=1)
    if counts is None or not bad.any():
        return []
    row = int(np.argmax(bad))
    names = tuple(name for name, n in zip(counts.names, counts.values[row], strict=False) if n > 0)
    at = counts.iterations
    what = f"the gradient of {listed(names)}"
    return [Broken(what, float(at[row]), "", at[~bad], COUNTS, names=names)]


RULES.register("nonfinite-training")(NonFiniteTraining())
