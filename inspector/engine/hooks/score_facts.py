"""Numbers that tell what attention does with its scores, of one graph of autograd."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from inspector.engine.hooks.attention_nodes import graph_of, products_of
from inspector.engine.hooks.skipped_nodes import way_round
from inspector.records.scores import SCORES

TURNED = 2
"""Turns by the same angles, one after the other, that are one too many."""


def score_facts(roots: Sequence[Tensor]) -> list[float] | None:
    """In the order of SCORES; None where no softmax over a product of queries and keys is seen."""
    graph = graph_of(list(roots))
    products = list(products_of(graph))
    if not products:
        return None
    largest = max((one for one in products if math.isfinite(one.factor)), key=lambda one: abs(one.factor), default=None)
    layers, between = way_round(graph, products)
    found = {
        "maps": len(products),
        "rectified": sum(one.rectified for one in products),
        "factor": math.nan if largest is None else largest.factor,
        "width": math.nan if largest is None else largest.width,
        "turned again": sum(one.turned >= TURNED for one in products),
        "layers": layers,
        "products between": between,
        "across": sum(one.across for one in products),
    }
    return [float(found[name]) for name in SCORES]
