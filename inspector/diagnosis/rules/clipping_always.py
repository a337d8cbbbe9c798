"""Clipping that is always on: the learning rate is then set by the threshold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import GRADIENT_NORM, norms_beside_clipping
from inspector.records import Finding


class ClippingAlways:
    """Reads the norm of all gradients before and after clipping.

    Counter-example: with Adam, whose step does not depend on the gradient's scale, a constant factor changes nothing;
    so it is information.
    """

    id = "IN403"
    title = "Clipping is always on"
    summary = "The gradient is scaled down in nearly every iteration."
    trust: Trust = "descriptive"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("share", 0.9, "A judgement: clipping is meant for the exception.", within=PART),
        Limit("iterations", 20, "Norms are large in the first iterations.", within=COUNT),
    )
    reference = "Pascanu, Mikolov & Bengio 2013, arXiv 1211.5063, section 3.2 (a threshold from the usual norm)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        norms = norms_beside_clipping(run)
        if norms is None:
            return
        before, after = norms[:, 0], norms[:, 1]
        known = np.isfinite(before) & np.isfinite(after) & (before > 0)
        if run.too_few(int(known.sum()), run.limit("iterations")):
            return
        ratio = after[known] / before[known]
        share = float((ratio < 0.999).mean())
        if share < run.limit("share"):
            return
        yield Finding(
            rule="clipping-always", severity="info", place="",
            message=f"clipping scales the gradient in {percent(share)} of {int(known.sum())} recorded iterations, by "
            f"{float(np.median(ratio)):.2g} in the middle",
            evidence=(GRADIENT_NORM,), sure="exact for the recorded iterations",
            unless="the optimizer is Adam and the factor hardly changes",
            remedy="Set the threshold near the 90th percentile of the norm, or lower the learning rate.",
            code="torch.nn.utils.clip_grad_norm_(model.parameters(), norms.quantile(0.9).item())",
        )  # fmt: skip


RULES.register("clipping-always")(ClippingAlways())
