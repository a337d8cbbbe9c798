"""Of which earlier attentions each attention of a run was computed, read off autograd's graph.

Names say nothing of it: heads that a module computes one by one are called as layers are. A layer's result is among
what the next layer is made of; heads beside each other are made of the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from inspector.engine.attention.key_source import PRODUCTS, Key, KeySource, hooked
from inspector.engine.trace.attention import Attention, Lineage

Node = Any


@dataclass(slots=True)
class Ancestry:
    """Of the attentions of one run, whose results are bits of whole numbers."""

    graph: KeySource
    results: dict[Node, int] = field(default_factory=dict)
    known: dict[Node, int] = field(default_factory=dict)
    """Node → the results nearest before it."""
    count: int = 0

    def note(self, seen: Attention, values: Tensor, result: object) -> None:
        """Give an attention its lineage: `values` as it was given them, `result` as the model goes on with it."""
        bit = 1 << self.count
        self.count += 1
        node = result.grad_fn if isinstance(result, Tensor) else None
        if node is None:
            seen.lineage = Lineage(bit, None)
            return
        before = 0
        for one, _ in node.next_functions:
            before |= self._before(one)
        self.results[node] = self.results.get(node, 0) | bit
        seen.lineage = Lineage(bit, before, self._before(values.grad_fn), *self._source(values))

    def also(self, seen: Attention, result: object) -> None:
        """Other values were weighed with the weights of an attention."""
        if seen.lineage is not None and isinstance(result, Tensor) and result.grad_fn is not None:
            self.results[result.grad_fn] = self.results.get(result.grad_fn, 0) | seen.lineage.own

    def _before(self, start: Node | None) -> int:
        """The results nearest before a node, or the node's own where it is one; every node is visited once a run."""
        waiting = [start] if start is not None else []
        while waiting:
            node = waiting[-1]
            if node in self.known or node in self.results:
                waiting.pop()
                continue
            above = [one for one, _ in node.next_functions if one is not None]
            missing = [one for one in above if one not in self.known and one not in self.results]
            if missing:
                waiting.extend(missing)
                continue
            found = 0
            for one in above:
                found |= self._of(one)
            self.known[node] = found
            waiting.pop()
        return 0 if start is None else self._of(start)

    def _of(self, node: Node) -> int:
        return self.results[node] if node in self.results else self.known[node]

    def _source(self, values: Tensor) -> tuple[Hashable, bool]:
        """What values were made of, position by position (None where they have no graph), and whether that is numbers
        that autograd does not follow, alone."""
        if not values.requires_grad:
            return None, True
        if hooked():
            return None, False
        made, followed = self.graph.made(values), self.graph.followed
        unfollowed = bool(made.made) and all(key[0] == "given" and key not in followed for key in made.made)
        own = made.made or frozenset(_tables(values.grad_fn)) or made.fixed  # a parameter as it is
        return (own, made.taken, made.reordered, made.lost) if own else None, unfollowed


def _tables(start: Node | None) -> set[Key]:
    """The parameters of more than one axis that are a sequence themselves (learned slots), not what projects it."""
    waiting, seen, found = [start], set[Node](), set[Key]()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found |= {("table", node.variable.data_ptr())} if node.variable.dim() > 1 else set()
            continue
        before = [one for one, _ in node.next_functions]
        waiting.extend(before[-2:-1] if node.name().startswith(PRODUCTS) else before)
    return found
