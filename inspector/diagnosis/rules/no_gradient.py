"""A parameter that the optimizer has and the loss does not reach: exact, no threshold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import listed, table_of, the_only
from inspector.records import Finding

Hits = npt.NDArray[np.bool_]
NORMS = "parameters:gradient/norm"


class NoGradient:
    """Reads gradient norms by parameter. NaN stands for no gradient at all, 0 for one that is zero everywhere.

    Counter-example: a part that only some batches use (an expert, a rare branch) in a run that recorded none of them.
    """

    id = "IN111"
    title = "Parameters without a gradient"
    summary = "The loss does not reach a parameter in any recorded iteration."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (Limit("iterations", 10, "Fewer may be a beginning, or batches that do not use the part."),)
    reference = "TrainCheck, arXiv 2506.14813: parameters that a step leaves as they are"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for those without any, one for those whose gradient is zero."""
        table = table_of(run, NORMS)
        if table is None or run.too_few(len(table.values), run.limit("iterations")):
            return
        none: Hits = np.all(np.isnan(table.values), axis=0)
        zero: Hits = ~none & np.all(np.isnan(table.values) | (table.values == 0), axis=0)
        if none.all():
            return  # gradients were not recorded
        frozen = set(run.training().get("frozen", ()))
        for which, what in ((none, "no gradient"), (zero, "a gradient of exactly 0")):
            names = [name for name, hit in zip(table.names, which.tolist(), strict=False) if hit and name not in frozen]
            if names:
                yield Finding(
                    rule="no-gradient", severity="warning", place=the_only(names), places=tuple(names),
                    message=f"{len(names)} of {len(table.names)} parameters have {what} in all {len(table.values)} "
                    f"recorded iterations: {listed(names)}",
                    evidence=(NORMS,), sure="exact for the recorded iterations",
                    unless="the part is used only in batches that were not recorded, or is meant to stay as it is",
                    remedy="Look for a detach(), a torch.no_grad(), .data, an output that the loss does not read, or a "
                    "ReLU that is always 0 before it; what is meant to stay gets requires_grad_(False).",
                )  # fmt: skip


RULES.register("no-gradient")(NoGradient())
