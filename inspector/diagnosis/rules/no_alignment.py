"""A decoder whose attention to its source tells no token from another."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.heads import crosses, head_tables
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.records import Finding


class NoAlignment:
    """Reads the entropy of cross attention beside that of an even spread: no row of any head is sharper than the limit.

    Counter-example: a model that was not trained yet, or one that has its source from a state; so it is information.
    """

    id = "IN416"
    title = "No alignment"
    summary = "No step of the answer attends to some source tokens more than to others, in any head."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("attention_statistic",)
    needs = ("attention/entropy_normalised", "attention/maps")
    limits = (
        Limit("entropy", 0.95, "Of the entropy of an even spread, at every query.", within=PART),
        Limit("queries", 4, "Steps of the answer that have to be seen.", within=COUNT),
    )
    reference = (
        "Bahdanau, Cho & Bengio 2015, arXiv 1409.0473; guided attention: Tachibana et al. 2018, arXiv 1710.08969"
    )
    untried = "it takes longer training, other data, or another loss for attention"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each cross attention."""
        for table in head_tables(run, frame, "attention/entropy_normalised"):
            if not crosses(run, table.channel.place) or run.too_few(table.values.shape[1], run.limit("queries")):
                continue
            if not np.isfinite(table.values).all() or table.values.min() < run.limit("entropy"):
                continue
            yield Finding(
                rule="no-alignment", severity="info", place=table.channel.place,
                message=f"no row of {table.values.shape[0]} × {table.values.shape[1]} tells source tokens apart: the "
                "entropy "
                f"is at least {table.values.min():.3f} of that of an even spread",
                evidence=(table.channel.name, f"{table.channel.place}:attention"),
                sure="exact for the sequence that is shown, one alone",
                unless="the model is not trained yet, or the decoder needs nothing but the mean of the source",
                remedy="Train on, with more data or a larger learning rate for attention; guided attention; check "
                "that the "
                "source is not masked or shuffled.",
            )  # fmt: skip


RULES.register("no-alignment")(NoAlignment())
