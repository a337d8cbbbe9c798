"""A loss of classes that is given what a softmax or a sigmoid has made already, or no logarithms: exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.before_training.given import SAID
from inspector.diagnosis.rule import COUNT, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import table_of
from inspector.records import Finding

GIVEN, LOSS = "training:asked/given", "training:loss"
TESTED = "model:structure/loss_input"

_TWICE = "Give the loss the scores before it (logits); apply softmax where probabilities are read, outside of the loss."
REMEDIES = {
    1: (_TWICE, "return self.head(states)  # without softmax: cross_entropy has its own"),
    2: (
        "Give the loss the scores before the sigmoid; for classes that exclude each other only the softmax of the loss "
        "is needed.", "return self.head(states)  # without sigmoid: cross_entropy has a softmax of its own",
    ),
    3: (
        "Give it the scores as they are, or use binary_cross_entropy, which takes probabilities.",
        "loss = F.binary_cross_entropy_with_logits(scores, targets)  # scores without sigmoid",
    ),
    4: (
        "Give it log-probabilities, or take cross_entropy, which makes them of scores.",
        "loss = F.cross_entropy(scores, targets)  # or nll_loss(scores.log_softmax(-1), targets)",
    ),
}  # fmt: skip
"""(in words, as code) by the number of what is wrong."""


class LossInput:
    """Reads by which operation of autograd's graph the scores were made that a loss of torch took, or in code that is
    compiled whether the model's outputs sum to 1.

    A log-softmax of log-probabilities changes nothing, and is left alone. Counter-example: a softmax that is meant to
    bound scores; one that is multiplied afterwards (by a temperature) is not counted.
    """

    id = "IN131"
    untried = "what the loss is given is in the model's code, or in your training loop"
    title = "Softmax before the loss's own"
    summary = "A loss that expects scores is given probabilities, or one that expects logarithms is given none."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("structure", "series")
    needs = ("structure/loss_input",)
    limits = (
        Limit(
            "batches", 3, "The same in so many, and in all: a rare branch is no fault of the training.", within=COUNT
        ),
    )
    reference = "torch.nn.CrossEntropyLoss: the input is expected to contain unnormalised logits"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one of the training, or of the newest run."""
        table = table_of(run, GIVEN)
        codes = np.zeros(0) if table is None else table.values[:, 0].astype(np.float64)
        known = np.isfinite(codes)
        if table is None or not known.any():
            yield from self._of_a_run(run)
        elif not run.too_few(int(known.sum()), run.limit("batches")) and len(set(codes[known].tolist())) == 1:
            evidence = (GIVEN, LOSS) if LOSS in run.channels else (GIVEN,)
            sure = (
                f"exact, in all {int(known.sum())} batches that were looked at: the operations that autograd recorded"
            )
            yield from _finding(int(codes[known][0]), evidence, sure, (int(table.iterations[known][0]),))

    def _of_a_run(self, run: Run) -> Iterable[Finding]:
        if TESTED in run.channels and run.revision(TESTED):
            values = np.ma.filled(np.ma.asarray(run.array(TESTED, run.frame_of(TESTED)), np.float64), np.nan)
            if len(values) and np.isfinite(values[0]):
                sure = "exact: the operations that autograd recorded in one call of the model and its loss"
                yield from _finding(int(values[0]), (TESTED,), sure, ())


def _finding(code: int, evidence: tuple[str, ...], sure: str, iterations: tuple[int, ...]) -> Iterable[Finding]:
    if code in REMEDIES:
        remedy, line = REMEDIES[code]
        yield Finding(
            rule="loss-input", severity="warning", place="", message=SAID[code], evidence=evidence,
            iterations=iterations, sure=sure, unless="the scores are meant to be bounded", remedy=remedy, code=line,
        )  # fmt: skip


RULES.register("loss-input")(LossInput())
