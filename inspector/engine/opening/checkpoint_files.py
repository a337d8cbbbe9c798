"""The files that a checkpoint consists of, and the SHA-256 of what was loaded from them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from inspector.capture.regular import in_words, open_regular
from inspector.engine.errors import InputError
from inspector.engine.registries import LOADERS
from inspector.records.json_text import read_json

T = TypeVar("T")


def files_of(path: Path) -> list[Path]:
    """A file alone, or with the shards that it names; of a folder what its loader reads. Raises OSError."""
    if not path.is_dir():
        named = _named_in(path) if path.name.endswith(".index.json") else []
        return [path, *(path.parent / name for name in named if (path.parent / name).is_file())]
    for _, loader in LOADERS.items():
        if getattr(loader, "folders", False) and loader.sniff(path, b""):
            if hasattr(loader, "files"):
                return list(loader.files(path))
            break
    return sorted(one for one in path.iterdir() if one.is_file())


def _named_in(index: Path) -> list[str]:
    try:
        return sorted({Path(str(name)).name for name in read_json(index.read_bytes())["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def read_and_hashed(path: Path, read: Callable[[Path], T]) -> tuple[T, str]:
    """What `read` makes of a checkpoint, and the SHA-256 of the bytes that it read.

    Of one file the digest that `sha256sum` prints; of several the digest of what `sha256sum` prints for them (digest,
    two spaces, name, a line each, by name). Raises InputError where the files changed meanwhile: no digest would be
    that of what was read. Counter-example: a change that leaves size and time of the file as they were.
    """
    before = _status(path)
    found, digest = read(path), _digest(path)
    if _status(path) != before:
        raise InputError(f"{path.name} changed while it was being read; open it again when it has been written.")
    return found, digest


def _status(path: Path) -> list[tuple[str, int, int]]:
    try:
        return [(str(file), (found := file.stat()).st_size, found.st_mtime_ns) for file in files_of(path)]
    except OSError:
        return []  # reading it says what is wrong with it


def _digest(path: Path) -> str:
    try:
        digests = {file: _sha256(file) for file in files_of(path)}
    except OSError as problem:
        raise InputError(f"{path.name} cannot be read: {in_words(problem)}.") from None
    if list(digests) == [path]:
        return digests[path]
    lines = "".join(f"{digests[file]}  {file.name}\n" for file in sorted(digests, key=lambda one: one.name))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def _sha256(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
