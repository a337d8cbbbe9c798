"""A loss that does not fall: a test over medians of blocks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.loss_trend import LEAST, Trend, fell_at_once, is_a_surrogate, is_flat, trend_of
from inspector.diagnosis.causes import cause_of, forgets_at_once
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Line, called, one_a_run
from inspector.records import Finding

REMEDY = (
    "See whether one batch can be learned, whether the gradient reaches as far back as the task needs (a probe with "
    "influence), whether the step size is near the largest that works, and whether masks and targets are what they are "
    "meant to be (`inspector preflight`)."
)

SURROGATE = "it is that of a policy gradient, as one about 0 that goes below it may be: its value says nothing"

LEARNED = "that is all that can be learned, and not a bad beginning that was unlearned"
TRAINED = "it began from a trained model, or the loss cannot be lower"


class Plateau:
    """Reads the training loss, and updates for a likely reason.

    Where it fell before the first block shows anything, which nets that learn fast do, it is information, and where it
    stays about 0, below it at times, as that of a policy gradient.
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
        Limit("share", 0.02, "Two per cent of its size: what trainspotter calls a plateau.", within=PART),
        Limit(
            "p",
            0.05,
            "A rank test over twenty blocks, or over the last ten, sees no trend: the usual level.",
            within=PART,
        ),
        Limit("ratio", 1e-6, "An update of less than a millionth of the weight a step: 1e-3 is usual (Karpathy)."),
        Limit(
            "once",
            0.2,
            "Of the first loss: a fall by more within the first block may be all there is to learn.",
            within=PART,
        ),
    )
    reference = "Mann 1945; Kendall 1975 (rank test of a trend)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one a run."""
        for loss in one_a_run(run, "loss"):
            trend = trend_of(loss.x, loss.y)
            run.too_few(int(np.isfinite(loss.y).sum()), LEAST)
            if trend is not None and is_flat(trend, run.limit("share"), run.limit("p")):
                yield self._finding(run, loss, trend)

    def _finding(self, run: Run, loss: Line, trend: Trend) -> Finding:
        cause = cause_of(run, run.limit("ratio")) or forgets_at_once(run)
        once = fell_at_once(trend, run.limit("once"))
        surrogate = is_a_surrogate(trend)
        from_ = (
            f"fell from {trend.began:.4g} to {trend.first:.4g} within the first twentieth, and stays: it is" if once
            else f"is {trend.first:.4g} at the beginning and"
        )  # fmt: skip
        return Finding(
            rule="plateau", severity="info" if (once or surrogate) and cause is None else "warning", place="",
            message=f"{called(loss, 'the loss')} {from_} {trend.last:.4g} "
            f"at the end of {len(loss.y)} recorded iterations{self._rise(run, trend)}"
            + (f"; {cause.said}" if cause is not None else ""),
            evidence=(loss.channel, *(cause.evidence if cause is not None else ())),
            sure=f"p = {trend.falls:.2g} (in the second half {trend.late:.2g}) of as much order by chance; spread "
            f"within a block {trend.spread:.2g}",
            unless=SURROGATE if surrogate else LEARNED if once else TRAINED,
            remedy=REMEDY if cause is None else cause.remedy, code="" if cause is None else cause.code,
        )  # fmt: skip

    def _rise(self, run: Run, trend: Trend) -> str:
        top = float(trend.blocks.max())
        high = top - trend.first > trend.room(run.limit("share"))
        return f"; between them it rose to {top:.4g}, as with too large a learning rate" if high else ""


RULES.register("plateau")(Plateau())
