"""Adam's second moment lags behind the gradient: the root mean square of g / √v."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import listed, table_of
from inspector.records import Finding

RMS = "parameters:adam/rms"


class StaleSecondMoment:
    """Reads √mean(g² / v) by parameter, near 1 where v follows the gradient.

    Counter-example: the first iterations, where v is young; they are left out.
    """

    id = "IN304"
    title = "Adam's second moment is stale"
    summary = "Gradients are much larger than Adam's running estimate, so its steps are too large."
    trust: Trust = "statistical"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("rms", 2.3, "Wortsman et al. 2023, arXiv 2304.13013: loss spikes follow where it is above 2.3."),
        Limit("young", 20, "Recorded iterations after which v is taken to be settled."),
        Limit("times", 3, "Once is a rare batch."),
    )
    reference = "Wortsman et al. 2023, arXiv 2304.13013, section 3.4"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, with the parameters most often concerned."""
        table = table_of(run, RMS)
        if table is None:
            return
        young = int(run.limit("young"))
        high = table.values[young:] > run.limit("rms")
        times = high.sum(axis=0)
        hit = [int(n) for n in np.argsort(-times, kind="stable") if times[n] >= run.limit("times")]
        if not hit:
            return
        names = [table.names[n] for n in hit]
        at = table.iterations[young:][high[:, hit[0]]]
        yield Finding(
            rule="stale-second-moment", severity="warning", place=names[0],
            message=f"gradients are more than {run.limit('rms'):g} times Adam's estimate in {int(times[hit[0]])} of "
            f"{len(high)} recorded iterations of {names[0]}"
            + (f"; also {listed(names[1:])}" if len(names) > 1 else ""),
            evidence=(RMS,), iterations=tuple(int(one) for one in at[:20]),
            sure="a count over recorded iterations", unless="the loss does not suffer there: see its curve",
            remedy="Lower β₂ (0.95 to 0.99), or divide the step by max(1, RMS) as StableAdamW does; clipping by norm "
            "helps less, since the other parameters pay.",
            code="torch.optim.AdamW(parameters, lr, betas=(0.9, 0.95))",
        )  # fmt: skip


RULES.register("stale-second-moment")(StaleSecondMoment())
