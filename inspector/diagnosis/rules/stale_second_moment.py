"""Adam's second moment lags behind the gradient: the root mean square of g / √v."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from inspector.analysis.loss_trend import WINDOW, Jump, jumps_of
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Floats, listed, one_a_run, table_of
from inspector.records import Finding

Hits = npt.NDArray[np.bool_]
RMS = "parameters:adam/rms"


class StaleSecondMoment:
    """Reads √mean(g² / v) by parameter, near 1 where v follows the gradient.

    Nets that learn well have such iterations too, mostly where β₂ is 0.999; so nothing is said of them alone. It is a
    warning where the loss jumped within a few iterations after one, which is what the limit was found by, by much of
    what had been gained, and where the estimate was too small in most of the iterations before: a rare batch is one
    iteration, and harms no later one. It is information where the loss jumped by less, and where the estimate is too
    small in most of all iterations. A jump counts as much as the loss is higher over the next iterations, their median:
    a batch of one sequence is hard or easy by itself, and a hard one harms none of those after it.

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
        Limit("share", 0.1, "A jump by a tenth of what had been gained, and of the loss; below it a loss is restless."),
        Limit(
            "stays",
            5,
            "Iterations from a jump on whose median counts: a hard batch is one. A judgement.",
            within=COUNT,
        ),
        Limit(
            "often",
            0.5,
            "Of the recorded iterations before the jump, or of all: a rare batch is one of them.",
            within=PART,
        ),
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
        rows: Hits = np.any(high[:, hit], axis=1)
        after_high = self._jumped(run, table.iterations[young:], rows)
        jumped = [jump.x for jump, loss in after_high if self._counts(run, jump, loss)]
        if not after_high and times[hit[0]] <= run.limit("often") * len(high):
            return
        follows = f"within {run.limit('follows'):g} iterations after"
        after = (
            f"the loss jumped {follows} several, at iteration {jumped[0]:g}"
            if jumped
            else f"the loss jumped a little {follows} several, at iteration {after_high[0][0].x:g}"
            if after_high
            else f"no jump of the loss {follows} several"
        )
        yield Finding(
            rule="stale-second-moment", severity="warning" if jumped else "info", place=names[0], places=tuple(names),
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

    def _jumped(self, run: Run, at: Floats, high: Hits) -> list[tuple[Jump, Floats]]:
        """Jumps of the loss, each with its curve, soon after most of the recorded iterations (n,) were high (n,)."""
        return [
            (jump, loss.y)
            for loss in one_a_run(run, "loss")
            for jump in jumps_of(loss.x, loss.y, run.limit("distance"))
            if self._follows(run, jump.x, at, high)
        ]

    def _counts(self, run: Run, jump: Jump, loss: Floats) -> bool:
        gained = float(np.nanmedian(loss[:WINDOW])) - jump.before
        after = float(np.nanmedian(loss[jump.index : jump.index + max(1, round(run.limit("stays")))]))
        return after - jump.before > run.limit("share") * max(gained, abs(jump.before))

    def _follows(self, run: Run, x: float, at: Floats, high: Hits) -> bool:
        before = high[(at < x) & (at >= x - run.limit("follows"))]
        return bool(before.any() and before.mean() >= run.limit("often"))


RULES.register("stale-second-moment")(StaleSecondMoment())
