"""Heads that give the first key a large part of their weight: a fact, and no illness."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.heads import head_tables, listed
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.records import Finding


class AttentionSink:
    """Reads the weight on the first key over the later half of the queries, where an even spread has little of it.

    Usual in models with a norm before each layer, and no illness (arXiv 2603.05498).
    """

    id = "IN414"
    title = "Attention sink"
    summary = "Heads give the first key a large part of their weight, whatever it holds."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("attention_statistic",)
    needs = ("attention/sink_mass",)
    limits = (
        Limit("mass", 0.3, "Gu et al. 2025."),
        Limit("queries", 32, "Queries that have to be seen; of 32, an even spread gives the first key 4 % or less."),
    )
    reference = "Xiao et al. 2024, arXiv 2309.17453; Gu et al. 2025, arXiv 2410.10781"
    untried = "it is a fact and no illness, so nothing is to be cured"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each self-attention that has such a head."""
        for table in head_tables(run, frame, "attention/sink_mass"):
            count = table.values.shape[1]
            if run.too_few(count, run.limit("queries")):
                continue
            later = table.values[:, count // 2 :]
            mass = np.where(np.isfinite(later).all(axis=1), later.mean(axis=1), -np.inf)
            sinks = np.flatnonzero(mass >= run.limit("mass"))
            if len(sinks):
                yield Finding(
                    rule="attention-sink", severity="info", place=table.channel.place,
                    message=f"the first key has up to {percent(float(mass.max()))} of the weight of {listed(sinks)} "
                    f"of {len(mass)} "
                    "over the later half of the queries",
                    evidence=(table.channel.name,), sure="exact for the sequence that is shown, one alone",
                    unless="the first token is what these queries need",
                    remedy="None is needed; keep the first keys where a cache drops old ones. Where it is unwanted, "
                    "give every softmax one more score that has no key (a learned one, or 0).",
                )  # fmt: skip


RULES.register("attention-sink")(AttentionSink())
