"""A loss that does not fall: a test over medians of blocks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.loss_trend import is_flat, trend_of
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import line_of, table_of
from inspector.records import Finding

RATIO = "parameters:update/ratio"


class Plateau:
    """Reads the training loss, and updates for a likely reason.

    Counter-example: a run that goes on from a trained checkpoint, or one whose loss cannot be lower.
    """

    id = "IN303"
    title = "The loss does not fall"
    summary = "From the beginning to the end the loss stays where it was."
    trust: Trust = "statistical"
    scope: Scope = "training"
    reads = ("series", "training")
    needs = ()
    limits = (
        Limit("share", 0.02, "Two per cent of its size: what trainspotter calls a plateau."),
        Limit("p", 0.05, "A rank test over twenty blocks sees no trend: the usual level."),
        Limit("ratio", 1e-6, "An update of less than a millionth of the weight a step: 1e-3 is usual (Karpathy)."),
    )
    reference = "Mann 1945; Kendall 1975 (rank test of a trend)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        loss = line_of(run, "loss")
        trend = trend_of(loss.x, loss.y) if loss is not None else None
        if loss is None or trend is None or not is_flat(trend, run.limit("share"), run.limit("p")):
            return
        reason, evidence = self._reason(run)
        yield Finding(
            rule="plateau", severity="warning", place="",
            message=f"the loss is {trend.first:.4g} at the beginning and {trend.last:.4g} at the end of {len(loss.y)} "
            f"recorded iterations{reason}",
            evidence=(loss.channel, *evidence),
            sure=f"p = {trend.falls:.2g} of as much order by chance; spread within a block {trend.spread:.2g}",
            unless="it began from a trained model, or the loss cannot be lower",
            remedy="See whether one batch can be learned, whether the gradient reaches as far back as the task needs "
            "(a probe with influence), and whether the step size is near the largest that works.",
        )  # fmt: skip

    def _reason(self, run: Run) -> tuple[str, tuple[str, ...]]:
        table = table_of(run, RATIO)
        if table is None or not np.isfinite(table.values).any():
            return "", ()
        ratio = float(np.nanmedian(table.values))
        if ratio >= run.limit("ratio"):
            return "", ()
        return f"; a step changes weights by {ratio:.2g} of their size, which is next to nothing", (RATIO,)


RULES.register("plateau")(Plateau())
