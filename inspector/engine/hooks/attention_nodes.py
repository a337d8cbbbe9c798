"""What attention does with its scores, read off autograd's graph of one call: nothing is called or replaced.

A softmax over a product of two things that are both computed is attention. Between the product and the softmax lie what
scales, masks and bends the scores; below the product lie what scales and turns queries and keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from inspector.engine.hooks.loss_nodes import SHAPES, beneath, operation
from inspector.engine.hooks.saved_numbers import signed
from inspector.engine.hooks.turned_nodes import turn_of

MOST_NODES = 50_000
MOST_BETWEEN = 24
"""Operations between a product and its softmax, or below a product, that are followed."""
PRODUCTS = ("Bmm", "Mm")
SOFTMAX = ("Softmax", "SafeSoftmax")
FUSED = "ScaledDotProduct"
_RECTIFIES = ("Relu", "Threshold")
_KEPT = ("MaskedFill", "Where", "Add", "Sub")
"""Masks and biases: with one operand that has a graph they change no product behind it."""


@dataclass(frozen=True, slots=True)
class Product:
    """One product of queries and keys.

    Attributes:
        node: where values are mixed; None where that is not known.
        factor: by which q·k is multiplied, NaN where it is not known (normalised queries, a learned temperature).
        width: of a query. rectified: whether the scores go through a ReLU before the softmax.
        turned: how often queries or keys are turned by the same angles one after the other.
        across: whether the softmax is over the queries, so that the weights of a query do not sum to 1.
        weight: of the layer that makes the queries, by id; 0 where that is not known.
    """

    node: Any
    factor: float
    width: int
    rectified: bool
    turned: int
    weight: int
    across: bool = False


@dataclass(frozen=True, slots=True)
class Below:
    """What lies below one operand of a product."""

    factor: float
    turned: int
    weight: int


Parents = dict[Any, list[Any]]


def graph_of(roots: list[Tensor]) -> Parents:
    """{node: those that read it}, from tensors on, MOST_NODES at most."""
    waiting = [one.grad_fn for one in roots if one.grad_fn is not None]
    found: Parents = {one: [] for one in waiting}
    while waiting and len(found) < MOST_NODES:
        node = waiting.pop()
        for below, _ in node.next_functions:
            if below is None:
                continue
            if below not in found:
                found[below] = []
                waiting.append(below)
            found[below].append(node)
    return found


def products_of(graph: Parents) -> Iterator[Product]:
    """Every product of queries and keys whose softmax mixes values."""
    for node in graph:
        name = operation(node)
        if name.startswith(FUSED):
            yield _fused(node)
        elif name in SOFTMAX:
            found = _behind(node, graph)
            if found is not None:
                yield found


def _fused(node: Any) -> Product:
    query, scale = node._saved_query, getattr(node, "_saved_scale", None)
    width = int(query.shape[-1])
    own = 1 / math.sqrt(width) if scale is None else float(scale)
    sides = [below(one) for one, _ in node.next_functions[:2]]
    return Product(node, own * sides[0].factor * sides[1].factor, width, False, max(one.turned for one in sides),
                   sides[0].weight)  # fmt: skip


def _behind(softmax: Any, graph: Parents) -> Product | None:
    """From a softmax back to its product; None where it is no attention."""
    node, factor, rectified = _single(softmax), 1.0, False
    for _ in range(MOST_BETWEEN):
        name = "" if node is None else operation(node)
        if name in PRODUCTS:
            found = _of_product(node, factor, rectified, _mixing(softmax, graph))
            return None if found is None else replace(found, across=_across(softmax, found.node, graph))
        rectified |= name in _RECTIFIES or (name.startswith("Clamp") and _low(node) == 0)
        if name in ("Mul", "Div"):
            factor *= constant(node)
        elif name not in SHAPES and name not in _KEPT and name not in _RECTIFIES and not name.startswith("Clamp"):
            return None
        node = _single(node)
    return None


def _of_product(node: Any, factor: float, rectified: bool, mixing: Any) -> Product | None:
    (first, _), (second, _) = node.next_functions[:2]
    if first is None or second is None or _is_leaf(first) or _is_leaf(second):
        return None  # a layer's weight: no product of queries and keys
    shape = node._input_metadata[0].shape
    inner = next((one._saved_self for one in (node,) if isinstance(getattr(one, "_saved_self", None), Tensor)), None)
    width = int(inner.shape[-1]) if inner is not None else 0
    sides = [below(first), below(second)]
    turned = max(one.turned for one in sides)
    whole = factor * sides[0].factor * sides[1].factor if len(shape) > 1 and width else math.nan
    return Product(mixing, whole, width, rectified, turned, sides[0].weight)


def _mixing(softmax: Any, graph: Parents) -> Any:
    """The product of weights and values: what reads a softmax, behind dropout."""
    node = softmax
    for _ in range(8):
        readers = graph.get(node, [])
        if len(readers) != 1:
            return next((one for one in readers if operation(one) in PRODUCTS), None)
        node = readers[0]
        if operation(node) in PRODUCTS:
            return node
        if operation(node) not in SHAPES and operation(node) not in ("Mul", "NativeDropout"):
            return None
    return None


_AS_THEY_LIE = frozenset(("View", "UnsafeView", "ReshapeAlias", "Expand", "Clone", "ToCopy", "Mul", "NativeDropout"))
"""Operations that leave the last two axes where they are; a view that joins them is told by its shape."""


def _across(softmax: Any, mixing: Any, graph: Parents) -> bool:
    """Whether weights whose last axis is summed with the values are normalised along the one before."""
    shape = tuple(softmax._saved_result.shape)
    axis = signed(softmax._saved_dim) % max(1, len(shape))
    if mixing is None or len(shape) < 2 or axis != len(shape) - 2:
        return False
    node = softmax
    while (above := graph[node][0]) is not mixing:
        node = above
        if operation(node) not in _AS_THEY_LIE or tuple(node._input_metadata[0].shape)[-2:] != shape[-2:]:
            return False
    return mixing.next_functions[0][0] is node


def below(node: Any) -> Below:
    """From an operand of a product down to the layer that made it; a factor of NaN where no layer is met."""
    factor, turned, angles = 1.0, 0, None
    for _ in range(MOST_BETWEEN):
        if node is not None and operation(node) in SHAPES:
            node = beneath(node)
        name = "" if node is None else operation(node)
        if name in ("Addmm", "Mm"):
            return Below(factor, turned, _weight(node))
        if name == "Add" and (biased := _without_bias(node)) is not None:
            node = biased
            continue
        turn = None if node is None else turn_of(node)
        if turn is not None:
            turned = turned + 1 if angles is None or turn.same(angles) else turned
            angles, node = turn, turn.given
        elif name in ("Mul", "Div") and math.isfinite(one := constant(node)):
            factor, node = factor * one, _single(node)
        else:
            return Below(math.nan, turned, 0)
    return Below(math.nan, turned, 0)


def constant(node: Any) -> float:
    """The one number by which a product or quotient scales; NaN where it is several, learned, or on a device."""
    if sum(one is not None for one, _ in node.next_functions) != 1 or node.next_functions[0][0] is None:
        other = node._saved_self if operation(node) == "Mul" and node.next_functions[0][0] is None else None
    else:
        other = node._saved_other
    if isinstance(other, (int, float)):  # a number of C++ code
        other = torch.tensor(float(other))
    if not isinstance(other, Tensor) or other.numel() != 1 or other.device.type != "cpu" or torch.is_complex(other):
        return math.nan
    value = float(other)
    return value if operation(node) == "Mul" else (1 / value if value else math.nan)


def _single(node: Any) -> Any:
    """The one node below that has a graph; None where there are several or none."""
    there = [one for one, _ in node.next_functions if one is not None]
    return there[0] if len(there) == 1 else None


def _without_bias(node: Any) -> Any:
    """What a sum adds a leaf to: a layer that adds its bias apart; None where it is another sum."""
    there = [one for one, _ in node.next_functions[:2]]
    if None in there or sum(map(_is_leaf, there)) != 1:
        return None
    return there[0] if _is_leaf(there[1]) else there[1]


def _low(node: Any) -> float:
    low = getattr(node, "_saved_min", None)
    if isinstance(low, Tensor):
        return float(low) if low.numel() == 1 and low.device.type == "cpu" else math.nan
    return math.nan if low is None else float(low)


def _leaf(node: Any) -> Any:
    """The leaf that a node only moves; None where something computes it."""
    for _ in range(8):
        if node is None or operation(node).endswith("AccumulateGrad"):
            return node
        if operation(node) not in SHAPES:
            return None
        node = next((one for one, _ in node.next_functions if one is not None), None)
    return None


def _is_leaf(node: Any) -> bool:
    return _leaf(node) is not None


def _weight(node: Any) -> int:
    leaf = _leaf(node.next_functions[-1][0])
    return 0 if leaf is None else id(leaf.variable)
