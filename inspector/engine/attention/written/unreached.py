"""Scores that no product of queries and keys reaches any more: whatever put them in, they are masked.

A mask takes the place of a score. Where the operation that did so is one that is followed (`masking.py`), it is told
from that; for every other one autograd's graph is asked: a score of −1000 or less whose derivative with respect to the
products of queries and keys is exactly 0 does not depend on them. The derivative along one random direction of all
products is 0 at a score only where every single one is (but with probability 0); it is J·u from two products with Jᵀ,
d/dv of uᵀ(Jᵀv), so that no operation on the way need be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from inspector.engine.attention.key_source import hooked
from inspector.engine.attention.rows import LARGE
from inspector.engine.attention.written.facts import Facts
from inspector.engine.attention.written.masking import union

SUMS = ("Mm", "Bmm", "Addmm", "Baddbmm", "Mv", "Addmv", "Dot", "Linear", "Cdist", "EuclideanDist", "Sum",
        "LinalgVecdot")  # fmt: skip
"""How the names of nodes begin that sum products of queries and keys over features."""
MOST_NODES = 200
"""Between scores and the products that they are made of."""
UNCLEAR = (
    "{} of its scores are {:.6g}, a mask or not: the way in which they were put in is not followed, and no graph of "
    "autograd says it"
)


def asked(known: Facts | None, scores: Tensor) -> tuple[Facts | None, str]:
    """What is known of the scores of a softmax, with masks that the graph shows; and why they cannot be told from
    scores, or ""."""
    masked = None if known is None else known.masked
    cells = low(scores, masked)
    if cells is None or _valueless():
        return known, ""
    none = _unreached(scores)
    if none is None:
        return known, _unclear(scores, cells)
    none = none & cells
    if not bool(none.any()):
        return known, ""
    return replace(known or Facts(), masked=union(masked, none, scores.shape)), ""


def _valueless() -> bool:
    """Whether a graph is made whose nodes keep other numbers (`graph_alone.py`), in a call whose maps are not shown."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None and not hooked()


def low(scores: Tensor, masked: Tensor | None) -> Tensor | None:
    """True at finite scores of −1000 or less of which no mask is known; None where there are none, as of complex
    numbers, which have no order and are no scores."""
    if scores.is_complex():
        return None
    scores = scores.detach()
    found = (scores <= LARGE) & (scores > -torch.inf)
    found = found if masked is None else found & ~masked.expand(scores.shape)
    return found if bool(found.any()) else None


def _unreached(scores: Tensor) -> Tensor | None:
    """True at scores on which no product of queries and keys has any effect; None where the graph does not say it."""
    if scores.grad_fn is None or scores.retains_grad or scores._backward_hooks or hooked():
        return None
    edges = _products(scores.grad_fn)
    if not edges:
        return None
    try:
        slope = _along_one_direction(scores, edges)
    except RuntimeError:  # an operation without a second derivative, or one whose input was changed in place
        return None
    return None if bool(slope.isnan().any()) else slope == 0


def _products(node: Any) -> list[GradientEdge]:
    """The products of queries and keys behind a node; none where anything on the way is not autograd's own."""
    found, waiting, seen = list[GradientEdge](), [(node, 0)], set[Any]()
    while waiting:
        node, which = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.name().startswith(SUMS):
            found.append(GradientEdge(node, which))
        elif isinstance(node, torch.autograd.function.BackwardCFunction) or len(seen) > MOST_NODES:
            return []
        else:
            waiting.extend(_before(node))
    return found


def _before(node: Any) -> Iterator[tuple[Any, int]]:
    return ((one, which) for one, which in node.next_functions if one is not None)


def _along_one_direction(scores: Tensor, edges: list[GradientEdge]) -> Tensor:
    """J·u of the scores with respect to all products. Raises RuntimeError."""
    draw = torch.Generator().manual_seed(0)  # the model's own random numbers stay as they are
    with torch.enable_grad():
        over = torch.zeros_like(scores, requires_grad=True)
        back = torch.autograd.grad(scores, edges, over, retain_graph=True, create_graph=True, allow_unused=True)
        known = [one for one in back if one is not None]
        along = [torch.randn(one.shape, generator=draw, dtype=torch.float64).to(one) for one in known]
        found = torch.autograd.grad(known, over, along, allow_unused=True)[0] if known else None
    return torch.zeros_like(scores) if found is None else found.detach()


def _unclear(scores: Tensor, cells: Tensor) -> str:
    """Why it is not known whether low scores of which the graph says nothing are masked; "" where they differ, as
    scores do."""
    values = scores.detach()[cells]
    alike = len(values) > 1 and bool((values == values[0]).all())
    return UNCLEAR.format(len(values), float(values[0])) if alike else ""
