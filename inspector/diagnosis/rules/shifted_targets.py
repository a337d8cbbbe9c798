"""Targets of a training that are its inputs, further on than the next step: exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import table_of
from inspector.records import Finding, counted

AHEAD, COPIES, INPUT = (f"training:asked/{word}" for word in ("ahead", "reads_same", "ahead_input"))


class ShiftedTargets:
    """Reads the share of targets that are the input so many steps later, of batches whose targets are ids along the
    steps of ids that the model reads.

    Of several losses (heads that say several steps ahead) the nearest counts, and where nearer inputs fit nearly as
    well nothing is said. Targets that are the input of the very step are information: an autoencoder asks for them.
    They are a warning where the loss is next to 0 and the watcher saw the model copy: an output changes with the input
    of its own step, and none before it does.
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
        Limit("change", 1e-3, "Of the largest output: an output that changes so far reads its own step.", within=PART),
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
            copied = _copied(run, run.limit("change")) if name == "0" else None
            yield _finding(run, int(name), int(known.sum()), int(table.iterations[known][0]), copied)


def _copied(run: Run, least: float) -> float | None:
    """How far an output changes with the input of its own step, where the watcher asked and it does."""
    table = table_of(run, COPIES)
    values = np.zeros(0) if table is None else table.values[:, 0].astype(np.float64)
    values = values[np.isfinite(values)]
    return float(values[-1]) if len(values) and (values > least).all() else None


def _input(run: Run) -> str:
    """Which input, where the model is given several: "the input" of one."""
    table = table_of(run, INPUT)
    number = 0 if table is None else int(np.nan_to_num(table.values[-1, 0]))
    return f"the input (number {number + 1} of the model's inputs of ids)" if number else "the input"


def _finding(run: Run, shift: int, batches: int, iteration: int, copied: float | None) -> Finding:
    batch, read = f"in all {batches} batches that were looked at", _input(run)
    if copied is not None:
        message = (
            f"{batch} the target of each step is {read} of that very step, and the model copies it: its output changes "
            f"with that input (by {copied:.2g} of the largest), and none before it does"
        )
        unless, remedy = "copying is what the model is to learn", (
            "To predict what comes next, shift by one step, once: a decoder reads the answer so far, which begins with "
            "a start symbol. Then train again: this loss says nothing."
        )  # fmt: skip
    elif not shift:
        message = f"{batch} the target of each step is {read} of that very step: a model that reads it copies it"
        unless, remedy = "it is an autoencoder, or what it reads is masked", (
            "To predict what comes next, shift the targets by one step, once."
        )  # fmt: skip
    else:
        skipped = counted(shift - 1, "input")
        message = (
            f"{batch} the target of each step is {read} {shift} steps later: {skipped} in between "
            f"{'is' if shift == 2 else 'are'} never asked for"
        )
        unless = "the model is meant to say what comes so many steps later"
        remedy = (
            "Shift once: in the data, or in the loss (a model that is given labels may shift them itself), not in both."
        )
    return Finding(
        rule="shifted-targets", severity="warning" if shift or copied else "info", place="", message=message,
        evidence=(AHEAD,) if copied is None else (AHEAD, COPIES),
        iterations=(iteration,), sure="exact for these batches: ids and targets are compared", unless=unless,
        remedy=remedy, code="loss = F.cross_entropy(scores[:, :-1].flatten(0, 1), ids[:, 1:].flatten())",
    )  # fmt: skip


RULES.register("shifted-targets")(ShiftedTargets())
