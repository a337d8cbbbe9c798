"""Heads of one layer that attend alike."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.heads import head_tables, listed
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.records import Finding


class RedundantHeads:
    """Reads the Jensen–Shannon divergence of every pair of heads.

    Counter-example: heads with one map may still carry different values; and all heads of a model that was not trained
    are near an even spread. So it is information.
    """

    id = "IN415"
    title = "Heads that attend alike"
    summary = "Heads of one layer have nearly the same map."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("attention_statistic",)
    needs = ("attention/redundancy",)
    limits = (Limit("divergence", 0.01, "Of ln 2 = 0.69 nat, the largest there is.", "nat"),)
    reference = "Clark et al. 2019, arXiv 1906.04341, section 6; Michel, Levy & Neubig 2019, arXiv 1905.10650"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each attention in which a head repeats an earlier one."""
        for table in head_tables(run, frame, "attention/redundancy"):
            alike = np.tril(table.values <= run.limit("divergence"), -1)  # NaN compares as false
            copies = np.flatnonzero(alike.any(axis=1))
            if len(copies):
                first = int(copies[0])
                yield Finding(
                    rule="redundant-heads", severity="info", place=table.channel.place,
                    message=f"the map of an earlier head again in {listed(copies)} of {len(alike)}: head {first} as "
                    "head "
                    f"{int(alike[first].argmax())} (divergence {table.values[first][alike[first]].min():.2g} of at "
                    "most 0.69 nat)",
                    evidence=(table.channel.name,), sure="exact for the sequence that is shown, one alone",
                    unless="their values differ, or the model is not trained yet",
                    remedy="Give each head queries and keys of its own, drawn at random, where they share or begin "
                    "with the same. Else fewer heads may do; ablate one (--edit 'PLACE:head[N]=0'), and compare.",
                )  # fmt: skip


RULES.register("redundant-heads")(RedundantHeads())
