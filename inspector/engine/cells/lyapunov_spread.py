"""How uncertain Lyapunov exponents of a finite run are: over segments of the run, and over the bases it starts from.

The mean over a run of T steps is one draw of the mean over runs: batch means (the spread of the means over segments)
give its standard error. The basis needs steps to turn into the directions that grow; what is left of its start is the
spread between estimates from other bases. Neither sees what the other does, so their squares are added.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from inspector.engine.cells.lyapunov import Directions, kaplan_yorke

SEGMENTS, SHORTEST = 8, 16
"""Segments, and steps of one: two orthonormalisations at least, whose growth is booked together."""
SEEDS = (4, 5, 6)
"""Bases beside that of the estimate itself."""
LEADING = 8
"""Exponents of each: λ₁, and those that the Kaplan–Yorke dimension of a state near λ₁ = 0 depends on."""
STATISTICS = ("segments", "bases", "standard error")


class Spread:
    """What a run of `length` steps after the warm-up says of the uncertainty of `count` exponents of `size`."""

    def __init__(self, size: int, count: int, length: int) -> None:
        self.size, self.count, self.length = size, count, length
        self.segments = min(SEGMENTS, length // SHORTEST)
        self.sums = torch.zeros(max(1, self.segments), count, dtype=torch.float64)
        leading = min(LEADING, count)
        self.others = [Directions(size, leading, seed=seed) for seed in SEEDS]
        self.totals = torch.zeros(len(SEEDS), leading, dtype=torch.float64)

    def add(self, first: int, logs: Tensor, others: Sequence[Tensor]) -> None:
        """Steps from `first` on after the warm-up: the growth that was booked at each, (n, count), and that of the
        other bases."""
        for row, one in enumerate(others):
            self.totals[row] += one.sum(0)
        if self.segments > 1:
            which = (torch.arange(first, first + len(logs)) * self.segments // self.length).clamp(max=self.segments - 1)
            self.sums.index_add_(0, which, logs)

    def errors(self, estimate: Tensor) -> Tensor:
        """(3, count): rows of STATISTICS of the exponents in descending order; NaN where nothing is known."""
        order = estimate.argsort(descending=True)
        estimate = estimate[order]
        found = torch.full((3, self.count), torch.nan, dtype=torch.float64)
        if self.segments > 1:
            edges = torch.arange(self.segments + 1) * self.length
            steps = (-(-edges[1:] // self.segments) - -(-edges[:-1] // self.segments)).double()
            means = self.sums / steps[:, None]
            found[0] = (means.std(0) / self.segments**0.5)[order]
        leading = self.totals.shape[1]
        others = (self.totals / self.length).sort(1, descending=True).values
        every = torch.cat((estimate[None, :leading], others))
        found[1, :leading] = every.std(0)
        gone = torch.isneginf(estimate)
        found[0] = torch.where(gone, 0.0, found[0])
        found[1] = torch.where(gone, 0.0, found[1])
        known = found[:2].nan_to_num(0.0).square().sum(0).sqrt()
        found[2] = known.masked_fill(found[:2].isnan().all(0), torch.nan)
        return found

    def dimensions(self, estimate: Tensor, errors: Tensor, complete: bool) -> tuple[float, float]:
        """(least, largest) Kaplan–Yorke dimension within two standard errors and of the other bases; NaN if unknown."""
        error = 2 * errors.nan_to_num(0.0)
        others = [row.sort(descending=True).values for row in self.totals / self.length]
        whole = complete and len(others[0]) == self.count
        moved = (estimate, estimate - error, estimate + error)
        found = [kaplan_yorke(one.sort(descending=True).values, complete) for one in moved]
        found += [kaplan_yorke(one, whole) for one in others]
        known = [one for one in found if one == one]
        return (min(known), max(known)) if len(known) == len(found) else (torch.nan, torch.nan)
