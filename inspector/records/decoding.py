"""Searching for an answer token by token: what is asked for, and the tree of everything that was tried."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

How = Literal["greedy", "sample", "beam"]
Fate = Literal["continued", "pruned", "finished", "unfinished", "alive"]
HOWS: tuple[How, ...] = ("greedy", "sample", "beam")
FATES: tuple[Fate, ...] = ("continued", "pruned", "finished", "unfinished", "alive")
"""What became of a token: it was followed by others, it was dropped, it ends a hypothesis because it is the end token,
or because the longest length was reached; or it is the newest of a hypothesis that goes on, while the search does. A
capture stores the position in this list."""
BEGINNING = -1
"""The parent of the tokens with which hypotheses begin."""
MOST_WIDE, MOST_LONG = 1000, 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """How an answer is searched for.

    Attributes:
        how: "greedy" takes the likeliest token at each step, "sample" draws one, "beam" keeps the best `width`
            hypotheses.
        width: hypotheses of a beam, samples that are drawn, or for "greedy" how many of each step's tokens are noted.
        longest: tokens of a hypothesis at most, the end token included.
        length_penalty: α of the score log p / ((5 + tokens) / 6)^α; 0 is the log probability itself.
        temperature, top_k, top_p: of "sample": logits are divided by the temperature, then the k likeliest tokens
            remain (0: all), then of these the fewest whose probabilities sum to p.
        shown: how many of the best hypotheses are run with every quantity, each as a frame.
    """

    how: How = "greedy"
    width: int = 4
    longest: int = 50
    length_penalty: float = 0.0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    shown: int = 1

    def __post_init__(self) -> None:
        checks = {
            f"how is {self.how!r}; expected {', '.join(HOWS)}": self.how in HOWS,
            f"width is {self.width}; expected 1 to {MOST_WIDE}": 1 <= self.width <= MOST_WIDE,
            f"longest is {self.longest}; expected 1 to {MOST_LONG}": 1 <= self.longest <= MOST_LONG,
            f"length_penalty is {self.length_penalty}; expected a finite number": math.isfinite(self.length_penalty),
            f"temperature is {self.temperature}; expected a number above 0": 0 < self.temperature < math.inf,
            f"top_k is {self.top_k}; expected 0 (all) or more": self.top_k >= 0,
            f"top_p is {self.top_p}; expected more than 0 and at most 1": 0 < self.top_p <= 1,
            f"shown is {self.shown}; expected 0 or more": self.shown >= 0,
        }
        for said, holds in checks.items():
            if not holds:
                raise ValueError(f"Decoding: {said}.")
        if self.how != "sample" and (self.temperature, self.top_k, self.top_p) != (1.0, 0, 1.0):
            raise ValueError("Decoding: temperature, top_k and top_p are of how='sample'; the others draw nothing.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedToken:
    """One token of the tree, with the hypothesis that ends with it.

    Attributes:
        token, text: its id and its label.
        parent: position of the token before it in the tree, BEGINNING for the first one.
        log_probability: ln p(token | what stands before it) by the model, in nats, whatever was drawn from.
        total: the sum of these from the beginning, in nats.
        score: `total` by the length penalty, by which hypotheses are ranked.
        fate: what became of it.
        times: how many samples went through it; 1 where nothing was drawn.
    """

    token: int
    parent: int
    log_probability: float
    total: float
    score: float
    fate: Fate
    text: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedTree:
    """All hypotheses of a search as one tree, parents before their children."""

    decode: Decode
    tokens: tuple[DecodedToken, ...] = ()

    def path(self, end: int) -> tuple[int, ...]:
        """Positions in the tree of the tokens of a hypothesis, the first one first."""
        found = []
        while end != BEGINNING:
            found.append(end)
            end = self.tokens[end].parent
        return tuple(reversed(found))

    @property
    def depths(self) -> list[int]:
        """How many tokens stand from the beginning to each token, itself included."""
        found: list[int] = []
        for one in self.tokens:
            found.append(1 if one.parent == BEGINNING else found[one.parent] + 1)
        return found

    def ids(self, end: int) -> tuple[int, ...]:
        """The token ids of a hypothesis."""
        return tuple(self.tokens[position].token for position in self.path(end))

    def said(self, end: int) -> str:
        """A hypothesis as text."""
        return joined([self.tokens[position].text for position in self.path(end)])

    def children(self, parent: int) -> Iterator[int]:
        """The tokens that follow one, in the order in which they were noted."""
        return (position for position, one in enumerate(self.tokens) if one.parent == parent)

    @property
    def goes_on(self) -> bool:
        """Whether hypotheses are alive: the search has not ended, or was stopped."""
        return any(one.fate == "alive" for one in self.tokens)

    @property
    def ranked(self) -> tuple[int, ...]:
        """Where hypotheses end: those that the end token ended first, those that go on last, each kind with the best
        score first.

        Equal scores: the one that was found first.
        """
        order: tuple[Fate, ...] = ("finished", "unfinished", "alive")
        ends = [position for position, one in enumerate(self.tokens) if one.fate in order]
        return tuple(sorted(ends, key=lambda p: (order.index(self.tokens[p].fate), -self.tokens[p].score, p)))


def joined(texts: Sequence[str]) -> str:
    """Tokens as text: set apart where they are words without spaces of their own.

    Counter-example: pieces of words of which none begins with a space ("##ing") are set apart, too.
    """
    apart = any(len(text) > 1 for text in texts) and not any(text.startswith(" ") for text in texts)
    return (" " if apart else "").join(texts)


def score_of(total: float, length: int, penalty: float) -> float:
    """ln p / ((5 + tokens) / 6)^α (Wu et al. 2016, without their coverage term)."""
    return total / penalty_of(length, penalty)


def penalty_of(length: int, penalty: float) -> float:
    """((5 + tokens) / 6)^α: above 1 for long hypotheses where α > 0, so that their negative sums weigh less."""
    return float(((5 + length) / 6) ** penalty)
