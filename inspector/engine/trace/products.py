"""The products that scores before a softmax are made of, pair by pair, of attention that a model computes itself.

Letters: a head, q query, k key, d component, n vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Of one call: score = scale Σ_d left_d right_d, and something added where `plus`.

    Attributes:
        left, right: (n, d) vectors.
        at_left, at_right: (a, q, k) which vectors each score is made of.
        scale: (a,).
        scores: (a, q, k) before the softmax, masks included.
        plus: whether anything is added.
    """

    left: Tensor
    right: Tensor
    at_left: Tensor
    at_right: Tensor
    scale: Tensor
    scores: Tensor
    plus: bool

    def of_pair(self, query: int, keys: Tensor) -> Tensor:
        """(a, d) the products of one query and one key of each head, (a,)."""
        heads = torch.arange(len(keys), device=keys.device)
        left, right = (at[heads, query, keys] for at in (self.at_left, self.at_right))
        return self.scale.to(self.left)[:, None] * self.left[left] * self.right[right]

    def queries_and_keys(self) -> list[tuple[Tensor, Tensor]]:
        """[((a, q, d) queries times the scale, (a, k, d) keys)]; nothing where a vector depends on both (additive).

        Of one query and one key nothing says which is which: both ways.
        """
        found = []
        for queries, rows, keys, columns in (
            (self.left, self.at_left, self.right, self.at_right),
            (self.right, self.at_right, self.left, self.at_left),
        ):
            if bool((rows == rows[:, :, :1]).all()) and bool((columns == columns[:, :1]).all()):
                found.append((self.scale.to(queries)[:, None, None] * queries[rows[:, :, 0]], keys[columns[:, 0]]))
        return found


def joined_products(parts: Sequence[list[Products] | str]) -> list[Products] | str:
    """Of calls whose rows are one map; the reason of the first one that is not known."""
    found: list[Products] = []
    for part in parts:
        if isinstance(part, str):
            return part
        found.extend(part)
    return found


def call_of(calls: Sequence[Products], query: int) -> tuple[Products, int]:
    """The call in which a query of the map ran, and its row there."""
    for one in calls:
        if query < one.at_left.shape[1]:
            return one, query
        query -= one.at_left.shape[1]
    raise IndexError(query)
