"""The tree of hypotheses while it grows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from inspector.records.decoding import BEGINNING, Decode, DecodedToken, DecodedTree, Fate, score_of

Ask = Callable[[Sequence[tuple[int, ...]]], Tensor]
"""Beginnings of answers, all of one length → (n, v) ln p of each token after each, float64, on the CPU."""


@dataclass(slots=True)
class Growth:
    """Tokens that were tried so far; each is known by its position."""

    decode: Decode
    tokens: list[DecodedToken] = field(default_factory=list)
    ids: list[tuple[int, ...]] = field(default_factory=list)
    """The hypothesis that ends with each token."""
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def add(self, parent: int, token: int, log_probability: float, fate: Fate = "pruned") -> int:
        """Note a token; the same hypothesis is noted once, and counted."""
        ids = (*self.ids_of(parent), token)
        known = self._known.get(ids)
        if known is not None:
            self.tokens[known] = replace(self.tokens[known], times=self.tokens[known].times + 1)
            return known
        total = self.total(parent) + log_probability
        score = score_of(total, len(ids), self.decode.length_penalty)
        self.tokens.append(
            DecodedToken(
                token=token, parent=parent, log_probability=log_probability, total=total, score=score, fate=fate
            )
        )
        self.ids.append(ids)
        self._known[ids] = len(self.tokens) - 1
        return len(self.tokens) - 1

    def end(self, position: int, fate: Fate) -> None:
        """Say what became of a token."""
        self.tokens[position] = replace(self.tokens[position], fate=fate)

    def end_alive(self, positions: Iterable[int], fate: Fate) -> None:
        """Say what became of those of some tokens that are alive still."""
        for position in positions:
            if position != BEGINNING and self.tokens[position].fate == "alive":
                self.end(position, fate)

    def ids_of(self, position: int) -> tuple[int, ...]:
        """The hypothesis that ends with a token; nothing for the beginning."""
        return () if position == BEGINNING else self.ids[position]

    def total(self, position: int) -> float:
        """The log probability of a hypothesis; 0 for the beginning."""
        return 0.0 if position == BEGINNING else self.tokens[position].total

    def tree(self) -> DecodedTree:
        """What was tried, as a record."""
        return DecodedTree(decode=self.decode, tokens=tuple(self.tokens))
