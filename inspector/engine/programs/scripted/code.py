"""The code in an archive of TorchScript, in Python's syntax, made Python's: classes and functions by qualified name.

Changed are annotations (left out), casts (what is cast), and calls of a module's `forward`, which become calls of the
module, so that its hooks run.
"""

from __future__ import annotations

import ast
import linecache
from collections import namedtuple
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from torch import nn

CASTS = {"annotate": 1, "unchecked_cast": 1}
"""Functions of which one argument is the result."""


class Scope(SimpleNamespace):
    """A namespace: `__torch__.torch.nn`."""


class Readable(ast.NodeTransformer):
    """TorchScript's code as Python runs it."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Without annotations."""
        node.returns = None
        for one in node.args.args:
            one.annotation = None
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """`x : T = v` in a function is `x = v`."""
        if node.value is None:
            return None
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Call(self, node: ast.Call) -> Any:
        """Casts are what is cast; `m.forward(x)` is `m(x)`."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in CASTS:
            return node.args[CASTS[node.func.id]]
        if isinstance(node.func, ast.Name) and node.func.id == "uninitialized":
            return ast.copy_location(ast.Constant(None), node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "forward":
            node.func = node.func.value
        return node


class Code:
    """The code of an archive. `files`: {path inside `code/`: its text}; `names`: what every file may use."""

    def __init__(self, files: Mapping[str, str], names: Mapping[str, Any], title: str) -> None:
        self.root = Scope()
        self.classes: dict[str, dict[str, Any]] = {}
        """Of every class of modules: its functions by name, its constants, and the names of its attributes."""
        self.title = title
        shared = {**names, "__torch__": self.root, "inf": float("inf"), "nan": float("nan")}
        for path, text in sorted(files.items()):
            self._read(path, text, shared)

    def _read(self, path: str, text: str, shared: Mapping[str, Any]) -> None:
        tree = ast.parse(text)
        within = path.removesuffix(".py").split("/")
        filename = f"<{self.title}: {path}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        scope = self._scope(within[1:])
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self._class(node, ".".join(within), scope, shared, filename)
            elif isinstance(node, ast.FunctionDef):
                setattr(scope, node.name, _function(node, shared, filename))

    def _scope(self, parts: list[str]) -> Any:
        found: Any = self.root
        for part in parts:
            if not hasattr(found, part):
                setattr(found, part, Scope())
            found = getattr(found, part)
        return found

    def _class(self, node: ast.ClassDef, within: str, scope: Any, shared: Mapping[str, Any], filename: str) -> None:
        base = node.bases[0].id if node.bases and isinstance(node.bases[0], ast.Name) else ""
        attributes, constants = _attributes(node)
        functions = {
            one.name: _function(one, shared, filename) for one in node.body if isinstance(one, ast.FunctionDef)
        }
        if base == "Module":
            self.classes[f"{within}.{node.name}"] = {
                "functions": functions, "constants": constants, "attributes": attributes,
            }  # fmt: skip
        elif base == "NamedTuple":
            setattr(scope, node.name, namedtuple(node.name, attributes))
        else:
            setattr(scope, node.name, type(node.name, (), functions))

    def class_of(self, qualified: str) -> type[nn.Module]:
        """A class of modules of its own, with the functions of TorchScript's. Raises KeyError where there is none."""
        said = self.classes[qualified]
        return type(qualified.rpartition(".")[2], (nn.Module,), {**said["constants"], **said["functions"]})


def _function(node: ast.FunctionDef, shared: Mapping[str, Any], filename: str) -> Callable[..., Any]:
    module = ast.Module([Readable().visit(node)], [])
    scope = dict(shared)
    exec(compile(ast.fix_missing_locations(module), filename, "exec", dont_inherit=True), scope)
    made: Callable[..., Any] = scope[node.name]
    return made


def _attributes(node: ast.ClassDef) -> tuple[list[str], dict[str, Any]]:
    """(names of attributes, constants) of a class."""
    names: list[str] = []
    constants: dict[str, Any] = {}
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            if one.value is None:
                names.append(one.target.id)
            else:
                constants[one.target.id] = _literal(one.value)
        elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Subscript):
            key = one.targets[0].slice
            if isinstance(key, ast.Constant):
                names.append(str(key.value))
    return names, constants


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
