"""The user's own code in the worker: none of it runs unless the user agreed to its content, and none of it is out of
date.

Opening a model loads all of it again, so that an edited helper module takes effect; the hash that was agreed to is
compared with the bytes that are compiled (`checked_imports`). Not checked: code that runs without being imported
(`exec`, `runpy.run_path`), and processes that the user's code starts.
"""

from __future__ import annotations

import importlib
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from inspector.engine.errors import InputError
from inspector.engine.opening.checked_imports import installed_folders
from inspector.engine.opening.local_imports import LocalImports
from inspector.engine.recurrent.traced.record.source_names import forget_sources
from inspector.records import CodeFile, Load
from inspector.workspace.trust import digest, read_regular

ImportSearch = Callable[[LocalImports], dict[str, str]]


class NotAgreedError(InputError):
    """Code that the user has not agreed to was about to run; `files` are its files."""

    def __init__(self, files: tuple[CodeFile, ...]) -> None:
        first, more = files[0], len(files) - 1
        others = f" (and {more} more)" if more else ""
        what = "changed since you agreed to run it" if first.what == "changed" else "is code that you did not agree to"
        super().__init__(f"{first.path} {what}{others}; it was not run.")
        self.files = files


class UserCode:
    """Which of the user's code is loaded, and which may be. One for each process, made before any of it is loaded."""

    def __init__(self) -> None:
        self.trusted = False
        self.agreed: Mapping[str, str] = {}
        self.loaded: dict[str, str] = {}
        """{absolute path: SHA-256} of the code of the model that is open."""
        self.refused: dict[str, str] = {}
        """The same for code that was not agreed to; a model may catch the error that is raised then."""
        self._search: ImportSearch = lambda _imports: {}
        """Searches from the opened file or module to all that it may import."""
        self._native: dict[str, str] = {}
        self._installed = tuple(os.path.normcase(folder) + os.sep for folder in installed_folders())
        self._path = list(sys.path)
        self._before = frozenset(sys.modules)

    # -- called by the loaders

    def is_installed(self, path: str) -> bool:
        """Whether a file may always run, by the path as it is opened: a link can be changed between two checks."""
        place = os.path.normcase(str(Path(path).absolute()))
        return place.startswith(self._installed) and f"{os.sep}..{os.sep}" not in place

    def check(self, path: str, content: bytes, name: str) -> bytes:
        """The content of a file that is about to run as the module `name`. Raises NotAgreedError."""
        place, sha = str(Path(path).absolute()), digest(content)
        if not self.trusted and self.agreed.get(place) != sha:
            # The path is another one now than when the model was opened: what it imports has to be agreed to as well.
            search = LocalImports(self.is_installed)
            self.refused |= self._missing({**self._search(search), **search.of_file(Path(place), name), place: sha})
            raise NotAgreedError(self._named({place: sha}))
        self.loaded[place] = sha
        return content

    def check_native(self, path: str, name: str) -> None:
        """The same for an extension module. Raises InputError where one that was loaded before has other content."""
        content, _ = read_regular(path, sys.maxsize)
        if self._native.get(path, digest(content)) != digest(content):
            raise InputError(f"{path} has changed, and native code cannot be loaded again; restart the program.")
        self.check(path, content, name)
        self._native[path] = digest(content)

    def refusal(self) -> NotAgreedError | None:
        """The error about all code that was not run since the last opening or run began; None when there is none."""
        return NotAgreedError(self._named(self.refused)) if self.refused else None

    def _named(self, files: Mapping[str, str]) -> tuple[CodeFile, ...]:
        return tuple(
            CodeFile(path=path, sha256=sha, what="changed" if path in self.agreed else "new")
            for path, sha in files.items()
        )

    # -- opening

    def require_file(self, path: Path) -> None:
        """Require agreement to a file that is run by its path and to all that it may import. Raises NotAgreedError."""
        self._require(lambda imports: imports.of_file(path))

    def require_module(self, name: str) -> None:
        """The same for a module by name. Raises NotAgreedError."""
        self._require(lambda imports: imports.of_module(name))

    def require_content(self, path: Path, content: bytes) -> None:
        """Require agreement to a file that is a program, of this content. Raises NotAgreedError."""
        place, sha = str(path.absolute()), digest(content)
        self._require(lambda _imports: {place: sha})
        self.loaded[place] = sha

    def _require(self, search: ImportSearch) -> None:
        self._search = search
        missing = {} if self.trusted else self._missing(search(LocalImports(self.is_installed)))
        if missing:
            raise NotAgreedError(self._named(missing))

    def _missing(self, files: Mapping[str, str]) -> dict[str, str]:
        return {path: sha for path, sha in files.items() if self.agreed.get(path) != sha}

    @contextmanager
    def opening(self, load: Load) -> Iterator[None]:
        """Load all of the user's code again, as `load` allows it; where that fails, everything is as it was before.

        Raises NotAgreedError where code was not allowed to run, even where the user's code caught the error.
        """
        kept = (self.trusted, self.agreed, self.loaded, self._search, list(sys.path))
        modules = self._forget()
        self.trusted, self.agreed, self.loaded, self.refused = load.trusted, load.agreed, {}, {}
        self._search = lambda _imports: {}
        sys.path[:] = self._path
        try:
            yield
            if self.refused:
                raise NotAgreedError(self._named(self.refused))
        except BaseException as fault:
            refusal = self.refusal()
            self._forget()
            self.trusted, self.agreed, self.loaded, self._search, sys.path[:] = kept
            sys.modules.update(modules)
            if refusal is not None and isinstance(fault, Exception):
                raise refusal from fault
            raise

    def changed(self) -> bool:
        """Whether a file of the open model has another content now than what was loaded of it."""
        return any(_differs(path, sha) for path, sha in self.loaded.items())

    def _forget(self) -> dict[str, ModuleType]:
        """Take the user's modules out of Python's table, and their source out of the caches; returns the modules."""
        later = {name: module for name, module in sys.modules.items() if name not in self._before}
        own = {name: module for name, module in later.items() if self._is_own(module)}
        for name in own:
            del sys.modules[name]
        importlib.invalidate_caches()
        linecache.clearcache()
        forget_sources()
        return own

    def _is_own(self, module: Any) -> bool:
        spec = getattr(module, "__spec__", None)
        if spec is None:  # made without a loader, by unknown code
            return False
        if spec.origin is None:  # a folder without __init__.py
            return any(not self.is_installed(str(folder)) for folder in spec.submodule_search_locations or ())
        return bool(spec.has_location) and not self.is_installed(spec.origin)


def _differs(path: str, sha: str) -> bool:
    try:
        return digest(read_regular(path, sys.maxsize)[0]) != sha
    except OSError:
        return False  # it was deleted: what was loaded of it is still valid
