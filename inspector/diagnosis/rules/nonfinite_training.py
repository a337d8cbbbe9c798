"""NaN or infinity over training, with what came first: exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.diagnosis.series import Line, Table, lines_of, listed, table_of, the_only
from inspector.records import Finding, Severity

COUNTS = "parameters:gradient/non_finite"
REMEDY = (
    "Open the first iteration: what comes after is its consequence. Usual causes: a learning rate that is too large, a "
    "logarithm or root of 0, a division by a norm that is 0, float16; clipping does not repair a NaN."
)


class NonFiniteTraining:
    """Reads the loss and the counts of non-finite gradient entries. Skipped steps of a GradScaler are no iterations."""

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
        """One for each curve with such points, the loss first; the first tells of parameters too."""
        of_gradient, names = _first(table_of(run, COUNTS))
        lines = lines_of(run)
        known = {line.curve.key for line in lines}
        lines += [line for line in lines_of(run, ("loss",)) if line.curve.key not in known]  # columns of a table
        lines.sort(key=lambda line: line.curve.role != "loss")
        for line in lines:
            bad = np.flatnonzero(~np.isfinite(line.y))
            if len(bad):
                yield _of_line(line, bad, of_gradient, names)
                names = []  # told with the first
        if names:
            yield _finding("error", f"the gradient of {listed(names)} is not finite", of_gradient, names, (COUNTS,))


def _of_line(line: Line, bad: npt.NDArray[np.intp], of_gradient: float, names: list[str]) -> Finding:
    first, loss = float(line.x[bad[0]]), line.curve.role == "loss"
    name = f"{line.curve.run}: {line.curve.name}" if line.curve.run else line.curve.name
    what = f"{'the loss' if loss and not line.curve.run and line.curve.name == 'loss' else name} is not finite"
    count = f" in {len(bad)} of {len(line.y)} points"
    if names and of_gradient < first:
        what = f"the gradient of {listed(names)} is not finite"
        count = f"; {name}{count} from iteration {first:g} on"
    elif names and of_gradient == first:
        count += f", and so is the gradient of {listed(names)}"
    evidence = (line.channel, COUNTS) if names else (line.channel,)
    first = min(first, of_gradient) if names else first
    return _finding("error" if loss else "warning", what, first, names, evidence, count)


def _finding(
    severity: Severity, what: str, first: float, names: list[str], evidence: tuple[str, ...], more: str = ""
) -> Finding:
    return Finding(
        rule="nonfinite-training", severity=severity, place=the_only(names),
        message=f"{what} first at iteration {first:g}{more}", evidence=evidence, iterations=(int(first),),
        sure="exact for what was recorded: an earlier iteration may not have been",
        unless="a metric that may be undefined (a mean over nothing) was logged",
        remedy=REMEDY, code="torch.autograd.set_detect_anomaly(True)",
    )  # fmt: skip


def _first(counts: Table | None) -> tuple[float, list[str]]:
    """(iteration, parameters) where entries of gradients are not finite for the first time; infinity where never."""
    if counts is None:
        return np.inf, []
    rows = np.flatnonzero((counts.values > 0).any(axis=1))
    if not len(rows):
        return np.inf, []
    hit = counts.values[rows[0]] > 0
    return float(counts.iterations[rows[0]]), [name for name, one in zip(counts.names, hit, strict=False) if one]


RULES.register("nonfinite-training")(NonFiniteTraining())
