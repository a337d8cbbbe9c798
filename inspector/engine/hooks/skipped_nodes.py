"""Whether layers of attention have a way round them, in autograd's graph: residual connections."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from inspector.engine.hooks.attention_nodes import FUSED, Parents, Product
from inspector.engine.hooks.loss_nodes import operation

_WEIGHS = ("Addmm", "Mm", "Bmm", "Convolution", "Addbmm", "Baddbmm")


def way_round(graph: Parents, products: Sequence[Product]) -> tuple[int, int]:
    """(layers, products): layers of attention one above the other, each with a weight of its own for queries; and how
    many matrix products lie on the shortest way from the uppermost to the lowest. With a residual connection around
    each part of each layer there is a way round all of them: 0. (0, 0) where there are no two layers."""
    mixing = {one.node: one for one in products if one.node is not None and one.weight}
    chain = _chain(graph, mixing)
    layers = len({mixing[one].weight for one in chain})
    if layers < 2:
        return 0, 0
    return layers, _least(chain[0], chain[-1])


def _chain(graph: Parents, mixing: dict[Any, Product]) -> list[Any]:
    """The longest chain of nodes that mix, the uppermost first."""
    depth: dict[Any, int] = {}
    under: dict[Any, Any] = {}
    for node in _from_below(graph):
        best = max((one for one, _ in node.next_functions if one in depth), key=lambda one: depth[one], default=None)
        own = 0 if best is None else depth[best]
        lowest = None if best is None else (best if best in mixing else under.get(best))
        depth[node], under[node] = own + (node in mixing), lowest
    top = max((one for one in mixing if one in depth), key=lambda one: depth[one], default=None)
    chain = []
    while top is not None:
        chain.append(top)
        top = under[top]
    return chain


def _from_below(graph: Parents) -> list[Any]:
    """Nodes, each after all that it reads."""
    left = {node: sum(one in graph for one, _ in node.next_functions if one is not None) for node in graph}
    waiting = deque(node for node, count in left.items() if not count)
    order = []
    while waiting:
        node = waiting.popleft()
        order.append(node)
        for reader in graph[node]:
            left[reader] -= 1
            if not left[reader]:
                waiting.append(reader)
    return order


def _least(top: Any, bottom: Any) -> int:
    """The fewest matrix products on a way from one node to another, that of the first among them."""
    cost, waiting = {top: 0}, deque([top])
    while waiting:
        node = waiting.popleft()
        if node is bottom:
            return cost[node]
        more = int(operation(node) in _WEIGHS or operation(node).startswith(FUSED))
        for one, _ in node.next_functions:
            if one is not None and cost[node] + more < cost.get(one, 1 << 30):
                cost[one] = cost[node] + more
                (waiting.append if more else waiting.appendleft)(one)
    return cost.get(bottom, 0)
