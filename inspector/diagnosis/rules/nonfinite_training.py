"""NaN or infinity over training, with what came first: exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.diagnosis.series import Table, line_of, listed, table_of
from inspector.records import Finding

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
        """At most one, with the first iteration and the parameters whose gradient was broken in it."""
        loss, counts = line_of(run, "loss"), table_of(run, COUNTS)
        bad = np.flatnonzero(~np.isfinite(loss.y)) if loss is not None else np.array([], int)
        of_loss = float(loss.x[bad[0]]) if loss is not None and len(bad) else np.inf
        of_gradient, names = _first(counts)
        first = min(of_loss, of_gradient)
        if not np.isfinite(first):
            return
        what = "the loss is" if of_loss <= of_gradient else f"the gradient of {listed(names)} is"
        also = f", and so is that of {listed(names)}" if of_loss == of_gradient and names else ""
        count = f"; the loss in {len(bad)} of {len(loss.y)}" if loss is not None and len(bad) else ""
        yield Finding(
            rule="nonfinite-training", severity="error", place=names[0] if len(names) == 1 else "",
            message=f"{what} not finite first at iteration {first:g}{also}{count}",
            evidence=tuple(
                name for name in ((loss.channel if loss is not None else ""), COUNTS) if name in run.channels
            ),
            iterations=(int(first),), sure="exact for what was recorded: an earlier iteration may not have been",
            unless="a metric that may be undefined (a mean over nothing) was logged under the name of the loss",
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
