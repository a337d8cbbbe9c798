"""Which files of code running a module may import: found by reading them, so that the user is asked once for all of
them.

Nothing is imported here. What is only known at run time (`import_module(name)`) is not found: `user_code` stops it.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from inspector.workspace.trust import digest, read_regular

MOST_FILES = 5_000
LONGEST_NAME = 200
LARGEST_FILE = 64 << 20
LARGEST_SOURCE = 4 << 20
"""Bytes of a source file whose imports are read; a larger one is data in the shape of code and is only listed."""


@dataclass(frozen=True, slots=True)
class Found:
    """A module by its name ("" where it is run by its path), its file, and the folders of its submodules."""

    name: str
    file: Path | None
    folders: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """What relative imports in it are relative to."""
        return self.name if self.folders else self.name.rpartition(".")[0]


@dataclass(slots=True)
class LocalImports:
    """Follows imports from file to file. `is_installed(path)` decides where to stop."""

    is_installed: Callable[[str], bool]
    _known: dict[str, Found | None] = field(default_factory=dict)

    def of_file(self, path: Path, name: str = "") -> dict[str, str]:
        """{absolute path: SHA-256} of a file that is run by its path or as a module, and of what it may import."""
        return self._follow([Found(name, path, (str(path.parent),) if path.stem == "__init__" else ())])

    def of_module(self, name: str) -> dict[str, str]:
        """The same of a module by name, with the packages that it lies in."""
        return self._follow(self._with_parents(name))

    def _follow(self, waiting: list[Found]) -> dict[str, str]:
        files: dict[str, str] = {}
        while waiting and len(files) < MOST_FILES:
            found = waiting.pop()
            path = str(found.file or "")
            if not path or path in files or self.is_installed(path):
                continue
            try:
                content, _ = read_regular(path, LARGEST_FILE)
            except OSError:
                continue  # importing it will report the error
            files[path] = digest(content)
            if path.endswith(".py") and len(content) <= LARGEST_SOURCE:
                waiting += self._imported(found, content)
        return files

    def _imported(self, found: Found, content: bytes) -> Iterable[Found]:
        try:
            tree = ast.parse(content)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ()
        names = dict.fromkeys(name for node in ast.walk(tree) for name in imported_names(node, found.package))
        return [module for name in names for module in self._with_parents(name)]

    def _with_parents(self, name: str) -> list[Found]:
        """a, a.b and a.b.c of "a.b.c": importing the last runs them all."""
        parts = name.split(".")
        if not all(part.isidentifier() and len(part) <= LONGEST_NAME for part in parts):
            return []
        found = (self._find(".".join(parts[:n])) for n in range(1, len(parts) + 1))
        return [module for module in found if module is not None]

    def _find(self, name: str) -> Found | None:
        if name not in self._known:
            head, _, tail = name.rpartition(".")
            parent = self._find(head) if head else None
            self._known[name] = (_submodule(parent, name, tail) if parent else None) if head else _top_level(name)
        return self._known[name]


def imported_names(node: ast.AST, package: str) -> Iterator[str]:
    """The absolute names of the modules that a statement may import."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        if node.level and not (package and above):
            return  # beyond the top: Python will reject it
        base = ".".join([*above, *([node.module] if node.module else [])])
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")
    elif isinstance(node, ast.Call) and node.args and _called(node) in ("import_module", "__import__"):
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and not first.value.startswith("."):
            yield first.value


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _top_level(name: str) -> Found | None:
    """Where Python's own finders find it, or where it was loaded from; None where that is not a file."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    file = Path(spec.origin) if spec.has_location and spec.origin else None
    return Found(name, file, tuple(spec.submodule_search_locations or ()))


def _submodule(parent: Found, name: str, tail: str) -> Found | None:
    """As Python's file finder looks: a package first, then a module, then a folder without `__init__`."""
    bases = [Path(folder) / tail for folder in parent.folders]
    for base in bases:
        for suffix in importlib.machinery.all_suffixes():
            if (file := base / f"__init__{suffix}").is_file():
                return Found(name, file, (str(base),))
        for suffix in importlib.machinery.all_suffixes():
            if (file := base.parent / f"{tail}{suffix}").is_file():
                return Found(name, file)
    open_folders = tuple(str(base) for base in bases if base.is_dir())
    return Found(name, None, open_folders) if open_folders else None
