"""How the weights of attention that a model computes itself came about, in words."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.attention.calls import WITHOUT_DROPOUT
from inspector.engine.attention.written import judging
from inspector.engine.attention.written.facts import Facts, Origin
from inspector.engine.attention.written.layout import Layout
from inspector.engine.attention.written.own_keys import NOTE

KINDS = {
    "sigmoid": "sigmoid of each score: rows need not sum to 1",
    "linear": "equivalent weights of linear attention, φ(q)·φ(k) over their sum",
    "hard": "hard: each query takes one key",
    "exp": "exp of the scores, divided by the model",
    "scores": "computed from the scores without a softmax",
    "several": "several softmaxes added or subtracted",
    "mixed": "heads of a softmax mixed by a matrix",
    "scaled": "a softmax multiplied by other numbers",
    "": "recognised by its values: each row sums to 1",
}
"""By the kind of their origin."""


def how_computed(layout: Layout, known: Facts, origin: Origin, weights: Tensor) -> str:
    """How a map came about, for the method of what is computed from it; "" where there is nothing to say."""
    kind = KINDS.get(origin.kind, "")
    if origin.kind in ("exp", "scores", "several", "scaled", "mixed"):
        kind += "" if judging.sums_to_one(weights) else ": rows need not sum to 1"
        kind += ", weights may be below 0" if bool((weights < 0).any()) else ""
    keys = (
        NOTE.format(layout.count(layout.roles.keys)) if layout.queries in layout.roles.shared and layout.queries else ""
    )
    parts = [layout.note(), keys, WITHOUT_DROPOUT if known.clean is not None else "", kind]
    return "; ".join(part for part in parts if part)
