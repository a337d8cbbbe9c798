"""Updates that are very small or very large beside the weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from inspector.diagnosis.causes import ALIVE, dead_modules
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Table, listed, longest, medians_of_weights, table_of, the_only, trend_along
from inspector.records import Finding

RATIO = "parameters:update/ratio"


RAISE = "Raise the learning rate of their group, or see why their gradient is so small."

TIMES = "for group in optimizer.param_groups: group['lr'] *= {}"


class StepSize:
    """Reads ‖Δw‖ / ‖w‖ of matrices, the real difference that a step makes, without the first recorded iterations.

    A rate that is far too large shows in the first step alone: it makes the weights so large that later steps are small
    beside them. It is told where the first steps of more than half of the weights say so.

    Counter-example: weights that began at 0 (biases, an output layer) have a large ratio at first; biases are left out
    by name, and the median over iterations is taken. The end of a schedule has small steps by design, and so has a
    loss that is next to 0.
    """

    id = "IN404"
    title = "Steps very small or very large beside the weights"
    summary = "A step changes a parameter by less than a hundred thousandth, or more than a tenth, of its norm."
    trust: Trust = "descriptive"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("small", 1e-5, "torchmortem's range; Karpathy takes about 1e-3 for healthy.", below="large"),
        Limit("large", 1e-1, "The same range."),
        Limit("first", 0.5, "A first step that is half of what is left after it has replaced the initial weights."),
        Limit(
            "learned",
            0.02,
            "Of the first loss: where so little is left, small steps are the end of learning.",
            within=PART,
        ),
        Limit("iterations", 20, "Warm-up and young moments are no steady state.", within=COUNT),
    )
    reference = "Karpathy 2022, makemore part 3 (update to data ratio)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for first steps that replace the weights, one for steps too small later, one for those too large."""
        table = table_of(run, RATIO)
        if table is None:
            return
        yield from self._first(run, table)
        if run.too_few(len(table.values), 2 * run.limit("iterations")):
            return
        middle = medians_of_weights(table, int(run.limit("iterations")))
        done = _learned(run, run.limit("learned"))
        small = [name for name, one in middle.items() if 0 < one < run.limit("small") and not done]
        large = [name for name, one in middle.items() if one > run.limit("large")]
        dead = list(dead_modules(run)) if small else []
        for names, word, remedy in (
            (small, "less", f"{dead[0]} is dead. {ALIVE}" if dead else RAISE),
            (large, "more", "Lower the learning rate of their group, or begin with larger weights."),
        ):
            if names:
                limit = run.limit("small" if word == "less" else "large")
                yield Finding(
                    rule="step-size", severity="info", place=the_only(names), places=tuple(names),
                    message=f"a step changes {listed(names)} by {word} than {limit:g} of the norm "
                    f"({middle[names[0]]:.2g}, median over iterations)",
                    evidence=(RATIO,), sure="the real difference before and after the step",
                    unless="the schedule ends here, or the loss falls all the same", remedy=remedy,
                    code="" if word == "less" and dead else TIMES.format(10 if word == "less" else 0.1),
                )  # fmt: skip

    def _first(self, run: Run, table: Table) -> Iterable[Finding]:
        first = medians_of_weights(replace(table, values=table.values[:1]))
        large = {name: one for name, one in first.items() if one > run.limit("first")}
        if len(first) < 3 or len(large) <= len(first) / 2 or table.iterations[0] > 1:
            return  # few weights may have begun at 0
        yield Finding(
            rule="step-size", severity="warning", place="",
            message=f"the first step replaced the initial weights: {len(large)} of {len(first)} changed by more than "
            f"{run.limit('first'):g} of their norm after it ({float(np.median(list(large.values()))):.2g} in the "
            f"middle): {listed(list(large))}",
            evidence=(RATIO,), iterations=(int(table.iterations[0]),),
            sure="the real difference before and after the step", unless="these weights began at 0",
            remedy="Lower the learning rate, by a factor of ten or more, or warm it up.",
            code=TIMES.format(0.1),
        )  # fmt: skip


def _learned(run: Run, part: float) -> bool:
    """Whether hardly anything of the loss is left. Counter-example: a loss below zero, of which no part can be said."""
    trend = trend_along(longest(run, "loss"))
    return trend is not None and 0 <= trend.last <= part * trend.first


RULES.register("step-size")(StepSize())
