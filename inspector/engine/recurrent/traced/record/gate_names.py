"""What a value that a squashing function makes is called, and how the user's code writes it.

A channel has the name of a variable only where the variable holds its values: `g = tanh(zg)` is g, and
`o * tanh(cn)` has a tanh(cn), which is not cn. Gates are the one exception: that of `sigmoid(f + 1) * c` is the gate
called f, gate/f, as long as f is nothing but what the sigmoid is taken of; its text is "sigmoid(f + 1)".
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from types import CodeType

from inspector.engine.recurrent.traced.record.operation import Chain, Op
from inspector.engine.recurrent.traced.record.source_names import (
    MORE_CACHES,
    calls_of,
    functions_of,
    only_counted,
    places_of,
    position,
    returned,
    span_of,
    target_of,
    targets_around,
)

PLAIN = (ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
"""Operations under which an argument keeps the name of its one variable: `f + 1`, not `f[0]` or `f.mean()`, which are
other values. Counter-example: `0 * f + 1` is called f, but does not depend on it."""
LONGEST = 32
"""Letters of a text that serves as a name. Counter-example: tanh(0.7978845608028654 * g) is called tanh."""


@dataclass(frozen=True, slots=True)
class Spelt:
    """A value as the code writes it: its name, and a text that is true of it ("f", "sigmoid(f + 1)")."""

    name: str
    text: str


def applied(op: Op) -> Spelt:
    """An operation's result that has no variable: its function with the one variable that it is applied to.

    name: "f" where that variable is read by nothing else than this function, else as the text.
    """
    function = op.name.rstrip("_")
    variable, text, alone = _applied(places_of(op.chain)) if op.chain else ("", "", False)
    if not variable:
        return Spelt(function, function)
    return Spelt(variable if alone else as_name(text, function), text)


def as_name(text: str, otherwise: str) -> str:
    """A text without what the names of channels, edits and files give a meaning to."""
    name = text.replace(" ", "").replace("/", "÷")
    return name if len(name) <= LONGEST and not set(name) & set("[]=@:#") else otherwise


def argument(chain: Chain) -> str:
    """The one variable to which an operation is applied: "f" of `torch.sigmoid(f + 1)` and of `f.sigmoid()`; or ""."""
    return _applied(places_of(chain))[0] if chain else ""


@functools.lru_cache(maxsize=4096)
def _applied(places: tuple[tuple[CodeType, int], ...]) -> tuple[str, str, bool]:
    """(variable, text, whether the variable serves nothing else); of a helper that returns the result at once, that
    which its caller gives it. Places from the innermost call on."""
    found = ("", "", False)
    for code, at in places:
        call = calls_of(code.co_filename).get(position(code, at) or (0, 0, 0, 0))
        given = _given(call) if call is not None and (not found[0] or len(call.args) == 1) else None
        if call is None or given is None:
            break
        name = _called(call)
        variable = next(node.id for node in ast.walk(given) if isinstance(node, ast.Name))
        found = (variable, f"{name}({ast.unparse(given)})", _serves_only(code, variable, name))
        if not returned(code, at):
            break
    return found


def _given(call: ast.Call) -> ast.expr | None:
    """The argument, where it is made of one variable and numbers."""
    given = [*call.args, *(word.value for word in call.keywords if word.arg == "input")]
    if isinstance(call.func, ast.Attribute) and not call.args and not call.keywords:  # f.sigmoid()
        given = [call.func.value]
    if not given or not all(isinstance(node, PLAIN) for node in ast.walk(given[0])):
        return None
    return given[0] if len({node.id for node in ast.walk(given[0]) if isinstance(node, ast.Name)}) == 1 else None


def _called(call: ast.Call) -> str:
    """The function's bare name in the user's code."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _serves_only(code: CodeType, variable: str, name: str) -> bool:
    """Whether a function reads a variable nowhere but as the argument of functions of this name.

    Counter-example: a variable whose name is used twice, for a state and later for what a sigmoid is taken of, serves
    more; the gate is then called by its text.
    """
    node = functions_of(code.co_filename).get(code.co_firstlineno)
    if node is None:
        return True
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call) and _called(one) == name]
    own = {id(part) for one in calls if (given := _given(one)) is not None for part in ast.walk(given)}
    return all(
        id(one) in own for one in ast.walk(node)
        if isinstance(one, ast.Name) and one.id == variable and isinstance(one.ctx, ast.Load)
    )  # fmt: skip


def held_by(op: Op) -> Spelt | None:
    """The variable that exactly this operation's result is assigned to; None where there is none, or several.

    A part of a container is "G.f" of `G["f"]` and "L.0" of `L[0]`; a variable that the same function sets again later
    says so in its text.
    """
    target = target_of(op.chain) if op.chain else None
    if target is None and op.in_place and op.chain:  # `f.sigmoid_()` leaves its result in f
        variable, text, _ = _applied(places_of(op.chain))
        return Spelt(variable, variable) if variable and text.endswith(f"({variable})") else None
    if isinstance(target, ast.Subscript):
        return _part(target)
    if isinstance(target, ast.Attribute):
        return Spelt(target.attr, target.attr)
    return _scoped(places_of(op.chain), target) if isinstance(target, ast.Name) else None


def _part(target: ast.Subscript) -> Spelt | None:
    whole = target.value.attr if isinstance(target.value, ast.Attribute) else getattr(target.value, "id", "")
    key = target.slice.value if isinstance(target.slice, ast.Constant) else None
    name = as_name(f"{whole}.{key}", whole) if isinstance(key, (str, int)) else whole
    return Spelt(name, ast.unparse(target)) if whole else None


@functools.lru_cache(maxsize=4096)
def _scoped(places: tuple[tuple[CodeType, int], ...], target: ast.Name) -> Spelt:
    """A local variable: with its function where a caller has one of that name too, and with its line where the same
    function sets it again in a later one."""
    for n, (code, _) in enumerate(places):
        stored = _stores(code, target.id)
        if not any(span_of(one) == span_of(target) for one in stored):
            continue
        later = [one.lineno for one in stored if span_of(one) > span_of(target)]
        line = f" of line {target.lineno} (set again in line {min(later)})" if later else ""
        if any(_has_another(place, target.id) for place in _callers(places[n:])):
            return Spelt(f"{code.co_name}.{target.id}", f"{target.id} of {code.co_name}{line}")
        return Spelt(target.id, f"{target.id}{line}")
    return Spelt(target.id, target.id)


def _callers(places: tuple[tuple[CodeType, int], ...]) -> tuple[tuple[CodeType, int], ...]:
    """The calls of a helper within the same module: up to its `forward`."""
    inside = next((n for n, (code, _) in enumerate(places) if code.co_name == "forward"), len(places) - 1)
    return tuple(one for one in places[1 : inside + 1] if one[0] is not places[0][0])


def _has_another(place: tuple[CodeType, int], name: str) -> bool:
    """Whether a caller computes a variable of this name, other than by the statement of the call: `z = self.gate(x)`
    gets the helper's own."""
    code = place[0]
    return bool(_stores(code, name)) and name not in only_counted(code) and name not in targets_around((place,))


def _stores(code: CodeType, name: str) -> list[ast.Name]:
    """Where a function sets a variable."""
    node = functions_of(code.co_filename).get(code.co_firstlineno)
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)] if node is not None else []
    return [one for one in names if one.id == name and isinstance(one.ctx, ast.Store)]


MORE_CACHES += [_applied, _scoped]
