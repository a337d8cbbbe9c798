"""Heads that spread their weight evenly, at every query."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.heads import Layer, crosses, head_tables, in_layers, listed, the_place
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
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
        Limit(
            "entropy",
            0.99,
            "Of the entropy of an even spread, at every query; trained heads stay below at some.",
            within=PART,
        ),
        Limit("queries", 8, "Queries with two keys or more that have to be seen.", within=COUNT),
    )
    reference = "Zhai et al. 2023, arXiv 2303.06296; rank collapse: Dong, Cordonnier & Loukas 2021, arXiv 2103.03404"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, with the layers that have such a head."""
        even = list(self._even(run, frame))
        if even:
            found = [layer for layer, _least in even]
            yield Finding(
                rule="uniform-attention", severity="info", place=the_place(found),
                places=tuple(one.place for one in found),
                message=f"even attention at every query in {in_layers(found)}{': ' if len(found) == 1 else '; '}"
                f"the entropy is at least {min(least for _layer, least in even):.3f} of that of an even spread",
                evidence=tuple(one.channel for one in found),
                sure="exact for the sequence that is shown, one alone",
                unless="the model is not trained yet, or the head averages on purpose",
                remedy="After training: look at the scale of queries and keys, at position encodings, and "
                "whether their weights get a gradient (queries and keys that both begin at 0 never do: draw them "
                "at random).",
                code="nn.init.xavier_uniform_(query.weight); nn.init.xavier_uniform_(key.weight)",
            )  # fmt: skip

    def _even(self, run: Run, frame: int) -> Iterable[tuple[Layer, float]]:
        """Each layer that has such heads, with their least entropy."""
        for table in head_tables(run, frame, "attention/entropy_normalised"):
            seen = np.isfinite(table.values).sum(axis=1).max(initial=0)
            if run.too_few(int(seen), run.limit("queries")):
                continue
            least = np.where(np.isfinite(table.values), table.values, np.inf).min(axis=1)
            even = np.flatnonzero(table.known(int(run.limit("queries"))) & (least >= run.limit("entropy")))
            if len(even) and not (len(even) == len(least) and crosses(run, table.channel.place)):  # IN416 says it
                channel = table.channel
                said = f"{listed(even)} of {len(least)}"
                yield Layer(channel.place, channel.name, said), float(least[even].min())


RULES.register("uniform-attention")(UniformAttention())
