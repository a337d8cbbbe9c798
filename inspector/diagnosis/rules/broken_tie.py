"""Two parameters of a training that were one, or began equal, and are no longer: exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.diagnosis.series import Table, table_of
from inspector.records import Finding

APART, LOSS = "parameters:pair/distance", "training:loss"
MEANT = ("one at the start", "declared to be one", "an embedding and its equal")
SAID = {
    "one at the start": "were one parameter when watching began, and are two since",
    "declared to be one": "are one parameter by the model's configuration, and are two",
}
"""Why a pair is one, as the watcher says it (engine/watch/measures/pairs.py)."""
USUAL = "began equal in every entry, and are two parameters"


class BrokenTie:
    """Reads how far each pair is apart: 0 while they are equal.

    A warning where an embedding is one of them, or they were one or are declared to be; other matrices that begin equal
    are information. Counter-example: a last layer that begins as a copy of the embedding on purpose.
    """

    id = "IN138"
    untried = "which parameters are one is in the model's code, or in how it is loaded or wrapped"
    title = "Tied weights come apart"
    summary = "Two parameters that were one, began equal or are declared to be one are different weights in training."
    trust: Trust = "exact"
    scope: Scope = "training"
    trends = True
    reads = ("series",)
    needs = ()
    limits = ()
    reference = "Press & Wolf 2017, arXiv 1608.05859; verl-project/verl#7834"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each pair."""
        table = table_of(run, APART)
        if table is None:
            return
        why = {
            str(one.get("pair")): str(one.get("why"))
            for one in run.training().get("pairs", ())
            if isinstance(one, dict)
        }
        for n, pair in enumerate(table.names):
            rows = np.flatnonzero(table.values[:, n] > 0)  # NaN is not
            if len(rows):
                yield _finding(run, table, n, rows, why.get(pair, ""))


def _finding(run: Run, table: Table, column: int, rows: np.ndarray[tuple[int], np.dtype[np.intp]], why: str) -> Finding:
    first, last = (int(table.iterations[row]) for row in (rows[0], rows[-1]))
    pair = table.names[column]
    distance = float(table.values[rows[-1], column])
    return Finding(
        rule="broken-tie", severity="warning" if why in MEANT else "info", place="",
        places=tuple(pair.split(" and ")),
        message=f"{pair} {SAID.get(why, USUAL)}: at iteration {last:,} they are {distance:.2g} of their norm apart, "
        f"first seen at iteration {first:,}",
        evidence=(table.channel, *((LOSS,) if LOSS in run.channels else ())), iterations=(first,),
        sure="exact: the weights were subtracted, of large ones some rows",
        unless="one begins as a copy of the other on purpose" if why in MEANT
        else "they were drawn from the same seed, or one begins as a copy of the other on purpose",
        remedy="Tie them again after loading, wrapping, copying or moving the model, and make the optimizer after "
        "that: as it is each has half of the gradient.",
        code="model.head.weight = model.embedding.weight",
    )  # fmt: skip


RULES.register("broken-tie")(BrokenTie())
