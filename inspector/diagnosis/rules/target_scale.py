"""Targets of a regression on a scale that the model's outputs do not reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Floats, Table, table_of
from inspector.records import Finding

NUMBERS, LOSS = "training:asked/numbers", "training:loss"
COLUMNS = (
    "mean of targets", "deviation of targets", "mean of predictions", "deviation of predictions", "correlation",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fit:
    """Medians over the last looks: mean and deviation of targets and of predictions; the mean square error; and that of
    the same predictions, multiplied by the best number and shifted."""

    target: tuple[float, float]
    said: tuple[float, float]
    error: float
    fitted: float

    @property
    def scale(self) -> float:
        """Of the targets: the root of their mean square."""
        return float(np.hypot(*self.target))


class TargetScale:
    """Reads mean and deviation of targets and predictions, and their correlation, late in the training.

    What would be lost less were the predictions only scaled and shifted (1 − r² of the variance is left, r the
    correlation) is not a matter of what the model reads, but of the numbers that it has to reach: steps of Adam are as
    long for targets near 1000 as for those near 1. Targets that nothing predicts are left alone: there scaling
    does not help. Counter-example: a training that was ended after a few steps.
    """

    id = "IN212"
    untried = "the scale of targets is up to the data"
    title = "Scale of the targets"
    summary = "Targets lie far from the numbers that the model gives, and scaling its outputs would lower the loss."
    trust: Trust = "counterfactual"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("looks", 32, "Batches; of fewer the end is not told from the beginning.", within=COUNT),
        Limit("large", 10.0, "Root mean square of targets: a model begins with outputs near 1 or below; a judgement."),
        Limit(
            "small", 0.1, "The same downwards: outputs as the model begins are noise beside the targets.", below="large"
        ),
        Limit("times", 2.0, "The loss beside that of the same predictions, scaled and shifted."),
        Limit(
            "unlearned",
            0.1,
            "Loss beside the variance of the targets; below it most is learned all the same.",
            within=PART,
        ),
    )
    reference = "LeCun et al. 1998, Efficient BackProp, sections 4.3 and 4.5"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        table = table_of(run, NUMBERS)
        if table is None or run.too_few(len(table.values), run.limit("looks")):
            return
        fit = _fit(table)
        if fit is None or run.limit("small") <= fit.scale <= run.limit("large"):
            return
        if fit.error < run.limit("times") * fit.fitted or fit.error < run.limit("unlearned") * fit.target[1] ** 2:
            return
        (mean, spread), (own, varied) = fit.target, fit.said
        yield Finding(
            rule="target-scale", severity="warning", place="",
            message=f"targets are {mean:.3g} ± {spread:.2g} and predictions {own:.3g} ± {varied:.2g} at the end: the "
            f"mean square error is {fit.error / max(spread**2, 1e-300):.2g} times the variance of the targets, and the "
            f"same predictions, only scaled and shifted, would have {fit.fitted / fit.error:.1g} of it",
            evidence=(NUMBERS, *((LOSS,) if LOSS in run.channels else ())),
            iterations=(int(table.iterations[-1]),),
            sure="exact for the last quarter of the batches that were looked at (medians); that the scale is what "
            "slows it follows, since scaling alone would help",
            unless="the training was ended long before it could get there",
            remedy="Take mean and deviation off the targets (of the training data), learn those, and undo it where "
            "predictions are used; or begin with the mean as the bias of the last layer.",
            code="targets = (targets - mean) / deviation",
        )  # fmt: skip


def _fit(table: Table) -> Fit | None:
    """Of the last quarter; None where columns are missing or nothing is finite."""
    if any(one not in table.names for one in COLUMNS):
        return None
    rows = table.values[-max(1, len(table.values) // 4) :, [table.names.index(one) for one in COLUMNS]]
    rows = rows.astype(np.float64)
    rows = rows[np.isfinite(rows[:, :4]).all(1)]
    if not len(rows):
        return None
    target, spread, own, varied, together = rows.T
    together = np.clip(np.nan_to_num(together), 0.0, 1.0)  # predictions that are constant tell nothing
    error: Floats = (own - target) ** 2 + spread**2 + varied**2 - 2 * np.nan_to_num(rows[:, 4]) * spread * varied
    medians = [float(np.median(one)) for one in (target, spread, own, varied, error, (1 - together**2) * spread**2)]
    return Fit((medians[0], medians[1]), (medians[2], medians[3]), medians[4], medians[5])


RULES.register("target-scale")(TargetScale())
