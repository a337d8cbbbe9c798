"""What is said of how attention treats its scores, from the numbers that `records.scores` names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inspector.analysis.before_training.verdicts import Numbers, Readings, Verdict
from inspector.records.scores import SCORES

LEAST_WIDTH, NEAR = 4, 0.99
"""Queries of width d from which √d is told from 1/√d by more than rounding; c is √d from 0.99 of it on."""
LAYERS, USUAL = 4, 3
"""Layers of attention one above the other from which residual connections are expected: Dong, Cordonnier & Loukas 2021,
arXiv 2103.03404, show that without them rank falls doubly exponentially with depth. Counter-example: a stack of a few,
which trains without. Products between the uppermost and the lowest that are there in any case: those of weights and
values, of the values' layer, and of the layer behind the lowest."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The numbers by name; NaN where they are not known."""

    numbers: Mapping[str, float]

    @classmethod
    def read(cls, names: tuple[str, ...], values: Numbers) -> Facts:
        """From a row and the names of its columns."""
        return cls({name: float(one) for name, one in zip(names, values, strict=False)})

    def __getitem__(self, name: str) -> float:
        return self.numbers.get(name, math.nan)

    def in_maps(self, name: str, fault: str, why: str) -> str:
        """The sentence of a fault with the number of attention maps that have it; "" where none has."""
        return f"{fault} in {self[name]:g} of {self['maps']:g} attention maps: {why}" if self[name] > 0 else ""


def rectified(facts: Facts) -> str:
    """A sentence without its stop; "" where all is well."""
    return facts.in_maps(
        "rectified", "scores go through a ReLU before the softmax",
        "keys below 0 all weigh the same, as much as those at 0, and pass no gradient",
    )  # fmt: skip


def across(facts: Facts) -> str:
    """A sentence without its stop; "" where all is well."""
    return facts.in_maps(
        "across", "the softmax is over the queries and not over the keys",
        "the weights of a query do not sum to 1, and how much a key counts depends on what other steps ask",
    )  # fmt: skip


def turned(facts: Facts) -> str:
    """A sentence without its stop; "" where all is well."""
    return facts.in_maps(
        "turned again", "queries or keys are turned by the same angles twice, one after the other,",
        "the rotary embedding is applied twice, and positions count double",
    )  # fmt: skip


def scaled(facts: Facts, least: float = LEAST_WIDTH, near: float = NEAR) -> str:
    """A sentence without its stop; "" where all is well."""
    factor, width = abs(facts["factor"]), facts["width"]
    if not (width >= least and factor >= near * math.sqrt(width)):
        return ""
    root = math.sqrt(width)
    what = f"√{width:g} = {root:.3g}" if factor <= root / near else f"{factor:.3g}, more than √{width:g} = {root:.3g},"
    return (
        f"q·k is multiplied by {what} where it is usually divided by √{width:g}: scores are {factor * root:.3g} times "
        "as large as they are meant to be, and their softmax chooses one key before anything is learned"
    )


def skipless(facts: Facts, layers: float = LAYERS, usual: float = USUAL) -> str:
    """A sentence without its stop; "" where all is well."""
    count, between = facts["layers"], facts["products between"]
    if not (count >= layers and between - usual >= count - 1):
        return ""
    return (
        f"{count:g} layers of attention stand one above the other and have no way round: the shortest way from the "
        f"uppermost to the lowest goes through {between:g} products with matrices, where residual connections leave "
        f"{usual:g} however many layers there are"
    )


def scores_verdict(read: Readings, values: Numbers) -> Iterator[Verdict]:
    """One sentence for each fault of (statistic,) numbers."""
    facts, name = Facts.read(SCORES, values), read.channel("scores")
    said = [one for one in (rectified(facts), across(facts), turned(facts), scaled(facts), skipless(facts)) if one]
    for one in said:
        yield Verdict("scores", "fault", f"{one[:1].upper()}{one[1:]}.", facts["maps"], name)
    if not said:
        told = f"Scores of {facts['maps']:g} attention map{'s' * (facts['maps'] != 1)} are not bent or turned twice"
        known = math.isfinite(facts["factor"])
        told += f", and q·k is multiplied by {facts['factor']:.3g} at most." if known else "."
        yield Verdict("scores", "holds", told, facts["maps"], name)
