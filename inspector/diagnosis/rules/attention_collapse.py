"""Heads that give a single key all the weight, at every query."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.heads import head_tables, listed
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.records import Finding


class AttentionCollapse:
    """Reads the entropy of each row beside that of an even spread.

    Counter-example: heads that read the previous token, hard attention; no number separates these from a collapse in
    one frame, so it is information.
    """

    id = "IN413"
    title = "Heads with one key for each query"
    summary = "A head gives one key nearly all its weight at every query, where the softmax passes no gradient."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("attention_statistic",)
    needs = ("attention/entropy_normalised",)
    limits = (
        Limit("entropy", 0.01, "Of the entropy of an even spread, at every query (the source has no number)."),
        Limit("queries", 8, "Queries with two keys or more that have to be seen."),
    )
    reference = "Zhai et al. 2023, arXiv 2303.06296 (entropy collapse)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each attention that has such a head."""
        for table in head_tables(run, frame, "attention/entropy_normalised"):
            seen = np.isfinite(table.values).sum(axis=1).max(initial=0)
            if run.too_few(int(seen), run.limit("queries")):
                continue
            most = np.where(np.isfinite(table.values), table.values, -np.inf).max(axis=1)
            single = np.flatnonzero(table.known(int(run.limit("queries"))) & (most <= run.limit("entropy")))
            if len(single):
                yield Finding(
                    rule="attention-collapse", severity="info", place=table.channel.place,
                    message=f"one key has nearly all the weight at every query in {listed(single)} of {len(most)}: the "
                    f"entropy is at most {most[single].max():.2g} of that of an even spread",
                    evidence=(table.channel.name,), sure="exact for the sequence that is shown, one alone",
                    unless="the attention is hard by design, or the head reads a fixed position (the previous token)",
                    remedy="Where the loss rises or swings with it: a smaller learning rate with warm-up, normalised "
                    "queries and keys, or σReparam.",
                    code="q, k = F.rms_norm(q, q.shape[-1:]), F.rms_norm(k, k.shape[-1:])",
                )  # fmt: skip


RULES.register("attention-collapse")(AttentionCollapse())
