"""Loops over steps that an export wrote out, found again in a graph: the same operations on the same weights, repeated.

Two nodes are alike where they call the same thing with arguments of the same form: the same weights and constants,
whole numbers and other nodes aside. The longest stretch of the graph that repeats with some period is one loop, if
every iteration reads its own values, those of the iteration before, and values from before the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.fx import Node

FEWEST = 3
"""Iterations of a loop. Counter-example: two steps written out stay two stretches of code."""
OUTSIDE = ("outside", 0)
MOST_PERIOD = 2_000
"""Operations of one step at most: the search takes the number of operations times this. Counter-example: a step of more
operations stays written out."""


@dataclass(frozen=True, slots=True)
class Loop:
    """`count` iterations of `period` nodes each, from the node `start` of those that were searched."""

    start: int
    period: int
    count: int

    @property
    def end(self) -> int:
        """The node behind it."""
        return self.start + self.period * self.count


def find_loops(nodes: Sequence[Node]) -> list[Loop]:
    """All loops, in order: the one that covers most, then those before and behind it."""
    found, waiting = [], [(0, len(nodes))]
    while waiting:
        begin, end = waiting.pop()
        loop = find_loop(nodes[begin:end])
        if loop is not None:
            own = Loop(loop.start + begin, loop.period, loop.count)
            found.append(own)
            waiting += [(begin, own.start), (own.end, end)]
    return sorted(found, key=lambda one: one.start)


def find_loop(nodes: Sequence[Node]) -> Loop | None:
    """The loop that covers most of these nodes; where several do, of the shortest period, with the fewest values passed
    on (it may be cut anywhere, and between two steps there is the state alone)."""
    keys = _numbered([_key(node) for node in nodes])
    best: Loop | None = None
    most = fewest = 0
    for period in range(2, min(len(keys) // FEWEST, MOST_PERIOD) + 1):
        for loop in _runs(keys, period):
            covered = loop.period * loop.count
            if covered < most or (best is not None and covered == most and loop.period != best.period):
                continue
            carried = _carried(nodes, loop)
            if carried and (covered > most or carried < fewest):
                best, most, fewest = loop, covered, carried
    return best


def _numbered(keys: list[Any]) -> list[int]:
    known: dict[Any, int] = {}
    return [known.setdefault(key, len(known)) for key in keys]


def _runs(keys: list[int], period: int) -> Iterator[Loop]:
    """Stretches in which every key is that of one period before, in all rotations that hold most iterations."""
    n, last = 0, len(keys) - period
    while n < last:
        if keys[n] != keys[n + period]:
            n += 1
            continue
        start = n
        while n < last and keys[n] == keys[n + period]:
            n += 1
        whole = n - start + period
        count = whole // period
        if count >= FEWEST:
            yield from (Loop(start + shift, period, count) for shift in range(whole - count * period + 1))
            if count > FEWEST:  # where the first or last iteration differs in what it reads
                yield Loop(start + period, period, count - 1)


def _key(node: Node) -> Any:
    return node.op, node.target, _form(node.args), _form(node.kwargs)


def _form(value: Any) -> Any:
    """An argument without what may differ from step to step."""
    if isinstance(value, Node):
        return ("weight", value.target) if _is_weight(value) else "node"
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return "number"
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, *map(_form, value))
    if isinstance(value, dict):
        return tuple((key, _form(one)) for key, one in value.items())
    if isinstance(value, slice):
        return "slice", _form(value.start), _form(value.stop), _form(value.step)
    return (type(value).__name__, repr(value))


def _is_weight(node: Node) -> bool:
    """Whether a node reads a parameter of the module: that does not differ from step to step, as a first state does."""
    found: Any = node.graph.owning_module
    for part in str(node.target).split(".") if node.op == "get_attr" else ():
        found = getattr(found, part, None)
    return isinstance(found, nn.Parameter)


def _carried(nodes: Sequence[Node], loop: Loop) -> int:
    """How many values an iteration passes on; 0 where it reads others than its own, those of the iteration before,
    and what was there before the loop."""
    at = {node: n - loop.start for n, node in enumerate(nodes)}
    carried: set[int] = set()
    for n in range(loop.period):
        for slot in zip(*(nodes_in(nodes[loop.start + k * loop.period + n]) for k in range(loop.count)), strict=True):
            first, *later = (_kind(at.get(node, -1), k, loop) for k, node in enumerate(slot))
            if later[0] is None or any(kind != later[0] for kind in later):
                return 0
            passes = later[0][0] == "before"
            if first != (OUTSIDE if passes else later[0]):
                return 0
            if passes:
                carried.add(later[0][1])
    return len(carried)


def _kind(at: int, iteration: int, loop: Loop) -> tuple[str, int] | None:
    """What a node that an iteration reads is: ("own", n), ("before", n), OUTSIDE, or None: anything else."""
    if at < 0:
        return OUTSIDE
    number, n = divmod(at, loop.period)
    return ("own", n) if number == iteration else ("before", n) if number == iteration - 1 else None


def nodes_in(node: Node) -> list[Node]:
    """The nodes among the arguments of a node, in order, each as often as it stands there."""
    return list(_nodes((node.args, node.kwargs)))


def _nodes(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _nodes(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _nodes(one)
    elif isinstance(value, slice):
        yield from _nodes((value.start, value.stop, value.step))
