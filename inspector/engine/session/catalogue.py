"""The catalogue: every entry of the engine's registries, with all that it declares, as the window gets it."""

from __future__ import annotations

from typing import Any

import torch

from inspector.engine.cells.family import FAMILIES
from inspector.engine.devices.present import present
from inspector.engine.pipeline import set_threads
from inspector.engine.registries import CURES, INPUTS, LOADERS, PROBES, QUANTITIES
from inspector.records import Catalog, Entry, decode, encode
from inspector.registry import Registry

REGISTRIES: tuple[Registry[Any], ...] = (PROBES, QUANTITIES, LOADERS, INPUTS, FAMILIES, CURES)


def catalog() -> Catalog:
    """What this worker offers. Entries that cannot be imported are named under `broken` and do not affect others."""
    threads = set_threads()
    torch.sparse.check_sparse_tensor_invariants.enable()
    listed = {registry.name: entries(registry) for registry in REGISTRIES}  # loads them, and finds what is broken
    broken = tuple(f"{bad.origin}: {bad.reason}" for registry in REGISTRIES for bad in registry.broken)
    return Catalog(torch=torch.__version__, threads=threads, devices=present(), broken=broken, **listed)


def entries(registry: Registry[Any]) -> tuple[Entry, ...]:
    """The entries of a registry as records;
    one whose declaration is not a valid record is removed from the registry."""
    found = []
    for key, entry in registry.items():
        try:
            found.append(decode(encode(described(key, entry))))
        except (TypeError, ValueError) as problem:
            registry.drop(key, f"the declaration of the entry {key!r} cannot be used: {problem}")
    return tuple(found)


def described(key: str, entry: Any) -> Entry:
    """What an entry declares. What it does not declare has the default of the record."""
    said = {
        name: getattr(entry, name)
        for name in (
            "title", "summary", "default", "order", "needs", "cost", "cheap", "options", "suffixes", "form", "reads",
            "prompt", "choices", "rules",
        )
        if getattr(entry, name, None) is not None
    }  # fmt: skip
    magic = tuple(beginning.hex() for beginning in getattr(entry, "magic", ()))
    return Entry(**{"title": key, **said, "key": key, "magic": magic})
