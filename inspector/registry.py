"""Registries: a folder is scanned, and every file in it registers its entry under a literal key.

A registry (probes, quantities, loaders, inputs, logs, rules, panels) is one `Registry` object. A file of the registry
calls `REGISTRY.register("key")` on its class or function; nothing else is edited. Other packages add entries through
the entry-point group `inspector.<registry name>`. A broken file is reported and the others still load; two files
with one key are an error that names both.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R", bound=object)


CLOSE = 0.6
"""Similarity (difflib's ratio) from which a name counts as a misspelling of another: "bppt" for "bptt" is 0.75, "gru"
for "gates" 0.25. Names that contain what was typed ("entropy" in "attention/entropy") are far less similar and count
too."""
MOST_CLOSE = 4


def instead(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that does not exist: the names close to it, or else all names."""
    names = sorted(known)
    return close_to(name, names) or f"there are {', '.join(names) or 'none'}"


def close_to(name: str, known: Iterable[str]) -> str:
    """The few names that may have been meant, the most similar first, as the end of a message; "" for none."""
    names = sorted(known)
    close = get_close_matches(name, names, MOST_CLOSE, CLOSE)
    close += [other for other in names if len(name) > 2 and name in other and other not in close]
    close = close[:MOST_CLOSE]
    return f"close to it {'is' if len(close) == 1 else 'are'} {', '.join(close)}" if close else ""


class DoubleKeyError(ValueError):
    """Two entries of one registry claim the same key; the message names both origins."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A file or entry point of a registry that could not be imported, and why (one line)."""

    origin: str
    reason: str


class Registry(Generic[T]):
    """Entries of one kind by key, filled once from the package `package` and from entry points.

    `load()` imports every module inside the package, in its sub-packages too; it runs at the first look-up.
    """

    def __init__(self, name: str, package: str) -> None:
        self.name = name
        self.package = package
        self.broken: list[Broken] = []
        self._entries: dict[str, T] = {}
        self._origins: dict[str, str] = {}
        self._loaded = False

    def register(self, key: str) -> Callable[[R], R]:
        """Decorator that enters its object under `key`. Raises DoubleKeyError for a taken key."""

        origin = str(sys._getframe(1).f_globals["__name__"])  # the file that registers it, not the class of the entry

        def put(entry: R) -> R:
            if key in self._entries and self._origins[key] != origin:
                raise DoubleKeyError(f"{self.name} {key!r} is offered by both {self._origins[key]} and {origin}.")
            self._entries[key] = entry  # type: ignore[assignment]
            self._origins[key] = origin
            return entry

        return put

    def load(self) -> None:
        """Import every file of the registry and every entry point once; broken ones are listed in `broken`."""
        if self._loaded:
            return
        self._loaded = True
        package = importlib.import_module(self.package)
        # A sub-package that cannot be imported is skipped here and reported by `_import`, which tries it again.
        found = pkgutil.walk_packages(package.__path__, f"{self.package}.", onerror=lambda _name: None)
        for name in sorted(module.name for module in found):
            self._import(name, importlib.import_module)
        for point in entry_points(group=f"inspector.{self.name}"):
            try:
                self._import(point.value, lambda _name, point=point: point.load())  # type: ignore[misc]
            except DoubleKeyError as error:  # raised for this package; reported for others
                self.broken.append(Broken(point.value, str(error)))

    def _import(self, origin: str, load: Callable[[str], Any]) -> None:
        """Run code that registers entries. Where it fails half-way, none of its entries stays."""
        before = dict(self._entries), dict(self._origins)
        try:
            load(origin)
        except DoubleKeyError:
            self._entries, self._origins = before
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - one broken file must not empty the registry
            self._entries, self._origins = before
            self.broken.append(Broken(origin, " ".join(f"{type(error).__name__}: {error}".split())))

    def drop(self, key: str, reason: str) -> None:
        """Remove an entry that cannot be used, and list the reason in `broken`."""
        self.broken.append(Broken(self._origins.pop(key), reason))
        del self._entries[key]

    def __getitem__(self, key: str) -> T:
        self.load()
        try:
            return self._entries[key]
        except KeyError:
            raise KeyError(f"No {self.name} {key!r}; there are: {', '.join(sorted(self._entries))}.") from None

    def __contains__(self, key: object) -> bool:
        self.load()
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        self.load()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self.load()
        return len(self._entries)

    def items(self) -> list[tuple[str, T]]:
        """All (key, entry) pairs, by key."""
        self.load()
        return sorted(self._entries.items())

    def origin(self, key: str) -> str:
        """The module that registered `key`."""
        self.load()
        return self._origins[key]
