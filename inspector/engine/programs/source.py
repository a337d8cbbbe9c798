"""The source of a graph's module, with its written-out loop as a loop: what is run, and what names are read from.

An operation stands on a line of its own and its result in a variable named as its node. What differs between the
iterations of a loop stands in lists beside the code (`numbers_2[step]`).
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from torch.fx import Graph, Node

from inspector.engine.programs.rolling import Loop, find_loops

NUMBER = count(1)
PLAIN = (bool, int, str, type(None))
LITERAL = 1e300
"""Floats of larger magnitude, and NaN, are no literals."""


@dataclass(slots=True)
class Source:
    """Lines of a function and the objects that it names."""

    lines: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    variables: frozenset[str] = frozenset()
    """Names that are taken."""
    _known: dict[int, str] = field(default_factory=dict)

    def object(self, value: Any, word: str) -> str:
        """The name of an object that has no literal."""
        if id(value) not in self._known:
            name = f"{word}__{len(self.names)}"
            while name in self.variables:
                name += "_"
            self._known[id(value)] = name
            self.names[name] = value
        return self._known[id(value)]


def rolled(graph: Graph) -> tuple[Callable[..., Any], tuple[int, ...]] | None:
    """(the function `forward(self, …)` of a graph with its loops, their numbers of steps); None without any."""
    nodes = [node for node in graph.nodes if node.op not in ("placeholder", "get_attr", "output")]
    loops = find_loops(nodes)
    if not loops:
        return None
    return _compiled(_Writer(graph, nodes, loops).write()), tuple(loop.count for loop in loops)


def _compiled(source: Source) -> Callable[..., Any]:
    text = "\n".join(source.lines) + "\n"
    name = f"<program {next(NUMBER)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = dict(source.names)
    exec(compile(text, name, "exec", dont_inherit=True), scope)
    made: Callable[..., Any] = scope["forward"]
    return made


class _Writer:
    """Writes one graph. The body of a loop is written by its first iteration's nodes."""

    def __init__(self, graph: Graph, nodes: Sequence[Node], loops: Sequence[Loop]) -> None:
        self.graph, self.nodes, self.loops = graph, nodes, loops
        self.source = Source(variables=frozenset(node.name for node in graph.nodes))
        self.within: dict[Node, tuple[Loop, int, int]] = {
            node: (loop, *divmod(n, loop.period))
            for loop in loops for n, node in enumerate(nodes[loop.start : loop.end])
        }  # fmt: skip
        """Node → its loop, the iteration, and its place in the body."""
        self.current: Loop | None = None
        self.carried: dict[tuple[Node, Node], str] = {}
        """Of the loop that is written: (node of the body, what the first iteration has in its place) → variable."""

    def write(self) -> Source:
        """All of it."""
        given = [self._parameter(node) for node in self.graph.nodes if node.op == "placeholder"]
        self.source.lines.append(f"def forward({', '.join(['self', *given])}):")
        for node in self.graph.nodes:
            if node.op == "get_attr":
                self._line(f"{node.name} = {_attribute(str(node.target))}")
        at = 0
        for loop in (*self.loops, Loop(len(self.nodes), 0, 0)):
            for node in self.nodes[at : loop.start]:
                self._line(f"{node.name} = {self._call(node)}")
            if loop.count:
                self._loop(loop)
            at = loop.end
        (output,) = (node for node in self.graph.nodes if node.op == "output")
        self._line(f"return {self._value(output.args[0])}")
        return self.source

    def _parameter(self, node: Node) -> str:
        return f"{node.target}={self._value(node.args[0])}" if node.args else str(node.target)

    def _line(self, text: str, depth: int = 1) -> None:
        self.source.lines.append("    " * depth + text)

    def _body(self, node: Node) -> Node:
        """The node of the first iteration that stands for one of a loop."""
        loop, _, n = self.within[node]
        return self.nodes[loop.start + n]

    def _loop(self, loop: Loop) -> None:
        body = self.nodes[loop.start : loop.start + loop.period]
        self.current, self.carried = loop, {}
        lines = []
        for n, node in enumerate(body):
            every = [self.nodes[loop.start + k * loop.period + n] for k in range(loop.count)]
            lines.append(f"{node.name} = {self._call(node, every)}")
        self.current = None
        kept = dict.fromkeys(
            self._body(node) for node in self.nodes[loop.start : loop.end]
            if any(self.within.get(user, (None,))[0] is not loop for user in node.users)
        )  # fmt: skip
        for node in kept:
            self._line(f"all_{node.name} = []")
        for (_, first), name in self.carried.items():
            self._line(f"{name} = {self._named(first)}")
        self._line(f"for step in range({loop.count}):")
        for line in lines:
            self._line(line, 2)
        for node in kept:
            self._line(f"all_{node.name}.append({node.name})", 2)
        for (node, _), name in self.carried.items():
            self._line(f"{name} = {node.name}", 2)

    def _named(self, node: Node) -> str:
        """A node that is read outside its loop."""
        if node not in self.within:
            return str(node.target) if node.op == "placeholder" else node.name
        return f"all_{self._body(node).name}[{self.within[node][1]}]"

    def _call(self, node: Node, every: Sequence[Node] = ()) -> str:
        """The call of a node; `every`: the nodes of all iterations that it stands for."""
        args = [self._value(one, [row.args[n] for row in every]) for n, one in enumerate(node.args)]
        args += [f"{key}={self._value(one, [row.kwargs[key] for row in every])}" for key, one in node.kwargs.items()]
        if node.op == "call_module":
            return f"{_attribute(str(node.target))}({', '.join(args)})"
        if node.op == "call_method":
            return f"{args[0]}.{node.target}({', '.join(args[1:])})"
        return f"{self.source.object(node.target, _word(node.target))}({', '.join(args)})"

    def _value(self, value: Any, every: Sequence[Any] = ()) -> str:
        """An argument as an expression; `every`: the same argument in each iteration."""
        if isinstance(value, Node):
            return self._named(value) if self.current is None else self._in_loop(value, every)
        if isinstance(value, (tuple, list)):
            inner = [self._value(one, [row[n] for row in every]) for n, one in enumerate(value)]
            text = ", ".join(inner)
            return f"[{text}]" if isinstance(value, list) else f"({text}{',' if len(inner) == 1 else ''})"
        if isinstance(value, slice):
            parts = ("start", "stop", "step")
            inner = [self._value(getattr(value, p), [getattr(row, p) for row in every]) for p in parts]
            return f"slice({', '.join(inner)})"
        if any(one != value for one in every):
            return f"{self.source.object(list(every), 'numbers')}[step]"
        if isinstance(value, PLAIN) or (isinstance(value, float) and abs(value) < LITERAL):
            return repr(value)
        return self.source.object(value, "value")

    def _in_loop(self, first: Node, every: Sequence[Node]) -> str:
        """A node that the body reads: of this iteration, of the one before, or from outside."""
        loop, number, _ = self.within.get(every[1], (None, 0, 0))
        if loop is self.current:
            body = self._body(every[1])
            name = f"{body.name}_before" if len(self.carried) == 0 else f"{body.name}_before_{len(self.carried)}"
            return body.name if number else self.carried.setdefault((body, first), name)
        if all(one is first for one in every):
            return self._named(first)
        name = f"each_{len(self.source.lines)}_{first.name}"
        self._line(f"{name} = [{', '.join(map(self._named, every))}]")
        return f"{name}[step]"


def _attribute(target: str) -> str:
    """A module or tensor inside `self`, whatever its name."""
    owner, _, own = target.rpartition(".")
    if all(part.isidentifier() for part in target.split(".")):
        return f"self.{target}"
    return f"getattr(self.get_submodule({owner!r}), {own!r})"


def _word(function: Any) -> str:
    name = str(getattr(function, "__name__", "function"))
    return name if name.isidentifier() else "function"
