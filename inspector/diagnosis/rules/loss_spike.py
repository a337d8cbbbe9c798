"""Jumps of the loss that cost something: rolling median and median absolute deviation."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.loss_trend import WINDOW, Jump, jumps_of
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Line, called, one_a_run
from inspector.records import Finding, counted


class LossSpike:
    """Reads the training loss. Nets that learn well spike too, so only a jump that lasts is a warning.

    Counter-example: a single hard batch, which is told as information.
    """

    id = "IN301"
    title = "Spikes of the loss"
    summary = "The loss jumps far above its usual spread."
    trust: Trust = "statistical"
    scope: Scope = "training"
    reads = ("series", "training")
    needs = ()
    limits = (
        Limit("distance", 10, "Median absolute deviations above the median of 50: 6 and 10 are trainspotter's."),
        Limit("recovery", 20, "Points until the median before is reached again; fewer are a bad batch.", "points"),
        Limit("share", 0.1, "A tenth of what had been gained since the beginning; below it a loss near 0 is restless."),
    )
    reference = "Chowdhery et al. 2022 (PaLM), section 5.1: spikes, and skipping their batches"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one a run, the worst jump first among its iterations."""
        for loss in one_a_run(run, "loss"):
            run.too_few(len(loss.y), WINDOW + 1)
            if jumps := jumps_of(loss.x, loss.y, run.limit("distance")):
                yield self._finding(run, loss, jumps)

    def _finding(self, run: Run, loss: Line, jumps: list[Jump]) -> Finding:
        slow = [one for one in jumps if self._lasts(run, one, loss)]
        worst = max(slow or jumps, key=lambda one: one.distance)
        left = counted(len(loss.y) - 1 - worst.index, "point")
        came = worst.recovered >= 0
        back = (
            f"{counted(worst.recovered, 'point')} later it was back" if came else f"it was not back in the {left} since"
        )
        more = f"; {len(jumps)} spikes in all" if len(jumps) > 1 else ""
        return Finding(
            rule="loss-spike", severity="warning" if slow else "info", place="",
            message=f"{called(loss, 'the loss')} jumped from {worst.before:.3g} to {worst.value:.3g} "
            f"at iteration {worst.x:g} ({_plainly(worst.distance)} median absolute deviations), and {back}{more}",
            evidence=(loss.channel,), iterations=(int(worst.x), *(int(one.x) for one in jumps if one is not worst)),
            sure="a comparison with the 50 points before", unless="another loss or other data began there",
            remedy="Open the spike: its batch, which parameter moved first. Lower the learning rate or β₂, clip by "
            "norm, leave out the batch.",
            code="torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        )  # fmt: skip

    def _lasts(self, run: Run, jump: Jump, loss: Line) -> bool:
        """Whether it took long to come back, and not for want of points, and was large beside what had been gained."""
        missing = jump.recovered if jump.recovered >= 0 else len(loss.y) - 1 - jump.index
        gained = float(np.nanmedian(loss.y[:WINDOW])) - jump.before
        return missing > run.limit("recovery") and jump.value - jump.before > run.limit("share") * gained


def _plainly(distance: float) -> str:
    """A count that is read: 14; 3e+20 of a loss that exploded."""
    return f"{distance:.0f}" if distance < 10_000 else f"{distance:.2g}"


RULES.register("loss-spike")(LossSpike())
