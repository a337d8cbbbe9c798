"""The score of one query and one key, dimension by dimension, from queries and keys that a run kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.computed_map import ComputedMap
from inspector.capture.view import View

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """q·k = Σ_d q_d k_d of one head, where q is the query times the scale, both as the model used them.

    Attributes:
        query, key: positions.
        products: (d,) q_d k_d.
        bias: what the model adds to the sum; 0 without a bias.
        masked: whether the query may not attend to the key.
    """

    query: int
    key: int
    products: Array
    bias: float
    masked: bool

    @property
    def score(self) -> float:
        """The score before the softmax, whatever is masked."""
        return float(self.products.sum(dtype=np.float64)) + self.bias


def keeps_pairs(view: View, name: str, frame: int) -> bool:
    """Whether queries and keys of the map `name` were kept."""
    return bool(ComputedMap(view, name, frame).shape[0])


def pair_of(view: View, name: str, frame: int, head: int, query: int | None, key: int | None) -> Pair | None:
    """The pair of a head of the map `name`; None where queries and keys were not kept, or have no such pair.

    query: None for the last one. key: None for the one with the largest score of that query.
    """
    kept = ComputedMap(view, name, frame)
    heads, queries, keys = kept.shape
    query = queries - 1 if query is None else query
    if head >= heads or query >= queries or (key is not None and key >= keys):
        return None
    scores = kept.scores(head, query, query + 1)[0]
    if key is None:
        key = int(np.nan_to_num(scores, nan=-np.inf).argmax())
    masked = key >= len(scores) or bool(np.isneginf(scores[key]))
    return Pair(query, key, kept.products(head, query, key), kept.bias_at(head, query, key), masked)
