"""What was noted of the distributions of a run: objects, samples, log-probabilities and divergences, by their lines."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from torch import Tensor
from torch.distributions import Distribution

MOST_CALLS = 200_000
"""Objects, samples and divergences that are noted in one run: of a loop over 50,000 steps four each."""
PARTS = ("base_dist", "_mixture_distribution", "_component_distribution", "_base_dist")
"""Attributes by which torch's classes hold the distributions that they are made of."""
Key = tuple[Hashable, ...]
"""Where in the code: the calls that lead to a line."""


@dataclass(frozen=True, slots=True)
class Site:
    """A line of the model's code: the module that runs there, its class, and the variable that gets the result."""

    key: Key
    place: str
    module: str
    name: str

    def same_statement(self, other: Site) -> bool:
        """Whether two lines are one assignment: calls within each other, whose result one variable gets."""
        if not self.key or len(self.key) != len(other.key) or self.name != other.name or not self.name:
            return False
        return self.key[:-1] == other.key[:-1] and _code(self.key[-1]) == _code(other.key[-1])


def _code(frame: Hashable) -> Hashable:
    return frame[0] if isinstance(frame, tuple) else frame


@dataclass(slots=True, eq=False)
class Seen:
    """One distribution that was made or used, with what was drawn from it and which values were looked up in it."""

    site: Site
    distribution: Distribution
    samples: list[Tensor] = field(default_factory=list)
    log_probs: list[Tensor] = field(default_factory=list)
    inner: bool = False
    """It is a part of another one: the Normal in an Independent."""


@dataclass(frozen=True, slots=True, eq=False)
class Divergence:
    """KL(first ‖ second) as `torch.distributions.kl_divergence` gave it."""

    site: Site
    first: Seen
    second: Seen
    value: Tensor


@dataclass(slots=True)
class DistributionCalls:
    """All of a run, in order; a finding of the trace while the run lasts."""

    seen: dict[int, Seen] = field(default_factory=dict)
    """By the id of the object, which is kept alive here."""
    divergences: list[Divergence] = field(default_factory=list)
    count: int = 0
    lines: set[Hashable] = field(default_factory=set)
    """(code, instruction) of the model's own code at which a distribution draws: that noise is the distribution's."""

    @property
    def full(self) -> bool:
        """Whether more calls are not noted."""
        return self.count >= MOST_CALLS

    def mark_parts(self) -> None:
        """Mark the distributions that others are made of: the Normal in an Independent."""
        for seen in list(self.seen.values()):
            for name in PARTS:
                inner = self.seen.get(id(vars(seen.distribution).get(name)))
                if inner is not None and inner is not seen:
                    inner.inner = True
