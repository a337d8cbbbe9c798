"""A loss that fell and then rose for good, a test over medians of blocks, or that ends above where it began."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.loss_trend import ABOVE, LEAST, Trend, ends_above, has_risen, is_a_surrogate, trend_of
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Line, called, one_a_run
from inspector.records import Finding

UNLESS = "the data or the task changed there"
SURROGATE = "it is that of a policy gradient, as one that begins at 0 and goes below it may be: its value says nothing"

LOWER = "for group in optimizer.param_groups: group['lr'] *= 0.1"


class Diverged:
    """Reads the training loss.

    Of a loss that begins at 0 and goes below, as that of a policy gradient, it is information. Counter-example: a
    curriculum or task switch, after which a higher loss is another loss.
    """

    id = "IN302"
    title = "The loss has diverged"
    summary = "The loss rose above what it had reached, or above where it began, and stayed there."
    trust: Trust = "statistical"
    scope: Scope = "training"
    trends = True
    reads = ("series", "training")
    needs = ()
    limits = (
        Limit("p", 0.05, "Mann-Kendall over medians of blocks since the lowest: five in a hundred err.", within=PART),
        Limit("share", 0.5, "Half of what had been gained is lost again; small rises are noise of the data's order."),
        Limit("above", ABOVE, "Half as much again as the first loss, of an untrained model, and beyond the spread."),
    )
    reference = "Mann 1945; Kendall 1975 (rank test of a trend)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one a run."""
        for loss in one_a_run(run, "loss"):
            trend = trend_of(loss.x, loss.y)
            run.too_few(int(np.isfinite(loss.y).sum()), LEAST)
            if trend is None:
                continue
            if has_risen(trend, run.limit("share"), run.limit("p")):
                yield self._finding(loss, trend)
            elif ends_above(trend, run.limit("above")) and not is_a_surrogate(trend):  # about 0, above says nothing
                yield self._above(loss, trend)

    def _above(self, loss: Line, trend: Trend) -> Finding:
        """It rose so early that no block shows what it had reached."""
        at = float(loss.x[np.isfinite(loss.y)][0])
        return Finding(
            rule="diverged", severity="error", place="",
            message=f"{called(loss, 'the loss')} ends at {trend.last:.3g}, above the {trend.began:.3g} at which it "
            "began",
            evidence=(loss.channel,), iterations=(int(at),),
            sure=f"the first point against the medians of the last blocks; spread within a block {trend.spread:.2g}",
            unless=UNLESS, remedy="Lower the learning rate, warm it up, or clip by norm, and begin again.", code=LOWER,
        )  # fmt: skip

    def _finding(self, loss: Line, trend: Trend) -> Finding:
        surrogate = is_a_surrogate(trend)
        return Finding(
            rule="diverged", severity="info" if surrogate else "error", place="",
            message=f"{called(loss, 'the loss')} rose from {trend.best:.3g} around iteration {int(trend.lowest_at):,} "
            f"to {trend.last:.3g} at the end",
            evidence=(loss.channel,), iterations=(int(trend.lowest_at),),
            sure=f"p = {trend.rises:.2g} that blocks since the lowest rise by chance; spread within a block "
            f"{trend.spread:.2g}",
            unless=SURROGATE if surrogate else UNLESS,
            remedy="Lower the learning rate, warm it up, clip by norm; go back to a checkpoint before the rise.",
            code=LOWER,
        )  # fmt: skip


RULES.register("diverged")(Diverged())
