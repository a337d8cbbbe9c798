"""The names that the user's own code gives to values: by the statement that makes them, or by the variable."""

from __future__ import annotations

import ast
import dataclasses
import functools
import linecache
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

from torch import Tensor, nn

from inspector.engine.recurrent.traced.record.operation import Chain

Span = tuple[int, int, int, int]
DEEP = 3
"""How far tuples, lists, dicts and attributes are searched for a tensor. Counter-example: a state in
`self.memory["layers"][0].h` lies deeper and is named by the statement that makes it, or `h`."""
MORE_CACHES: list[Any] = []
"""Of other files that read sources."""
LONG = 64
"""Longer tuples and lists are not searched: they are outputs. Counter-example: layers beyond the 64th of a list."""


@functools.lru_cache(maxsize=256)
def _statements(filename: str) -> tuple[tuple[Span, ast.expr | None], ...]:
    """(span of a value, what it is assigned to or None where it is returned) of a file; () where there is no source.

    `a, b = f(x), g(x)` are two values with a target each.
    """
    source = "".join(linecache.getlines(filename))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found: list[tuple[Span, ast.expr | None]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            found.append((span_of(node.value), None))
        elif isinstance(node, ast.AugAssign):
            found.append((span_of(node), node.target))  # `g += tanh(x)`: g holds the sum, and tanh(x) has no name
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            target = node.targets[-1] if isinstance(node, ast.Assign) else node.target
            found += _values(node.value, target)
            if isinstance(target, (ast.Tuple, ast.List)) and not isinstance(node.value, ast.Tuple):
                found.append((span_of(target), target))  # `i, f = gates` takes a tensor apart where the names are
    return tuple(found)


def _values(value: ast.expr, target: ast.expr) -> list[tuple[Span, ast.expr]]:
    """(span of a value, what gets it): of `a, *b, c = …` each of its own."""
    found = [(span_of(value), target)]
    if not (isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List))):
        return found
    if any(isinstance(one, ast.Starred) for one in value.elts):
        return found
    stars = [n for n, one in enumerate(target.elts) if isinstance(one, ast.Starred)]
    before = stars[0] if stars else len(target.elts)
    after = len(target.elts) - before - 1 if stars else 0
    pairs = [*zip(value.elts[:before], target.elts[:before], strict=False)]
    pairs += [*zip(value.elts[len(value.elts) - after :], target.elts[before + 1 :], strict=False)] if after else []
    return found + [pair for one, own in pairs for pair in _values(one, own)]


def span_of(node: ast.expr | ast.stmt) -> Span:
    """The lines and columns of a node."""
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0


@functools.lru_cache(maxsize=4096)
def position(code: CodeType, at: int) -> Span | None:
    """Where in its file an instruction is written."""
    for n, (line, end_line, column, end_column) in enumerate(code.co_positions()):
        if n == at // 2:
            if line is None or end_line is None or column is None or end_column is None:
                return None
            return line, column, end_line, end_column
    return None


def assigned(chain: Chain, *, stored: bool = True) -> tuple[tuple[str, ...], bool]:
    """(names that the innermost statement assigns, True if exactly this operation's result is assigned).

    A function that returns the result at once takes its name from its caller. ((), False) where nothing is assigned,
    and without `stored` where it is put into a part of something (`h[:, 1] = …`), which its result is not.
    """
    target, whole = _assigned(places_of(chain))
    if target is None or (not stored and isinstance(target, ast.Subscript)):
        return (), False
    return _names(target), whole


def targets_around(places: tuple[tuple[CodeType, int], ...]) -> tuple[str, ...]:
    """The names that the statement assigns in which the first of these places lies."""
    target, _ = _assigned(places[:1])
    return _names(target) if target is not None else ()


def target_of(chain: Chain) -> ast.expr | None:
    """What gets exactly this operation's result; None where nothing does."""
    target, whole = _assigned(places_of(chain))
    return target if whole else None


def places_of(chain: Chain) -> tuple[tuple[CodeType, int], ...]:
    """(code, instruction) of an operation, from the innermost call on."""
    return tuple((frame.f_code, at) for frame, at in reversed(chain))


def returned(code: CodeType, at: int) -> bool:
    """Whether a function returns an instruction's result at once."""
    here = position(code, at)
    return any(span == here and target is None for span, target in _statements(code.co_filename))


@functools.lru_cache(maxsize=4096)
def _assigned(places: tuple[tuple[CodeType, int], ...]) -> tuple[ast.expr | None, bool]:
    """The target of the assignment, and whether it gets exactly the operation's result;
    places from the innermost call on."""
    for code, at in places:
        here = position(code, at)
        if here is None:
            return None, False
        inside = [item for item in _statements(code.co_filename) if _within(here, item[0])]
        if not inside:
            return None, False
        span, target = min(inside, key=lambda item: (item[0][2] - item[0][0], item[0][3] - item[0][1]))
        if target is not None:
            return target, span == here
        if span != here:
            return None, False
    return None, False


@functools.lru_cache(maxsize=256)
def calls_of(filename: str) -> dict[Span, ast.Call]:
    """The calls of a file by their position."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return {span_of(node): node for node in ast.walk(tree) if isinstance(node, ast.Call)}


def forget_sources() -> None:
    """Read files of code again from now on: they may have changed, and their modules are loaded again."""
    for known in (_statements, position, _assigned, only_counted, calls_of, functions_of, *MORE_CACHES):
        known.cache_clear()


def _within(inner: Span, outer: Span) -> bool:
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


def _names(target: ast.expr) -> tuple[str, ...]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return tuple(name for item in target.elts for name in _names(item)[:1])
    if isinstance(target, ast.Name):
        return (target.id,)
    if isinstance(target, ast.Attribute):
        return (target.attr,)
    if isinstance(target, ast.Subscript):
        return _names(target.value)
    return ()


def variable(frame: FrameType, tensor: Tensor, older: Tensor, own: str = "") -> tuple[str, str]:
    """The local variable, or the part of one, whose value this tensor is; a list that collects it beside an older
    value.

    "h", "state.0", "h" for "self.h", or "state.h"; "" where there is none. `own`: the name by which the tensor was
    assigned, which comes first. The variable of a `for` that has the value when the loop is over is not its variable.
    """
    found = _all_paths(frame, tensor)
    past = {path.rpartition(".")[0] for path in _all_paths(frame, older)} - {""}
    lists = [path.rpartition(".")[0] for path in found if path.rpartition(".")[0] in past]
    alone = [path for path in found if path.rpartition(".")[0] not in past]
    alone = [path for path in alone if path not in only_counted(frame.f_code)] or alone
    return (own if own in alone else _shortest(alone)), _shortest(lists)


def without_containers(names: list[str]) -> list[str]:
    """Names of parts of containers without the containers, where they still differ: "h" and "c" for "st.h" and "st.c",
    "a.h" and "b.h" as they are. A number alone is no name."""
    parts = [name.split(".") for name in names]
    found = []
    for own in parts:
        for n in range(len(own) - 1, -1, -1):
            alike = [other for other in parts if other is not own and other[-(len(own) - n) :] == own[n:]]
            if (not own[n].isdigit() and not alike) or n == 0:
                found.append(".".join(own[n:]))
                break
    return found


@functools.lru_cache(maxsize=1024)
def only_counted(code: CodeType) -> frozenset[str]:
    """The variables of a function that only its `for` loops set."""
    nodes = functions_of(code.co_filename).get(code.co_firstlineno)
    if nodes is None:
        return frozenset()
    loops = [node.target for node in ast.walk(nodes) if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension))]
    counted = [node for target in loops for node in ast.walk(target) if isinstance(node, ast.Name)]
    known = set(map(id, counted))
    stored = {
        node.id for node in ast.walk(nodes)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in known
    }  # fmt: skip
    arguments = {node.arg for node in ast.walk(nodes) if isinstance(node, ast.arg)}
    return frozenset(node.id for node in counted) - stored - arguments


@functools.lru_cache(maxsize=256)
def functions_of(filename: str) -> dict[int, ast.AST]:
    """The functions of a file by their first lines, decorators included."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        min([node.lineno, *(one.lineno for one in node.decorator_list)]): node
        for node in ast.walk(tree) if isinstance(node, kinds)
    }  # fmt: skip


def _shortest(names: list[str]) -> str:
    return min(names, key=lambda name: (name.count("."), len(name)), default="")


def _all_paths(frame: FrameType, tensor: Tensor) -> list[str]:
    return [
        path for name, value in frame.f_locals.items()
        for path in _paths(name, value, tensor, DEEP, plain=not (name == "self" or isinstance(value, nn.Module)))
    ]  # fmt: skip


def _paths(name: str, value: Any, tensor: Tensor, depth: int, *, plain: bool) -> list[str]:
    if value is tensor:
        return [name]
    if depth == 0:
        return []
    named = _attributes(value, plain=plain)
    if named:
        keys = [key if not plain else f"{name}.{key}" for key, _ in named]
        return [
            path for key, (_, item) in zip(keys, named, strict=True)
            for path in _paths(key, item, tensor, depth - 1, plain=True)
        ]  # fmt: skip
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, (tuple, list)) and len(value) <= LONG:
        items = [(str(n), item) for n, item in enumerate(value)]
    else:
        return []
    return [path for key, item in items for path in _paths(f"{name}.{key}", item, tensor, depth - 1, plain=True)]


def _attributes(value: Any, *, plain: bool) -> list[tuple[str, Any]]:
    """(name, value) of the named fields of a named tuple, a dataclass, a namespace, `self` and modules."""
    if isinstance(value, tuple):
        return list(zip(getattr(value, "_fields", ()), value, strict=False))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    if hasattr(value, "__dict__") and (not plain or isinstance(value, SimpleNamespace)):
        items = [(key, item) for key, item in vars(value).items() if not key.startswith("_")]
        return [*items, *getattr(value, "_buffers", {}).items()]
    return []
