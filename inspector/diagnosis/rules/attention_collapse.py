"""Heads that give a single key all the weight, at every query."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.heads import Layer, head_tables, in_layers, listed, the_place
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
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
        Limit(
            "entropy", 0.01, "Of the entropy of an even spread, at every query (the source has no number).", within=PART
        ),
        Limit("queries", 8, "Queries with two keys or more that have to be seen.", within=COUNT),
    )
    reference = "Zhai et al. 2023, arXiv 2303.06296 (entropy collapse)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, with the layers that have such a head."""
        single = list(self._single(run, frame))
        if single:
            found = [layer for layer, _most in single]
            yield Finding(
                rule="attention-collapse", severity="info", place=the_place(found),
                places=tuple(one.place for one in found),
                message=f"one key has nearly all the weight at every query in {in_layers(found)}"
                f"{': ' if len(found) == 1 else '; '}the entropy is at most {max(most for _layer, most in single):.2g} "
                "of that of an even spread",
                evidence=tuple(one.channel for one in found), sure="exact for the sequence that is shown, one alone",
                unless="the attention is hard by design, or the head reads a fixed position (the previous token)",
                remedy="Where the loss rises or swings with it: a smaller learning rate with warm-up, normalised "
                "queries and keys, or σReparam.",
                code="q, k = F.rms_norm(q, q.shape[-1:]), F.rms_norm(k, k.shape[-1:])",
            )  # fmt: skip

    def _single(self, run: Run, frame: int) -> Iterable[tuple[Layer, float]]:
        """Each layer that has such heads, with their largest entropy."""
        for table in head_tables(run, frame, "attention/entropy_normalised"):
            seen = np.isfinite(table.values).sum(axis=1).max(initial=0)
            if run.too_few(int(seen), run.limit("queries")):
                continue
            most = np.where(np.isfinite(table.values), table.values, -np.inf).max(axis=1)
            single = np.flatnonzero(table.known(int(run.limit("queries"))) & (most <= run.limit("entropy")))
            if len(single):
                said = f"{listed(single)} of {len(most)}"
                yield Layer(table.channel.place, table.channel.name, said), float(most[single].max())


RULES.register("attention-collapse")(AttentionCollapse())
