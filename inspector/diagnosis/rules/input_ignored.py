"""A model whose loss is the same with the targets of other sequences: its input does not count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from inspector.analysis.before_training.trial import trials
from inspector.analysis.before_training.verdicts import Tested
from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust, scalar
from inspector.diagnosis.series import Floats, Table, table_of
from inspector.records import Finding

OWN, OTHERS, OUTPUTS, DIFFER = (f"training:asked/{word}" for word in ("own", "others", "outputs", "differ"))

TESTED = "model:trial/input"
SAME = (
    "Look for a mask the wrong way round, an input that is overwritten or multiplied by 0, units that are dead or "
    "saturated, and a read-out of a step that saw nothing (padding, an initial state).",
    "assert not torch.allclose(model(x[:1]), model(x[1:2]))",
)
EQUAL = (
    "Look at some inputs beside their targets as the loss gets them: shuffled apart, sorted differently, an "
    "augmentation or a file read twice. If they belong together, see whether one batch can be learned.",
    "for x, y in zip(inputs[:5], targets[:5]): print(x, y)",
)


@dataclass(frozen=True, slots=True)
class Late:
    """What was seen in the second half of a training: losses with own targets, and how much larger they are with those
    of other sequences (n,); the middle of how far outputs are apart; the first iteration."""

    own: Floats
    more: Floats
    apart: float
    iteration: int


class InputIgnored:
    """Reads the loss of each sequence's predictions with its own targets and with those of another one.

    A model that ignores its input loses the same with both. Where its outputs are the same for all sequences that is a
    fault of the wiring (or of a net that is dead): a warning. Where they differ, either the data tell nothing of the
    targets, or these belong to other inputs, or it was not learned: information, since a training cannot tell which.
    Counter-example: data whose targets nobody can tell from the input.
    """

    id = "IN211"
    untried = "what the model is given, and which targets belong to it, is up to the data or the model's code"
    title = "The input is ignored"
    summary = "The loss is the same with the targets of other sequences: what is read does not count."
    trust: Trust = "counterfactual"
    scope: Scope = "training"
    reads = ("trial", "series")
    needs = ("trial/input",)
    limits = (
        Limit(
            "looks",
            24,
            "Batches; the second half is judged, since before any training nothing depends on inputs.",
            within=COUNT,
        ),
        Limit(
            "differ",
            0.05,
            "Share of targets that differ from those of other sequences: else there is no choice.",
            within=PART,
        ),
        Limit(
            "same",
            2e-6,
            "Of the largest output: some 16 units of rounding in float32; of large means less is left.",
            within=PART,
        ),
        Limit("errors", 3.0, "Standard errors within which both losses are equal."),
        Limit(
            "share",
            0.01,
            "Of the loss, to which a difference has to be excluded: few batches show nothing.",
            within=PART,
        ),
    )
    reference = "Karpathy 2019, A recipe for training neural networks: an input-independent baseline"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, of the training, or of the newest run."""
        tables = [table_of(run, name) for name in (OWN, OTHERS, OUTPUTS, DIFFER)]
        own, others, outputs, differ = tables
        if own is None or others is None or outputs is None or differ is None:
            yield from _of_a_run(run)
            return
        if run.too_few(len(own.values), run.limit("looks")):
            return
        late = _late(own, others, outputs, differ, run.limit("differ"))
        if late is None:
            return
        error = float(late.more.std(ddof=1) / np.sqrt(len(late.more)))
        mean, whole = float(late.more.mean()), float(np.abs(late.own).mean())
        equal = abs(mean) <= run.limit("errors") * error + run.limit("same") * whole
        if late.apart <= run.limit("same") and equal:  # numbers near 100 000 may tell by their last digits
            yield _same(late)
        elif equal and late.apart > run.limit("same") and run.limit("errors") * error < run.limit("share") * whole:
            yield _equal(late, mean, error)


def _of_a_run(run: Run) -> Iterable[Finding]:
    if TESTED not in run.channels or not run.revision(TESTED):
        return
    at = run.frame_of(TESTED)
    for verdict in trials(cast(Tested, cast(Any, run)), at, "input"):
        trained = scalar(run, "trial/input/trained", at) > 0  # before any training nothing depends on the input
        if verdict.word == "fault" or (verdict.word == "fact" and trained):
            same = verdict.word == "fault"
            yield Finding(
                rule="input-ignored", severity="warning" if same else "info", place="", message=verdict.sentence,
                evidence=(TESTED,), sure="exact but for rounding, on the sequences that were given" if same
                else "a comparison over sequences, each with another one's input, with the spread over them",
                unless="the model is to say the same of every input" if same
                else "the weights are not trained yet, or the data tell nothing of the targets",
                remedy=SAME[0] if same else EQUAL[0], code=SAME[1] if same else EQUAL[1],
            )  # fmt: skip


def _late(own: Table, others: Table, outputs: Table, differ: Table, least: float) -> Late | None:
    n = min(len(one.values) for one in (own, others, outputs, differ))
    columns = [one.values[:n, 0].astype(np.float64) for one in (own, others, outputs, differ)]
    known = np.isfinite(np.stack(columns)).all(0) & (columns[3] >= least)
    known[: n // 2] = False
    if known.sum() < 2:
        return None
    first, second, apart = (one[known] for one in columns[:3])
    return Late(first, second - first, float(np.median(apart)), int(own.iterations[:n][known][0]))


def _same(late: Late) -> Finding:
    return Finding(
        rule="input-ignored", severity="warning", place="",
        message="the outputs that the loss is given are the same for all sequences of a batch (they differ by "
        f"{late.apart:.1g} of the largest), whose targets differ: nothing of the input arrives there",
        evidence=(OUTPUTS, OWN, OTHERS), iterations=(late.iteration,),
        sure=f"exact but for rounding, in {len(late.own)} batches of the second half of the training",
        unless="the model is to say the same of every input",
        remedy=SAME[0], code=SAME[1],
    )  # fmt: skip


def _equal(late: Late, mean: float, error: float) -> Finding:
    whole = float(late.own.mean())
    return Finding(
        rule="input-ignored", severity="info", place="",
        message=f"the loss is {whole:.4g} with the targets of each sequence and {mean:+.2g} ± {error:.1g} more with "
        f"those of another one ({percent(abs(mean) / abs(whole)) if whole else '0 %'}): nothing that the model says "
        "depends on what it reads in a way that helps. Either the data tell nothing of the targets, or inputs and "
        "targets do not belong together, or it was not learned",
        evidence=(OWN, OTHERS, OUTPUTS), iterations=(late.iteration,),
        sure=f"a comparison in {len(late.own)} batches of the second half, within their spread",
        unless="the data tell nothing of the targets: then no model can do better",
        remedy=EQUAL[0], code=EQUAL[1],
    )  # fmt: skip


RULES.register("input-ignored")(InputIgnored())
