"""A loss that fell and then rose for good: a test over medians of blocks."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.analysis.loss_trend import trend_of
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import line_of
from inspector.records import Finding


class Diverged:
    """Reads the training loss.

    Counter-example: a curriculum or task switch, after which a higher loss is another loss.
    """

    id = "IN302"
    title = "The loss has diverged"
    summary = "The loss rose above what it had reached, and stayed there."
    trust: Trust = "statistical"
    scope: Scope = "training"
    reads = ("series", "training")
    needs = ()
    limits = (
        Limit("p", 0.05, "Mann-Kendall over medians of blocks since the lowest: five in a hundred err."),
        Limit("share", 0.5, "Half of what had been gained is lost again; small rises are noise of the data's order."),
    )
    reference = "Mann 1945; Kendall 1975 (rank test of a trend)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        loss = line_of(run, "loss")
        trend = trend_of(loss.x, loss.y) if loss is not None else None
        if loss is None or trend is None:
            return
        gained, lost = trend.first - trend.best, trend.last - trend.best
        if trend.rises > run.limit("p") or lost <= 4 * trend.spread or lost <= run.limit("share") * max(gained, 0.0):
            return
        yield Finding(
            rule="diverged", severity="error", place="",
            message=f"the loss rose from {trend.best:.3g} around iteration {trend.lowest_at:g} to {trend.last:.3g} "
            "at the end",
            evidence=(loss.channel,), iterations=(int(trend.lowest_at),),
            sure=f"p = {trend.rises:.2g} that blocks since the lowest rise by chance; spread within a block "
            f"{trend.spread:.2g}",
            unless="the data or the task changed there",
            remedy="Lower the learning rate, warm it up, clip by norm; go back to a checkpoint before the rise.",
        )  # fmt: skip


RULES.register("diverged")(Diverged())
