"""Updates that are very small or very large beside the weights."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Table, listed, table_of
from inspector.records import Finding

RATIO = "parameters:update/ratio"


class StepSize:
    """Reads ‖Δw‖ / ‖w‖ of matrices, the real difference that a step makes, without the first recorded iterations.

    Counter-example: weights that began at 0 (biases, an output layer) have a large ratio at first; biases are left out
    by name, and the median over iterations is taken. The end of a schedule has small steps by design.
    """

    id = "IN404"
    title = "Steps very small or very large beside the weights"
    summary = "A step changes a parameter by less than a hundred thousandth, or more than a tenth, of its norm."
    trust: Trust = "descriptive"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("small", 1e-5, "torchmortem's range; Karpathy takes about 1e-3 for healthy."),
        Limit("large", 1e-1, "The same range."),
        Limit("iterations", 20, "Warm-up and young moments are no steady state."),
    )
    reference = "Karpathy 2022, makemore part 3 (update to data ratio)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for those too small, one for those too large."""
        table = table_of(run, RATIO)
        if table is None or len(table.values) < 2 * run.limit("iterations"):
            return
        middle = _medians(table, int(run.limit("iterations")))
        small = [name for name, one in middle.items() if 0 < one < run.limit("small")]
        large = [name for name, one in middle.items() if one > run.limit("large")]
        for names, word, remedy in (
            (small, "less", "Raise the learning rate of their group, or see why their gradient is so small."),
            (large, "more", "Lower the learning rate of their group, or begin with larger weights."),
        ):
            if names:
                limit = run.limit("small" if word == "less" else "large")
                yield Finding(
                    rule="step-size", severity="info", place=names[0] if len(names) == 1 else "",
                    message=f"a step changes {listed(names)} by {word} than {limit:g} of the norm "
                    f"({middle[names[0]]:.2g}, median over iterations)",
                    evidence=(RATIO,), sure="the real difference before and after the step",
                    unless="the schedule ends here, or the loss falls all the same", remedy=remedy,
                )  # fmt: skip


def _medians(table: Table, skipped: int) -> dict[str, float]:
    values = table.values[skipped:]
    return {
        name: float(np.nanmedian(values[:, n]))
        for n, name in enumerate(table.names)
        if "bias" not in name.rpartition(".")[2] and np.isfinite(values[:, n]).any()
    }


RULES.register("step-size")(StepSize())
