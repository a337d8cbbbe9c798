"""The leaves of autograd's graph that tensors were computed from: which parameters act on what a module is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

MOST_NODES = 20_000
"""Nodes that are searched: about 20 ms. Counter-example: of a module behind 5,000 steps of a hand-written loop it is
not known what acts on its input; every parameter that an earlier recurrence uses may."""


class Upstream:
    """A search that goes on with every tensor that is added; each node is visited once."""

    def __init__(self) -> None:
        self.leaves: set[int] = set()
        self.complete = True
        self._seen: set[Any] = set()

    def add(self, tensors: Iterable[Tensor]) -> None:
        """Search what these tensors were computed from."""
        if not self.complete:
            return
        given = [one for one in tensors if one.requires_grad]
        self.leaves.update(id(one) for one in given if one.is_leaf)
        waiting = [one.grad_fn for one in given if one.grad_fn is not None]
        while waiting:
            node = waiting.pop()
            if node in self._seen:
                continue
            self._seen.add(node)
            if len(self._seen) > MOST_NODES:
                self.complete = False
                return
            leaf = getattr(node, "variable", None)
            if leaf is not None:
                self.leaves.add(id(leaf))
            waiting += [before for before, _ in node.next_functions if before is not None]

    def found(self) -> frozenset[int] | None:
        """The ids of the leaves, None where the search was not complete; the graph is released."""
        self._seen.clear()
        return frozenset(self.leaves) if self.complete else None
