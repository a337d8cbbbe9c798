"""A loss that counts steps of padding: exact, no threshold but rounding."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.diagnosis.series import table_of
from inspector.records import Finding

STEPS, GRADIENT = "training:padding/steps", "training:padding/gradient"
ROUNDING = 1e-6


class LossOnPadding:
    """Reads the gradient of the loss at the outputs of steps whose input is padding: a loss that leaves these out has
    none there.

    Counter-example: a model that has to say something at padding on purpose, as one that is to learn when to stop may.
    """

    id = "IN127"
    untried = "what the loss counts is in your training loop"
    title = "The loss counts padding"
    summary = "The loss has a gradient at outputs of steps whose input is padding."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = ()
    reference = "torch.nn.CrossEntropyLoss: ignore_index, and the mean over targets that are not ignored"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        gradient, steps = table_of(run, GRADIENT), table_of(run, STEPS)
        if gradient is None or steps is None:
            return
        shares = gradient.values[:, 0].astype(np.float64)
        known = np.isfinite(shares)
        if not known.any() or not np.nanmax(shares) > ROUNDING:
            return
        padded = float(np.nanmedian(steps.values[:, 0]))
        yield Finding(
            rule="loss-on-padding", severity="warning", place="",
            message=f"the loss counts padding: {percent(float(np.median(shares[known])))} of its gradient at the "
            f"outputs is at steps whose input is padding, which are {percent(padded)} of the steps",
            evidence=(GRADIENT, STEPS), iterations=(int(gradient.iterations[known][0]),),
            sure=f"exact, in {int((shares > ROUNDING).sum())} of {int(known.sum())} batches that were looked at, "
            "for the id that the model declares as padding",
            unless="the model is to say something at padding on purpose",
            remedy="Leave targets of padding out of the loss and of the number that it is divided by: ignore_index, or "
            "the mask of real steps.",
            code="nn.functional.cross_entropy(logits.transpose(1, 2), targets, ignore_index=PADDING)",
        )  # fmt: skip


RULES.register("loss-on-padding")(LossOnPadding())
