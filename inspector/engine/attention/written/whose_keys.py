"""Of which sequence keys are: what the graph says, or without one, what was seen of how the tensors were made."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from inspector.engine.attention.key_source import SELF, KeySource
from inspector.engine.attention.written.facts import FactTable


@dataclass(slots=True)
class WhoseKeys:
    """Of the attentions of one run. An answer is `key_source`'s SELF or CROSS, "" where the graph does not say it, and
    None where there is no graph and nothing was seen."""

    facts: FactTable
    graph: KeySource = field(default_factory=KeySource)

    def of(self, query: Tensor, key: Tensor, keys: int | None = None) -> str | None:
        """Of queries and keys; keys: how many, where these are not the last axis but one."""
        if query.grad_fn is None and key.grad_fn is None:
            return SELF if self.facts.alike(query, key) else None
        return self.graph.of(query, key, keys)

    def of_weights(self, weights: Tensor, *, windows: bool = False) -> str | None:
        """Of the queries and keys whose weights these are; windows: over windows of keys."""
        if weights.grad_fn is not None:
            return self.graph.of_weights(weights, windows=windows)
        known = self.facts.of(weights)
        return known.own or None if known is not None else None

    def of_map(self, part: Tensor, weights: Tensor, windows: bool) -> str | None:
        """The same of weights of which this part is shown; None too where there are not as many keys as queries, and
        where there is one of each, which is a step of something."""
        square = part.shape[-1] == part.shape[-2] > 1
        return self.of_weights(weights, windows=windows) if square else None

    def of_pair(self, pair: tuple[Tensor, Tensor] | None, keys: int | None = None) -> str:
        """Of queries and keys whose product the model never computes; twice the weights where it has these, before they
        are divided by their sum. "" too where nothing is known."""
        if pair is None:
            return ""
        if pair[0] is pair[1]:
            known = self.facts.of(pair[0])
            return self.graph.of_weights(pair[0]) or ("" if known is None else known.own)
        return self.of(*pair, keys) or ""
