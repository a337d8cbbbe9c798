"""The loss depends on early inputs, and the gradient vanishes or explodes before it reaches them.

A small gradient at a long lag alone is not an error: the loss may not depend on inputs so long ago. Replacing inputs
tells the two apart, so this rule applies only where the quantity `influence` was computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy.typing as npt

from inspector.analysis import gradient_cuts
from inspector.analysis.influence import Past, influence_verdict
from inspector.diagnosis.rule import RULES, Run, Scope, Trust, scalar
from inspector.records import Finding

INFLUENCE, GRADIENT = "input:influence/loss", "input:gradient/lag"
REMEDIES = {
    "vanished": "Gates that stay open (a forget bias of 1 or more), skip connections through time, an orthogonal "
    "recurrent matrix, or attention carry a gradient that far; a higher step size does not.",
    "exploded": "Clip the gradient by its norm (Pascanu, Mikolov & Bengio 2013), or begin with recurrent weights whose "
    "largest singular value is near 1.",
}

CHOSEN = (
    "Nothing is lost from step to step here: the weights of attention have saturated, and pass no gradient to keys "
    "that they leave out. Where training stands still, normalise queries and keys, or take a smaller learning rate."
)
SURE = "inputs were changed and the loss run anew, with an error by lag; the gradient is exact, of this sequence alone"
NEARER = "the model has learned what these inputs tell already, or the loss of another sequence does not depend on them"
CODES = {
    ("vanished", False): "nn.init.orthogonal_(rnn.weight_hh_l0)",
    ("vanished", True): "q, k = F.rms_norm(q, q.shape[-1:]), F.rms_norm(k, k.shape[-1:])",
    ("exploded", False): "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    ("exploded", True): "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
}
"""By the verdict, and whether weights of attention have chosen."""


class GradientReach:
    """Reads influence and gradient by lag, and the verdict that the panel Influence shows.

    In a model with attention and without a recurrence a gradient that vanishes is information: no product over steps
    makes it small, but weights of attention that have chosen. Counter-example: heads that collapsed before they had
    learned anything, of which IN413 tells.
    """

    id = "IN201"
    title = "Gradients do not reach what the loss depends on"
    summary = "The loss depends on inputs at lags at which its gradient has vanished or exploded."
    trust: Trust = "counterfactual"
    scope: Scope = "frame"
    reads = ("influence",)
    needs = ("influence",)
    limits = ()
    reference = "Pascanu, Mikolov & Bengio 2013, arXiv 1211.5063; Hochreiter & Schmidhuber 1997"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, for the whole model."""
        if not all(name in run.channels and run.revision(name, frame) for name in (INFLUENCE, GRADIENT)):
            return
        influence, gradient = (_mean(run, name, frame) for name in (INFLUENCE, GRADIENT))
        reference = scalar(run, "input:influence/reference_lag", frame)
        reaches = (scalar(run, "input:influence/reach", frame), scalar(run, "input:gradient/reach", frame))
        if not math.isfinite(reference):
            return
        past = Past.read(lambda name: scalar(run, name, frame))
        verdict = influence_verdict(influence, gradient, int(reference), reaches, past)
        if verdict.word not in REMEDIES:
            return
        kinds = {one.kind for one in run.channels.values() if run.revision(one.name, frame)}
        chosen = verdict.word == "vanished" and "attention" in kinds and "state" not in kinds
        cut = next(iter(gradient_cuts.cuts_of(run, frame)), None) if verdict.word == "vanished" else None
        if cut is not None:
            yield Finding(
                rule="gradient-reach", severity="warning", place="input", message=f"{verdict.sentence}; {cut.said}",
                sure=SURE, unless=f"what is cut is meant to be, and {NEARER}",
                evidence=(INFLUENCE, GRADIENT), remedy=gradient_cuts.REMEDY, code=gradient_cuts.CODE,
            )  # fmt: skip
            return
        yield Finding(
            rule="gradient-reach", severity="info" if chosen else "warning", place="input", message=verdict.sentence,
            evidence=(INFLUENCE, GRADIENT), remedy=CHOSEN if chosen else REMEDIES[verdict.word],
            sure=SURE, unless="attention has learned to leave these inputs out" if chosen else NEARER,
            code=CODES[verdict.word, chosen],
        )  # fmt: skip


def _mean(run: Run, name: str, frame: int) -> npt.NDArray[Any]:
    """(lag,) the row of a table that is its mean."""
    row: npt.NDArray[Any] = run.array(name, frame)[run.channels[name].labels["statistic"].index("mean")]
    return row


RULES.register("gradient-reach")(GradientReach())
