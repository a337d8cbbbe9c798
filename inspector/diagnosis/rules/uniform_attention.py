"""Heads that spread their weight evenly, at every query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.diagnosis.heads import crosses, head_tables, listed
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.records import Finding

NAMED = 6
"""Layers that are named; of more, their number."""


@dataclass(frozen=True, slots=True)
class Even:
    """The even heads of one attention: its place and channel, their numbers, of how many, and the least entropy."""

    place: str
    channel: str
    heads: npt.NDArray[Any]
    count: int
    least: float

    @property
    def said(self) -> str:
        """ "head 1 of 4"."""
        return f"{listed(self.heads)} of {self.count}"


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
        """At most one, with the layers that have such a head."""
        found = list(self._even(run, frame))
        if found:
            yield Finding(
                rule="uniform-attention", severity="info", place=found[0].place if len(found) == 1 else "",
                places=tuple(one.place for one in found), message=_message(found),
                evidence=tuple(one.channel for one in found),
                sure="exact for the sequence that is shown, one alone",
                unless="the model is not trained yet, or the head averages on purpose",
                remedy="After training: look at the scale of queries and keys, at position encodings, and "
                "whether their weights get a gradient (queries and keys that both begin at 0 never do: draw them "
                "at random).",
                code="nn.init.xavier_uniform_(query.weight); nn.init.xavier_uniform_(key.weight)",
            )  # fmt: skip

    def _even(self, run: Run, frame: int) -> Iterable[Even]:
        for table in head_tables(run, frame, "attention/entropy_normalised"):
            seen = np.isfinite(table.values).sum(axis=1).max(initial=0)
            if run.too_few(int(seen), run.limit("queries")):
                continue
            least = np.where(np.isfinite(table.values), table.values, np.inf).min(axis=1)
            even = np.flatnonzero(table.known(int(run.limit("queries"))) & (least >= run.limit("entropy")))
            if len(even) and not (len(even) == len(least) and crosses(run, table.channel.place)):  # IN416 says it
                channel = table.channel
                yield Even(channel.place, channel.name, even, len(least), float(least[even].min()))


def _message(found: Sequence[Even]) -> str:
    least = min(one.least for one in found)
    entropy = f"the entropy is at least {least:.3f} of that of an even spread"
    if len(found) == 1:
        return f"even attention at every query in {found[0].said}: {entropy}"
    named = ", ".join(f"{one.place} ({one.said})" for one in found[:NAMED])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"even attention at every query in {len(found)} layers: {named}{more}; {entropy}"


RULES.register("uniform-attention")(UniformAttention())
