"""Adam's second moment lags behind the gradient: the root mean square of g / √v."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.loss_trend import jumps_of
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Floats, listed, one_a_run, table_of
from inspector.records import Finding

RMS = "parameters:adam/rms"


class StaleSecondMoment:
    """Reads √mean(g² / v) by parameter, near 1 where v follows the gradient.

    Nets that learn well have such iterations too, mostly where β₂ is 0.999; it is a warning only where the loss jumped
    within a few iterations after one, which is what the limit was found by.

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
        Limit("follows", 8, "Wortsman et al. 2023: loss spikes follow 1 to 8 iterations after.", "iterations"),
        Limit("distance", 6, "Median absolute deviations that make a jump of the loss: trainspotter's."),
    )
    reference = "Wortsman et al. 2023, arXiv 2304.13013, section 3.4"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, with the parameters most often concerned."""
        table = table_of(run, RMS)
        if table is None:
            return
        young = int(run.limit("young"))
        if run.too_few(len(table.values), young + run.limit("times")):
            return
        high = table.values[young:] > run.limit("rms")
        times = high.sum(axis=0)
        hit = [int(n) for n in np.argsort(-times, kind="stable") if times[n] >= run.limit("times")]
        if not hit:
            return
        names = [table.names[n] for n in hit]
        at = table.iterations[young:][high[:, hit[0]]]
        jumped = self._jumped(run, table.iterations[young:][high[:, hit].any(axis=1)])
        follows = f"within {run.limit('follows'):g} iterations after"
        after = (
            f"the loss jumped {follows} one, at iteration {jumped[0]:g}" if jumped else f"no jump of the loss {follows}"
        )
        yield Finding(
            rule="stale-second-moment", severity="warning" if jumped else "info", place=names[0],
            message=f"gradients are more than {run.limit('rms'):g} times Adam's estimate in {int(times[hit[0]])} of "
            f"{len(high)} recorded iterations; {after}"
            + (f"; also {listed(names[1:])}" if len(names) > 1 else ""),
            evidence=(RMS,), iterations=tuple(int(one) for one in at[:20]),
            sure="a count over recorded iterations",
            unless="the loss does not suffer there, or jumped for another reason",
            remedy="Lower β₂ (0.95 to 0.99), or divide the step by max(1, RMS) as StableAdamW does; clipping by norm "
            "helps less, since the other parameters pay.",
            code="torch.optim.AdamW(parameters, lr, betas=(0.9, 0.95))",
        )  # fmt: skip

    def _jumped(self, run: Run, at: Floats) -> list[float]:
        """Iterations at which the loss jumped a few iterations after one of these."""
        jumps = [one.x for loss in one_a_run(run, "loss") for one in jumps_of(loss.x, loss.y, run.limit("distance"))]
        return [x for x in jumps if ((at < x) & (x <= at + run.limit("follows"))).any()]


RULES.register("stale-second-moment")(StaleSecondMoment())
