"""Heads that give the first key a large part of their weight: a fact, and no illness."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.heads import Layer, head_tables, in_layers, listed, the_place
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
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
        Limit("mass", 0.3, "Gu et al. 2025.", within=PART),
        Limit(
            "queries",
            32,
            "Queries that have to be seen; of 32, an even spread gives the first key 4 % or less.",
            within=COUNT,
        ),
    )
    reference = "Xiao et al. 2024, arXiv 2309.17453; Gu et al. 2025, arXiv 2410.10781"
    untried = "it is a fact and no illness, so nothing is to be cured"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, with the self-attentions that have such a head."""
        sinks = list(self._sinks(run, frame))
        if sinks:
            found = [layer for layer, _mass in sinks]
            joined = f"of {in_layers(found)}" if len(found) == 1 else f"in {in_layers(found)};"
            yield Finding(
                rule="attention-sink", severity="info", place=the_place(found),
                places=tuple(one.place for one in found),
                message=f"the first key has up to {percent(max(mass for _layer, mass in sinks))} of the weight "
                f"{joined} over the later half of the queries",
                evidence=tuple(one.channel for one in found), sure="exact for the sequence that is shown, one alone",
                unless="the first token is what these queries need",
                remedy="None is needed; keep the first keys where a cache drops old ones. Where it is unwanted, "
                "give every softmax one more score that has no key (a learned one, or 0).",
            )  # fmt: skip

    def _sinks(self, run: Run, frame: int) -> Iterable[tuple[Layer, float]]:
        """Each layer that has such heads, with the largest mean weight."""
        for table in head_tables(run, frame, "attention/sink_mass"):
            count = table.values.shape[1]
            if run.too_few(count, run.limit("queries")):
                continue
            later = table.values[:, count // 2 :]
            mass = np.where(np.isfinite(later).all(axis=1), later.mean(axis=1), -np.inf)
            sinks = np.flatnonzero(mass >= run.limit("mass"))
            if len(sinks):
                said = f"{listed(sinks)} of {len(mass)}"
                yield Layer(table.channel.place, table.channel.name, said), float(mass.max())


RULES.register("attention-sink")(AttentionSink())
