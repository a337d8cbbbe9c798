"""Targets of a training that are its inputs, further on than the next step: exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import table_of
from inspector.records import Finding, counted

AHEAD = "training:asked/ahead"


class ShiftedTargets:
    """Reads the share of targets that are the input so many steps later, of batches whose targets are ids along the
    steps of ids that the model reads.

    Of several losses (heads that say several steps ahead) the nearest counts, and where nearer inputs fit nearly as
    well nothing is said. Targets that are the input of the very step are information: an autoencoder asks for them.
    """

    id = "IN132"
    untried = "which targets belong to which step is up to the data or the loss"
    title = "Targets are shifted twice"
    summary = "A training asks for the input two or more steps ahead, and never for the next one."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("batches", 3, "The same in so many, and in all.", within=COUNT),
        Limit(
            "others", 0.9, "A share from which another shift fits as well, as in sequences of one symbol.", within=PART
        ),
    )
    reference = "huggingface/transformers: labels are shifted inside the model"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        table = table_of(run, AHEAD)
        if table is None:
            return
        shares = table.values.astype(np.float64)
        known = np.isfinite(shares).any(1)
        if run.too_few(int(known.sum()), run.limit("batches")):
            return
        shares = shares[known]
        fits = [n for n in range(shares.shape[1]) if (np.nan_to_num(shares[:, n]) == 1.0).all()]
        near = [n for n in range(shares.shape[1]) if np.nanmedian(shares[:, n]) >= run.limit("others")]
        name = table.names[fits[0]] if len(fits) == 1 and near == fits else ""
        if name.isdecimal() and name != "1":
            yield _finding(int(name), int(known.sum()), int(table.iterations[known][0]))


def _finding(shift: int, batches: int, iteration: int) -> Finding:
    batch = f"in all {batches} batches that were looked at"
    if not shift:
        message = f"{batch} the target of each step is the input of that very step: a model that reads it copies it"
        unless, remedy = "it is an autoencoder, or what it reads is masked", (
            "To predict what comes next, shift the targets by one step, once."
        )  # fmt: skip
    else:
        skipped = counted(shift - 1, "input")
        message = (
            f"{batch} the target of each step is the input {shift} steps later: {skipped} in between "
            f"{'is' if shift == 2 else 'are'} never asked for"
        )
        unless = "the model is meant to say what comes so many steps later"
        remedy = (
            "Shift once: in the data, or in the loss (a model that is given labels may shift them itself), not in both."
        )
    return Finding(
        rule="shifted-targets", severity="warning" if shift else "info", place="", message=message, evidence=(AHEAD,),
        iterations=(iteration,), sure="exact for these batches: ids and targets are compared", unless=unless,
        remedy=remedy, code="loss = F.cross_entropy(scores[:, :-1].flatten(0, 1), ids[:, 1:].flatten())",
    )  # fmt: skip


RULES.register("shifted-targets")(ShiftedTargets())
