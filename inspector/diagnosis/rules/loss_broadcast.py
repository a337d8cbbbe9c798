"""A loss that sets every prediction of a batch beside every target: exact, by shapes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.before_training.given import CROSSED, SAID
from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.diagnosis.series import table_of
from inspector.records import Finding

GIVEN, LOSS = "training:asked/given", "training:loss"
TESTED = "model:structure/loss_input"


class LossBroadcast:
    """Reads the shapes of autograd's nodes between loss and model.

    A batch whose size is 1 shows nothing. Counter-example: a distance between two sets of numbers, whose every pair
    counts; where its axis is put in beside the loss (`[:, None]`) it is left alone.
    """

    id = "IN150"
    untried = "which shapes meet in the loss is in your training loop"
    title = "Predictions and targets of other shapes"
    summary = "Predictions (n, 1) and targets (n,) are broadcast to (n, n): each prediction is compared with all."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("structure", "series")
    needs = ("structure/loss_input",)
    limits = ()
    reference = "NumPy and PyTorch: broadcasting semantics; torch.nn.functional.mse_loss warns of it"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one of the training, or of the newest run."""
        table = table_of(run, GIVEN)
        if table is not None:
            rows = np.flatnonzero(table.values[:, 0] == CROSSED)
            if len(rows):
                evidence = (GIVEN, LOSS) if LOSS in run.channels else (GIVEN,)
                seen = int(np.isfinite(table.values[:, 0]).sum())
                sure = f"exact, in {len(rows)} of {seen} batches that were looked at: shapes that autograd recorded"
                yield _finding(evidence, sure, (int(table.iterations[rows[0]]),))
        elif TESTED in run.channels and run.revision(TESTED):
            values = np.ma.filled(np.ma.asarray(run.array(TESTED, run.frame_of(TESTED)), np.float64), np.nan)
            if len(values) and values[0] == CROSSED:
                yield _finding((TESTED,), "exact: the shapes that autograd recorded in one call", ())


def _finding(evidence: tuple[str, ...], sure: str, iterations: tuple[int, ...]) -> Finding:
    return Finding(
        rule="loss-broadcast", severity="warning", place="", message=SAID[CROSSED], evidence=evidence,
        iterations=iterations, sure=sure, unless="every prediction is meant to be compared with all targets",
        remedy="Give predictions and targets one shape, and check it before the loss.",
        code="assert predictions.shape == targets.shape; predictions = model(x).squeeze(-1)",
    )  # fmt: skip


RULES.register("loss-broadcast")(LossBroadcast())
