"""How far back the graph of a backward pass goes: into those of earlier iterations, where a state was not detached.

Autograd numbers the nodes of a thread in the order in which they are made. The number that is next when an iteration
ends is kept, so that a node tells in which iteration it was made, whatever it computes.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.watch.backward_calls import Scaled
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters, plain_name
from inspector.engine.watch.tables import PLACE, About, on_axis

GRAPH, KEPT, FAILED = f"{PLACE}:graph/nodes", f"{PLACE}:graph/kept_in", f"{PLACE}:graph/failed"
COLUMNS = ("all", "of earlier iterations", "iterations that they are of")
EVERY = 4
"""Recorded iterations from one time to the next."""
RARELY = 16
"""The same, once so many looks as FIRST have found nothing of earlier iterations: what a loop keeps, it keeps early."""
MOST_NODES = 10_000
MOST_ENDS = 4096
"""Iterations whose end is kept; older ones count as one."""
FIRST = 8
"""Recorded iterations at the beginning in which what holds a graph is looked at each time: a pass may fail there."""
MOST_PLACES = 8
_TORCHS = ("_parameters", "_buffers", "_modules")
_LEAF = 1 << 63
"""Leaves have the largest number that there is."""
ERRORS = ("backward through the graph a second time", "modified by an inplace operation")
"""How torch begins to say that what an earlier pass freed, or a step has changed since, is needed again."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Nodes that a backward pass would go through, how many are of earlier iterations, of how many these are, and the
    parameters (by id) at its ends."""

    nodes: frozenset[Any]
    old: int
    iterations: int
    leaves: frozenset[int]


class EarlierGraphs(Measure):
    """Looks where a backward pass begins, oldest nodes first, and where one fails."""

    tables = tuple(
        on_axis(about, "graph")
        for about in (
            About(
                name=GRAPH, title="nodes of the backward graph", unit="nodes", column=("part", "graph"),
                formula="nodes that are reached from the loss; those made before the last step of the first optimizer; "
                "how many iterations made these",
                method=f"by autograd's numbers of nodes; every {EVERY}th recorded iteration, every {RARELY}th once "
                f"{FIRST} looks found nothing older; at most {MOST_NODES:,} nodes, the oldest first",
            ),
            About(
                name=KEPT, title="what holds the graph of an earlier iteration", column=("holder", "graph holder"),
                formula="1 where an attribute or argument of the model was, before its call, a tensor with such a "
                "graph, which the backward pass goes through",
            ),
            About(
                name=FAILED, title="backward passes that failed",
                formula="1: what is needed was freed by an earlier pass; 2: it was changed in place since",
            ),
        )
    )  # fmt: skip

    def __init__(self, parameters: Parameters, model: nn.Module) -> None:
        super().__init__(parameters)
        self._model, self._seen = model, 0
        self._looks, self._found = 0, False
        self._held: dict[str, Any] = {}
        self._ends: deque[int] = deque([_next_number()], maxlen=MOST_ENDS)

    def forward_begins(self, moment: Moment, model: nn.Module, args: Any, kwargs: Any) -> None:
        """What the model holds, and is given, of a graph: before the call replaces it."""
        if self._seen < FIRST or self._due():
            self._held.update(holders(self._model, args, kwargs))

    def each(self, iteration: int) -> None:
        """An iteration has ended, recorded or not."""
        self._ends.append(_next_number())
        self._held.clear()

    def backward_begins(self, moment: Moment, roots: Sequence[Tensor]) -> None:
        """Look; whether the pass is one of the model's is known when it has ended."""
        if GRAPH not in moment.extra:
            due = self._due()
            moment.extra[GRAPH] = [] if due else None
            self._seen += 1
            self._looks += due
        if moment.extra[GRAPH] is not None:
            moment.extra[GRAPH].append(reached(roots, self._ends))

    def _due(self) -> bool:
        rarely = self._looks >= FIRST and not self._found
        return self._seen % (RARELY if rarely else EVERY) == 0

    def backward_ended(self, moment: Moment, roots: Sequence[Tensor], scaled: Scaled | None) -> None:
        """It was: of several passes the one that goes back furthest counts."""
        for one in moment.extra.get(GRAPH) or ():
            self._put(moment, one)
        if moment.extra.get(GRAPH):
            moment.extra[GRAPH] = []

    def backward_failed(self, moment: Moment, roots: Sequence[Tensor], fault: Exception) -> None:
        """It raised: what it would have gone through, where torch says that that is gone."""
        codes = [n for n, words in enumerate(ERRORS, 1) if words in str(fault)]
        found = reached(roots, self._ends)
        if codes and found.leaves & self.parameters.column.keys():
            self._put(moment, found)
            moment.put(FAILED, 0, float(codes[0]))

    def _put(self, moment: Moment, found: Reached) -> None:
        before = moment.cells.get(GRAPH, {})
        numbers = (len(found.nodes), found.old, found.iterations)
        self._found |= found.old > 0
        known = [before.get(self.column("graph", name), -1.0) for name in COLUMNS]
        if (numbers[2], numbers[0]) < (known[2], known[0]):
            return
        for name, value in zip(COLUMNS, numbers, strict=True):
            moment.put(GRAPH, self.column("graph", name), float(value))
        for name, node in self._held.items():
            if node in found.nodes and _number(node) < self._ends[-1]:
                moment.put(KEPT, self.column("graph holder", name), 1.0)


def _next_number() -> int:
    """The number of the next node that this thread makes."""
    return int(torch._C._autograd._get_sequence_nr())


def reached(roots: Sequence[Tensor], ends: Sequence[int]) -> Reached:
    """What a backward pass from `roots` would go through; `ends`: the number that was next as each iteration ended."""
    return _all_reached(roots, ends) or _oldest_reached(roots, ends)


def _all_reached(roots: Sequence[Tensor], ends: Sequence[int]) -> Reached | None:
    """All of it, in any order, which takes half of the time; None beyond MOST_NODES."""
    last, nodes, leaves, older = ends[-1], set[Any](), set[int](), []
    waiting = [one.grad_fn for one in roots if isinstance(one, Tensor) and one.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node in nodes:
            continue
        number = _number(node)
        if number >= _LEAF:
            leaves.add(id(getattr(node, "variable", None)))
            continue
        if len(nodes) == MOST_NODES:
            return None
        nodes.add(node)
        if number < last:
            older.append(number)
        waiting += [below for below, _ in node.next_functions if below is not None and below not in nodes]
    known = list(ends) if older else []
    return Reached(frozenset(nodes), len(older), len({bisect_right(known, one) for one in older}), frozenset(leaves))


def _oldest_reached(roots: Sequence[Tensor], ends: Sequence[int]) -> Reached:
    """MOST_NODES of it, the oldest first."""
    first = [one.grad_fn for one in roots if isinstance(one, Tensor) and one.grad_fn is not None]
    waiting = [(_number(node), n, node) for n, node in enumerate(first)]
    heapq.heapify(waiting)
    seen, known, leaves = set[Any](first), list(ends), set[int]()
    nodes, which, old = set[Any](), set[int](), 0
    while waiting and len(nodes) < MOST_NODES:
        number, _, node = heapq.heappop(waiting)
        if number >= _LEAF:
            leaves.add(id(getattr(node, "variable", None)))
            continue
        nodes.add(node)
        if number < known[-1]:
            old += 1
            which.add(bisect_right(known, number))
        for below, _ in node.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                heapq.heappush(waiting, (_number(below), len(seen), below))
    leaves.update(id(getattr(node, "variable", None)) for number, _, node in waiting if number >= _LEAF)
    return Reached(frozenset(nodes), old, len(which), frozenset(leaves))


def _number(node: Any) -> int:
    return int(node._sequence_nr())


def holders(model: nn.Module, args: Any, kwargs: Any) -> dict[str, Any]:
    """{name: node} of tensors with a graph in attributes of modules ("rnn.hidden"), lists and dictionaries too, and
    among the arguments of a call."""
    found = {}
    for place, module in model.named_modules():
        for name, value in (*vars(module).items(), *module._buffers.items()):
            node = None if name in _TORCHS else _node(value)
            if node is not None:
                found[".".join(one for one in (plain_name(place), name) if one)] = node
        if len(found) >= MOST_PLACES:
            break
    given = [(f"argument {n}", one) for n, one in enumerate(args, 1)] + [(f"argument {n}", kwargs[n]) for n in kwargs]
    return found | {f"{name} of the call": node for name, one in given if (node := _node(one)) is not None}


def _node(value: Any, depth: int = 2) -> Any:
    """The node that made a tensor, or the first of those in a tuple, list or dictionary; None without one."""
    if isinstance(value, Tensor):
        return value.grad_fn
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    nodes = (_node(one, depth - 1) for one in list(parts)[:64] if depth)
    return next((one for one in nodes if one is not None), None)
