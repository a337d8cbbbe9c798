"""A training whose model can read the input that it is to predict: exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import table_of
from inspector.records import Finding, counted

READS, AT, OWN = "training:asked/reads_ahead", "training:asked/reads_ahead_step", "training:asked/own"


class NextInputRead:
    """Reads whether outputs change when later inputs are replaced, of a training that asks for the next input and whose
    loss is far lower than that of a text. The watcher asks the model only then.

    Counter-example: none, where the targets are the next inputs; a model that reads them has nothing to predict.
    """

    id = "IN136"
    untried = "what the model reads before it predicts is up to its code"
    title = "The next input is read, not predicted"
    summary = "The loss is near zero, and outputs depend on the inputs that they are to predict."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("change", 1e-3, "Of the largest output; rounding of sums in another order moves 1e-6.", within=PART),
    )
    reference = "huggingface/transformers#48745: loss near zero on random tokens, by a mask that was lost"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        table, steps, own = (table_of(run, name) for name in (READS, AT, OWN))
        if table is None or steps is None:
            return
        values = table.values[:, 0].astype(np.float64)
        known = np.flatnonzero(np.isfinite(values))
        if not len(known) or not (values[known] > run.limit("change")).all():
            return
        at = known[-1]
        ahead = steps.values[at, 0] if at < len(steps.values) else np.nan
        far = "" if not ahead >= 1 else f", up to {counted(int(ahead), 'step')} ahead"
        told = "" if own is None else f"; the loss is {np.nanmin(own.values):.2g} nats"
        yield Finding(
            rule="next-input-read", severity="error", place="",
            message="the targets are the next inputs, and the model reads them: an output changes, by up to "
            f"{values[at]:.2g} of the largest output, when inputs after its step are replaced{far}{told}",
            evidence=(READS, *((OWN,) if own is not None else ())), iterations=(int(table.iterations[at]),),
            sure="exact: the model itself was called again in evaluation mode, with later inputs of other sequences",
            unless="the model predicts something else than its targets say",
            remedy="Mask what comes later: a triangular mask that begins above the diagonal, a recurrence in one "
            "direction, a convolution that is padded on the left only; then train again: this loss says nothing.",
            code="mask = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)  # 1, not 2: True is what is not seen",
        )  # fmt: skip


RULES.register("next-input-read")(NextInputRead())
