"""A loss near zero, in a model that can read what it predicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from inspector.analysis.before_training.structure import verdicts
from inspector.analysis.before_training.verdicts import Tested
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.records import Finding

CAUSAL, SURPRISE = "model:structure/causal", "output:surprise"


class AnswerSeen:
    """Reads the mean surprise −ln p of the tokens, and whether outputs change with inputs after their step.

    Only where the model predicts its next input. Counter-example: a text that the model knows by heart has a loss near
    zero too, but its outputs then do not depend on later inputs.
    """

    id = "IN204"
    title = "The answer is read, not predicted"
    summary = "The loss is near zero, and the outputs depend on the inputs that they are to predict."
    trust: Trust = "counterfactual"
    scope: Scope = "frame"
    reads = ("structure",)
    needs = ("structure/causal", "output/probabilities")
    limits = (
        Limit("surprise", 0.1, "p = 0.9 on average; no text that is new to a model is predicted so well.", "nat"),
    )
    reference = "huggingface/transformers#48745: loss near zero on random tokens, by a mask that was lost"
    untried = "what the model reads before it predicts is up to its code, or to the targets"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        if not all(name in run.channels and run.revision(name, frame) for name in (CAUSAL, SURPRISE)):
            return
        surprise = np.ma.filled(run.array(SURPRISE, frame), np.nan)
        known = surprise[np.isfinite(surprise)]
        if not len(known) or float(known.mean()) > run.limit("surprise"):
            return
        for verdict in verdicts(cast(Tested, cast(Any, run)), frame, "causal"):
            if verdict.word == "fault" and verdict.steps:  # a fault without steps: the input is ignored altogether
                yield Finding(
                    rule="answer-seen", severity="error", place=verdict.place, steps=verdict.steps,
                    message=f"the mean surprise is {known.mean():.3g} nats, and the answer can be read: "
                    f"{verdict.sentence}",
                    evidence=(CAUSAL, SURPRISE), sure="the dependence is exact, on this sequence; that it explains "
                    "the surprise follows "
                    "from what the model predicts", unless="the sequence is one that the model knows by heart as well",
                    remedy="Mask what comes later in the module that is named (a recurrence: read in one direction; a "
                    "convolution: pad on the left only), then train again: this loss says nothing.",
                    code="scores = scores.masked_fill(torch.triu(torch.ones(t, t, dtype=torch.bool), 1), -torch.inf)",
                )  # fmt: skip


RULES.register("answer-seen")(AnswerSeen())
