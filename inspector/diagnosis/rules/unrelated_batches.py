"""A state that the loop hands on to sequences that do not go on where its own ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Floats, table_of
from inspector.records import Finding

ROWS, FOLLOWS, OTHERS, WITHIN = (f"training:carried/{word}" for word in ("rows", "follows", "others", "within"))
TINY = 1e-3


@dataclass(frozen=True, slots=True)
class Compared:
    """Iterations (n,) with scores at each lag (n, l): of rows after what their state has read, and of steps so far
    apart inside sequences, both beyond the score of exchanged rows."""

    iterations: Floats
    follows: Floats
    within: Floats


class UnrelatedBatches:
    """Reads how well what a row begins with follows what the row ended with whose state it was given: in a text that
    goes on from batch to batch as well as neighbouring steps do, in batches that were shuffled no better than
    exchanged rows.

    Data whose neighbouring steps tell nothing of each other can go on unseen: of them nothing is said. Counter-example:
    sequences of one user or one recording, where the state is meant to carry what was far before, over a gap.
    """

    id = "IN210"
    untried = "which batches follow each other, and what state they begin with, is in your training loop"
    title = "A state is handed on to unrelated sequences"
    summary = "Sequences begin with the state that others left, and do not go on where those ended."
    trust: Trust = "counterfactual"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("comparisons", 8, "Pairs of batches; fewer have no spread to be judged by.", within=COUNT),
        Limit("errors", 5.0, "Standard errors by which rows follow worse than neighbours do; judged once, so strict."),
        Limit("gap", 3.0, "Standard errors, at lags above 1: rows that go on after a gap are to be seen too."),
        Limit(
            "share",
            0.25,
            "Of what neighbours have beyond exchanged rows: rows that go on have nearly all of it.",
            within=PART,
        ),
        Limit(
            "rows", 0.5, "Share of the rows that were given a state; below it most sequences begin anew.", within=PART
        ),
    )
    reference = "pytorch/examples word_language_model: batchify, by which each row goes on in the next batch"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        rows, *tables = (table_of(run, name) for name in (ROWS, FOLLOWS, OTHERS, WITHIN))
        if rows is None or any(one is None or not one.values.size for one in tables):
            return
        n = min(len(one.values) for one in (rows, *tables) if one is not None)  # a table ends with its last number
        follows, others, within = (one.values[:n].astype(np.float64) for one in tables if one is not None)
        known = np.isfinite(follows[:, 0]) & (rows.values[:n, 0] >= run.limit("rows"))
        known &= np.abs(within - others)[:, 0] > TINY  # the first batches have nothing to be judged by
        if not known.any() or run.too_few(int(known.sum()), run.limit("comparisons")):
            return
        found = Compared(rows.iterations[:n][known], (follows - others)[known], (within - others)[known])
        share = run.limit("share")
        near = _unrelated(found, 0, run.limit("errors"), share)
        if not near or any(_may_go_on(found, lag, run.limit("gap"), share) for lag in range(1, found.within.shape[1])):
            return
        yield self._finding(found, float(rows.values[:n][known, 0].mean()))

    def _finding(self, found: Compared, rows: float) -> Finding:
        follows, within = (f"{one[:, 0].mean():.3g} ± {_error(one[:, 0]):.2g}" for one in (found.follows, found.within))
        return Finding(
            rule="unrelated-batches", severity="warning", place="",
            message=f"{percent(rows)} of the sequences begin with the state that the batch before left, and do not go "
            f"on where that ended: what they begin with follows it by {follows} better than exchanged rows do, and "
            f"neighbouring steps follow each other by {within}",
            evidence=(FOLLOWS, OTHERS, WITHIN, ROWS), iterations=tuple(int(one) for one in found.iterations[:3]),
            sure=f"whose state it is, is read off its numbers; scores of {len(found.follows)} pairs of batches, each "
            "with its spread",
            unless="sequences go on after a gap, and the state is to carry what was long before (one user, one "
            "recording)",
            remedy="Begin every sequence with a fresh state (one that the model keeps in an attribute: at the "
            "beginning of its forward); or let each row of a batch go on in the next one: no shuffling, a text cut "
            "into as many streams as a batch has rows.",
            code="output, state = model(inputs)  # no state of another sequence",
        )  # fmt: skip


def _told(found: Compared, lag: int, errors: float) -> bool:
    """Whether steps so far apart tell of each other."""
    within = found.within[:, lag]
    return bool(np.isfinite(within).all() and within.mean() > errors * _error(within))


def _unrelated(found: Compared, lag: int, errors: float, share: float) -> bool:
    """Whether rows follow what their state has read far worse than steps so far apart inside sequences do."""
    follows, missing = found.follows[:, lag], (found.within - found.follows)[:, lag]
    far = missing.mean() > errors * _error(missing) and follows.mean() < share * found.within[:, lag].mean()
    return _told(found, lag, errors) and bool(far)


def _may_go_on(found: Compared, lag: int, errors: float, share: float) -> bool:
    """Whether rows may go on after a gap: steps so far apart tell of each other, or seem to, and rows are not seen to
    follow worse."""
    counts = _told(found, lag, errors) or found.within[:, lag].mean() > share * found.within[:, 0].mean()
    return counts and not _unrelated(found, lag, errors, share)


def _error(values: Floats) -> float:
    """The standard error of a mean; 0 is none."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")


RULES.register("unrelated-batches")(UnrelatedBatches())
