"""Heads that spread their weight evenly, at every query."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.heads import crosses, head_tables, listed
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.records import Finding


class UniformAttention:
    """Reads the entropy of each row beside that of an even spread over the allowed keys.

    Counter-example: a model that was not trained yet, and a head that averages on purpose; so it is information.
    """

    id = "IN412"
    title = "Heads that attend evenly"
    summary = "A head gives every key that it may attend to the same weight, at every query: it averages."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("attention_statistic",)
    needs = ("attention/entropy_normalised",)
    limits = (
        Limit("entropy", 0.99, "Of the entropy of an even spread, at every query; trained heads stay below at some."),
        Limit("queries", 8, "Queries with two keys or more that have to be seen."),
    )
    reference = "Zhai et al. 2023, arXiv 2303.06296; rank collapse: Dong, Cordonnier & Loukas 2021, arXiv 2103.03404"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each attention that has such a head."""
        for table in head_tables(run, frame, "attention/entropy_normalised"):
            seen = np.isfinite(table.values).sum(axis=1).max(initial=0)
            if run.too_few(int(seen), run.limit("queries")):
                continue
            least = np.where(np.isfinite(table.values), table.values, np.inf).min(axis=1)
            even = np.flatnonzero(table.known(int(run.limit("queries"))) & (least >= run.limit("entropy")))
            if len(even) and not (len(even) == len(least) and crosses(run, table.channel.place)):  # IN416 says it
                yield Finding(
                    rule="uniform-attention", severity="info", place=table.channel.place,
                    message=f"even attention at every query in {listed(even)} of {len(least)}: the entropy is at least "
                    f"{least[even].min():.3f} of that of an even spread",
                    evidence=(table.channel.name,), sure="exact for the sequence that is shown, one alone",
                    unless="the model is not trained yet, or the head averages on purpose",
                    remedy="After training: look at the scale of queries and keys, at position encodings, and "
                    "whether their weights get a gradient (queries and keys that both begin at 0 never do: draw them "
                    "at random).",
                    code="nn.init.xavier_uniform_(query.weight); nn.init.xavier_uniform_(key.weight)",
                )  # fmt: skip


RULES.register("uniform-attention")(UniformAttention())
