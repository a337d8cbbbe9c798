"""A file that is opened by its path finds the modules that lie beside it, and those of no other folder.

Its folder goes behind everything else in `sys.path`: a user's queue.py must not hide the standard one. Two files in
different folders may each have a `helper.py`; Python keeps one module by a name, so the second file would silently run
with the first one's.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from inspector.engine.errors import InputError
from inspector.engine.opening.local_imports import LARGEST_SOURCE, imported_names

_appended: dict[str, frozenset[str]] = {}
"""{folder that was appended to `sys.path`: the modules that were loaded before}."""


def append_folder(folder: str) -> None:
    """Append it to `sys.path`, before the folders of files that were opened earlier; what these loaded by a name that
    this folder has too is taken out of Python's table (models that use it keep it)."""
    if folder in sys.path and folder not in _appended:
        return  # the user's own order
    earlier = [place for place in sys.path if place in _appended and place != folder]
    if folder in sys.path:
        sys.path.remove(folder)
    sys.path.insert(sys.path.index(earlier[0]) if earlier else len(sys.path), folder)
    for name, module in list(sys.modules.items()):
        origin = _origin(module)
        other = next((place for place in earlier if origin.startswith(place + os.sep)), None)
        if other is not None and name not in _appended[other] and beside(folder, name.partition(".")[0]):
            del sys.modules[name]
    _appended.setdefault(folder, frozenset(sys.modules))
    importlib.invalidate_caches()


def require_own_modules(path: Path) -> None:
    """Raises InputError where a module beside the file is hidden by another one of its name."""
    for name in dict.fromkeys(_imported(path)):
        own = beside(str(path.parent), name)
        if own is None or name in sys.stdlib_module_names:
            continue
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            continue
        hides = found.origin if found is not None and found.has_location else None
        if hides is not None and not Path(hides).resolve().is_relative_to(path.parent):
            loaded = "is loaded already" if name in sys.modules else "comes first in sys.path"
            raise InputError(
                f"{path} imports {name}, which lies beside it ({own.name}), but {hides} {loaded}; rename one of them"
                + (", or open it in a new process." if name in sys.modules else ".")
            )


def beside(folder: str, name: str) -> Path | None:
    """The module or package of a top-level name in a folder."""
    for place in (Path(folder, name, "__init__.py"), Path(folder, f"{name}.py")):
        if place.is_file():
            return place if place.stem != "__init__" else place.parent
    return None


def _imported(path: Path) -> Iterator[str]:
    try:
        if path.stat().st_size > LARGEST_SOURCE:
            return
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # running it reports the error
    for node in ast.walk(tree):
        yield from (name.partition(".")[0] for name in imported_names(node, ""))


def _origin(module: ModuleType) -> str:
    return getattr(getattr(module, "__spec__", None), "origin", None) or ""
