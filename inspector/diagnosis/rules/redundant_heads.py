"""Heads of one layer that attend alike."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.heads import Layer, head_tables, in_layers, listed, the_place
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
    limits = (Limit("divergence", 0.01, "Of ln 2 = 0.69 nat, the largest there is.", "nat", within=(0.0, 0.6931)),)
    reference = "Clark et al. 2019, arXiv 1906.04341, section 6; Michel, Levy & Neubig 2019, arXiv 1905.10650"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, with the attentions in which a head repeats an earlier one."""
        alike = list(self._alike(run, frame))
        if alike:
            found = [layer for layer, _pair in alike]
            pair = min((pair for _layer, pair in alike), key=lambda one: one[2])
            at = f"{alike[[one for _layer, one in alike].index(pair)][0].place}, " if len(alike) > 1 else ""
            yield Finding(
                rule="redundant-heads", severity="info", place=the_place(found),
                places=tuple(one.place for one in found),
                message=f"the map of an earlier head again in {in_layers(found)}{': ' if not at else '; '}"
                f"{at}head {pair[0]} as head {pair[1]} (divergence {pair[2]:.2g} of at most 0.69 nat)",
                evidence=tuple(one.channel for one in found), sure="exact for the sequence that is shown, one alone",
                unless="their values differ, or the model is not trained yet",
                remedy="Give each head queries and keys of its own, drawn at random, where they share or begin "
                "with the same. Else fewer heads may do; ablate one (--edit 'PLACE:head[N]=0'), and compare.",
            )  # fmt: skip

    def _alike(self, run: Run, frame: int) -> Iterable[tuple[Layer, tuple[int, int, float]]]:
        """Each layer that has such heads, with the first of them: which, as which, and the divergence."""
        for table in head_tables(run, frame, "attention/redundancy"):
            alike = np.tril(table.values <= run.limit("divergence"), -1)  # NaN compares as false
            copies = np.flatnonzero(alike.any(axis=1))
            if len(copies):
                first = int(copies[0])
                least = float(table.values[first][alike[first]].min())
                said = f"{listed(copies)} of {len(alike)}"
                yield (
                    Layer(table.channel.place, table.channel.name, said),
                    (first, int(alike[first].argmax()), least),
                )


RULES.register("redundant-heads")(RedundantHeads())
