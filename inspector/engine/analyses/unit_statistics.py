"""Units that do nothing or repeat another, from moments: of one run, or pooled over many.

Moments of parts are joined exactly (Chan, Golub & LeVeque 1983), so that the values need not be in memory together.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

CONSTANT, DUPLICATE = 1e-3, 0.999
MOST_UNITS = 2048
"""Units beyond which pairs are not compared over many parts: their products would take more than 32 MB."""


@dataclass(slots=True)
class Moments:
    """Of n observations of h units: means (h,), products of deviations (h, h) (or their diagonal (h,)), max |h|,
    Σ h² over all units; all float64."""

    count: int
    mean: Tensor
    products: Tensor
    largest: Tensor
    square: Tensor

    @classmethod
    def of(cls, values: Tensor) -> Moments:
        """Of values (n, h), n ≥ 1."""
        values = values.double()
        mean = values.mean(0)
        centred = values - mean
        wide = values.shape[1] > MOST_UNITS
        products = centred.square().sum(0) if wide else centred.T @ centred
        return cls(len(values), mean, products, values.abs().amax(0), values.square().sum())

    def joined(self, other: Moments) -> Moments:
        """Of both sets of observations together."""
        count = self.count + other.count
        away = other.mean - self.mean
        weight = self.count * other.count / count
        between = away.square() if self.products.dim() == 1 else torch.outer(away, away)
        return Moments(
            count, self.mean + away * (other.count / count), self.products + other.products + weight * between,
            torch.maximum(self.largest, other.largest), self.square + other.square,
        )  # fmt: skip

    def table(self) -> Tensor:
        """(4, h): dead, constant, duplicate_of, variance, as the quantity `units` defines them; NaN where a unit's
        duplicates were not looked for."""
        diagonal = self.products if self.products.dim() == 1 else self.products.diagonal()
        variance = diagonal / self.count
        scale = (self.square / (self.count * len(self.mean))).sqrt()
        dead = self.largest == 0
        constant = (variance.sqrt() < CONSTANT * scale) & ~dead & (self.count > 1)
        return torch.stack((dead.double(), constant.double(), self._duplicates(variance, dead | constant), variance))

    def _duplicates(self, variance: Tensor, still: Tensor) -> Tensor:
        """For each unit the smallest other one that it repeats up to sign and scale, or −1. Needs three steps."""
        if self.products.dim() == 1:
            return torch.full_like(variance, torch.nan)
        none = torch.full_like(variance, -1.0)
        if self.count < 3:
            return none
        size = torch.where(variance > 0, variance, torch.ones_like(variance)).sqrt()
        alike = (self.products / self.count / torch.outer(size, size)).abs() > DUPLICATE
        alike &= ~still & ~still[:, None]
        alike = alike.tril(-1)
        first = alike.to(torch.int8).argmax(1).double()
        return torch.where(alike.any(1), first, none)


def rests_on(sequences: int, steps: int) -> str:
    """The end of a channel's method: of how much its statistics are."""
    return f"from {sequences:,} sequence{'' if sequences == 1 else 's'}, {steps:,} step{'' if steps == 1 else 's'}"
