"""The callables of a Python file that could make a model, found by parsing it: none of it runs."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from inspector.capture.regular import path_of

MOST_BYTES = 4 << 20
MAKERS = ("make", "build", "create", "get", "load", "model", "new")
"""Usual names of functions that make something; `make_data` matches too, and is listed after names with "model"."""
NOT_MODELS = ("main", "train", "test", "eval", "run", "parse", "plot")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Found:
    """One callable: its name, its parameters as they are written ("hidden=64, layers=2"), and the first line of its
    docstring."""

    name: str
    parameters: str
    says: str

    @property
    def words(self) -> str:
        """As it is listed."""
        return f"{self.name}({self.parameters})" + (f"  {self.says}" if self.says else "")


def callables(path: Path | str) -> list[str]:
    """Names of functions and classes at the top level of a file, the most likely to make a model first.

    [] where there are none, or where the file cannot be read or parsed: the worker reports why when it is opened.
    """
    return [node.name for node in _ranked(path)]


def described(path: Path | str) -> list[Found]:
    """The same with their parameters and what they say of themselves."""
    return [
        Found(node.name, _parameters(node), (ast.get_docstring(node) or "").split("\n")[0]) for node in _ranked(path)
    ]


def lone(path: Path | str) -> str:
    """The one callable of a file that can be meant where none is named: the only one, a function `make`, or the only
    function that makes something where the others are classes, trainings and the like; "" where there is a choice."""
    found = _ranked(path)
    functions = [
        node for node in found
        if not isinstance(node, ast.ClassDef) and not node.name.lower().startswith(NOT_MODELS)
    ]  # fmt: skip
    makes = [node for node in functions if node.name.lower().startswith(MAKERS)]
    if any(node.name == "make" for node in functions):  # as the documentation calls it, whatever helps beside it
        return "make"
    if len(found) == 1 or (len(functions) == 1 and makes):
        return found[0].name if len(found) == 1 else makes[0].name
    return ""


def _parameters(node: Definition) -> str:
    """The parameters of a function, or of a class' constructor without the first."""
    made: ast.stmt | None = node
    if isinstance(node, ast.ClassDef):
        made = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    if not isinstance(made, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ""
    text = ast.unparse(made.args)
    return text.partition(", ")[2] if isinstance(node, ast.ClassDef) else text


def _ranked(path: Path | str) -> list[Definition]:
    try:
        file = path_of(path)
        if not file.is_file() or file.stat().st_size > MOST_BYTES:
            return []
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RuntimeError, MemoryError):
        return []
    found = {node.name: node for node in tree.body if isinstance(node, Definition) and not node.name.startswith("_")}
    modules, used = _modules(found), _used_inside(found)
    order = list(found)
    ranked = sorted(found, key=lambda name: (_rank(found[name], name in modules, name in used), -order.index(name)))
    return [found[name] for name in ranked if not isinstance(found[name], ast.AsyncFunctionDef)]


def _rank(node: Definition, module: bool, part: bool) -> int:
    """How likely a definition makes the model, 0 the most likely;
    of equals the last comes first, since it may use the others."""
    name = node.name.lower()
    if isinstance(node, ast.ClassDef):
        return (2 if part else 1) if module else 6
    if name.startswith(NOT_MODELS):
        return 7
    if name.startswith(MAKERS):
        return 0 if name in MAKERS or "model" in name or "net" in name else 3
    return 4 if "model" in name or "net" in name else 5


def _modules(found: dict[str, Definition]) -> set[str]:
    """Classes below torch's Module, as far as the file itself shows it."""
    classes = {name: node for name, node in found.items() if isinstance(node, ast.ClassDef)}
    below: set[str] = set()
    for _ in classes:
        below |= {name for name, node in classes.items() if any(_is_module(base, below) for base in node.bases)}
    return below


def _is_module(base: ast.expr, known: set[str]) -> bool:
    name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
    return name.endswith("Module") or name in known


def _used_inside(found: dict[str, Definition]) -> set[str]:
    """Names that other definitions of the file use: a cell of which a model is made is not the model.

    In a file with a function `make` that calls the class `Model`, `Model` is among them; `make` comes first anyway.
    """
    used: set[str] = set()
    for name, node in found.items():
        if isinstance(node, ast.ClassDef):
            used |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and inner.id != name}
    return used


__all__ = ["Found", "callables", "described", "lone"]
