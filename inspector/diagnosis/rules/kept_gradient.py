"""Gradients that no loop sets to zero, so that every step takes those of all steps before: exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import GRADIENT_NORM, table_of
from inspector.records import Finding

KEPT = "training:gradient_kept"


class KeptGradient:
    """Reads the norm of the gradients that were there when the first backward pass of a step began.

    It is 0 where they are set to zero or None, before or after the step, also where several passes are accumulated.
    Counter-example: a loop that keeps a sum of gradients on purpose, as a momentum of its own.
    """

    id = "IN128"
    untried = "when gradients are set to zero is in your training loop"
    title = "Gradients of earlier steps are kept"
    summary = "Nothing sets gradients to zero, so that the optimizer gets the sum over earlier steps."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("iterations", 10, "The first step has no earlier one; a few may be a part of the loop.", within=COUNT),
        Limit(
            "share",
            0.2,
            "Of the recorded iterations: a step after each pass, and zeros after every fourth, say.",
            within=PART,
        ),
    )
    reference = "torch.optim.Optimizer.zero_grad: backward adds to the gradients that are there"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        table = table_of(run, KEPT)
        if table is None:
            return
        norms = table.values[:, 0].astype(np.float64)
        known = np.isfinite(norms) & (table.iterations > 1)
        if run.too_few(int(known.sum()), run.limit("iterations")):
            return
        kept = known & (norms > 0)
        share = float(kept.sum() / known.sum())
        if share < run.limit("share"):
            return
        yield Finding(
            rule="kept-gradient", severity="warning", place="",
            message=f"gradients of earlier steps are still there when the passes of a step begin, in {percent(share)} "
            f"of {int(known.sum())} recorded iterations (norm {float(np.median(norms[kept])):.2g} in the middle): the "
            "optimizer gets their sum",
            evidence=(KEPT, GRADIENT_NORM), iterations=(int(table.iterations[kept][0]),),
            sure="exact for the recorded iterations: None and 0 are told from what is left of earlier steps",
            unless="the loop adds up the gradients of several steps on purpose",
            remedy="Set gradients to zero once for each step, before its first backward pass.",
            code="optimizer.zero_grad()",
        )  # fmt: skip


RULES.register("kept-gradient")(KeptGradient())
