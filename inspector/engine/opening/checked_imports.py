"""Python's loaders, changed to check every file of code from outside the installed packages before it runs.

A file is read once: its hash is compared with the one that the user trusted, and exactly these bytes are compiled.
`__pycache__` is neither read nor written for such code, since it need not come from the source beside it.
"""

from __future__ import annotations

import importlib.util
import io
import linecache
import marshal
import site
import sys
import sysconfig
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, Protocol
from zipimport import zipimporter

import torch

from inspector.workspace.samples import samples_folder

HEADER = 16
"""Bytes before the code of a compiled file (PEP 552)."""


class ImportPolicy(Protocol):
    """Decides which files may run."""

    def is_installed(self, path: str) -> bool:
        """Whether the file may run without being trusted by the user."""

    def check(self, path: str, content: bytes, name: str) -> bytes:
        """The content, or an error where it may not run."""

    def check_native(self, path: str, name: str) -> None:
        """An error where this extension module may not be loaded."""


def installed_folders() -> tuple[str, ...]:
    """Folders whose code always may run: the standard library, site-packages, this package and its samples."""
    paths = sysconfig.get_paths()
    found = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")] + site.getsitepackages()
    if site.ENABLE_USER_SITE:
        found.append(site.getusersitepackages())
    parts = (f"python{sys.version_info[0]}{sys.version_info[1]}.zip", "lib-dynload", "DLLs")  # of the standard library
    found += [place for place in sys.path if Path(place).name in parts and _is_pythons(place)]
    found += sys.modules[__name__.partition(".")[0]].__path__
    found += _with_torch()
    samples = samples_folder()
    if samples is not None:
        found.append(str(samples))
    return tuple(dict.fromkeys(place for folder in found for place in (folder, str(Path(folder).resolve()))))


def _with_torch() -> list[str]:
    """Torch's own folder, and the site-packages that it lies in where these are not the interpreter's own (a cluster's
    module, PYTHONPATH, a .pth file): torch imports parts of itself and what they need while a model runs."""
    package = Path(torch.__file__).parent
    around = [package.parent] if package.parent.name in ("site-packages", "dist-packages") else []
    return [str(place) for place in (package, *around)]


def _is_pythons(place: str) -> bool:
    return any(Path(place).is_relative_to(prefix) for prefix in (sys.base_prefix, sys.base_exec_prefix))


def check_imports(policy: ImportPolicy) -> Callable[[], None]:
    """Have every loader check, also one that a model makes by itself; call the returned function to undo it."""
    load_native = ExtensionFileLoader.create_module

    def get_code(original: Any) -> Any:
        def of(loader: Any, fullname: str) -> CodeType | None:
            path = loader.get_filename(fullname)
            if policy.is_installed(path):
                return original(loader, fullname)  # type: ignore[no-any-return]
            return _compiled(loader, path, policy.check(path, loader.get_data(path), fullname))

        return of

    def create_module(loader: Any, spec: Any) -> Any:
        if not policy.is_installed(loader.path):
            policy.check_native(loader.path, spec.name)
        return load_native(loader, spec)

    changes: list[tuple[Any, str, Any]] = [
        (kind, "get_code", get_code(kind.get_code)) for kind in (SourceFileLoader, SourcelessFileLoader, zipimporter)
    ]
    changes.append((ExtensionFileLoader, "create_module", create_module))
    before = [(kind, name, kind.__dict__.get(name)) for kind, name, _ in changes]
    for kind, name, function in changes:
        setattr(kind, name, function)
    return lambda: _put_back(before)


def _put_back(before: list[tuple[Any, str, Any]]) -> None:
    for kind, name, function in before:
        if function is None:  # it was inherited
            delattr(kind, name)
        else:
            setattr(kind, name, function)


def _compiled(loader: Any, path: str, content: bytes) -> CodeType:
    """The code in a file's content; tracebacks later show exactly the source that was compiled."""
    if path.endswith(".pyc"):
        if content[:4] != importlib.util.MAGIC_NUMBER:
            raise ImportError(f"{path} was compiled by another version of Python.")
        code: CodeType = marshal.loads(content[HEADER:])
        return code
    if isinstance(loader, SourceFileLoader):  # a loader that instruments what it loads does so here
        code = loader.source_to_code(content, path)
    else:
        code = compile(content, path, "exec", dont_inherit=True)
    lines = io.StringIO(importlib.util.decode_source(content)).readlines()
    linecache.cache[path] = (len(content), None, lines, path)  # without a time it is never read again
    return code
