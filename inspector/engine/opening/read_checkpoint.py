"""Reading a checkpoint by the loader that knows it, whatever model it is for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inspector.capture.regular import in_words, open_regular
from inspector.engine.contracts import Loader, State
from inspector.engine.errors import InputError
from inspector.engine.opening.refused_formats import by_content, by_name
from inspector.engine.registries import LOADERS


def read_checkpoint(path: Path) -> State:
    """The tensors in a checkpoint, by the first loader that knows it. Raises InputError."""
    return loader_of(path).load(path)


def loader_of(path: Path) -> Loader:
    """The first loader that knows a file or folder. Raises InputError."""
    folder = loader_of_folder(path) if path.is_dir() else None
    if folder is not None:
        return folder
    head = first_bytes(path)
    if not head:
        raise InputError(f"{path.name} is empty; expected a checkpoint.")
    for key in _loaders(path):
        loader = LOADERS[key]
        if loader.sniff(path, head) and not (_is_ours(key) and _only_by_name(key, path, head)):
            return loader
    foreign = by_content(path, head) or by_name(path)
    if foreign is not None:
        raise InputError(f"{path.name} is {foreign.what}, {foreign.advice}.")
    raise InputError(f"{path.name} is not a checkpoint of a known format; there are {', '.join(known_suffixes())}.")


def loader_of_folder(path: Path) -> Loader | None:
    """The loader of a checkpoint that is a folder; None where it is a folder of something else."""
    able = (LOADERS[key] for key in _loaders(path) if getattr(LOADERS[key], "folders", False))
    return next((loader for loader in able if loader.sniff(path, b"")), None)


def _loaders(path: Path) -> list[str]:
    """The keys of all loaders, those first that name the file's suffix, and of these those of other packages."""
    suffix = path.suffix.lower()
    return sorted(LOADERS, key=lambda key: (suffix not in LOADERS[key].suffixes, _is_ours(key)))


def _is_ours(key: str) -> bool:
    return LOADERS.origin(key).startswith(f"{LOADERS.package}.")


def _only_by_name(key: str, path: Path, head: bytes) -> bool:
    """Whether a file that begins like something else is recognised by its name alone:
    a GGUF file named .safetensors."""
    foreign = by_content(path, head)
    if foreign is None or path.suffix.lower() in foreign.suffixes or foreign.loader == key:
        return False
    return not LOADERS[key].sniff(path.with_suffix(""), head)


def known_suffixes() -> tuple[str, ...]:
    return tuple(suffix for _, loader in LOADERS.items() for suffix in loader.suffixes)


def first_bytes(path: Path) -> bytes:
    """The first 4096 bytes. Raises InputError."""
    if path.is_dir():
        held = checkpoints_in(path)
        if not held and (closed := _why_closed(path)):
            raise InputError(f"{path} cannot be looked into: {closed}.")
        one = (
            f"the checkpoint in it is {path / held[0]}" if len(held) == 1 else f"the checkpoints in it are {few(held)}"
        )
        raise InputError(f"{path} is a folder; {one if held else 'there is no checkpoint in it'}.")
    try:
        with open_regular(path) as file:
            return file.read(4096)
    except FileNotFoundError:
        raise InputError(f"There is no checkpoint {path}.") from None
    except (OSError, ValueError) as problem:
        why = in_words(problem) if isinstance(problem, OSError) else problem
        raise InputError(f"{path} cannot be read: {why}.") from None


def _why_closed(folder: Path) -> str:
    """Why nobody may look into a folder; "" where its files are listed."""
    try:
        next(folder.iterdir(), None)
    except OSError as problem:
        return in_words(problem)
    return ""


def checkpoints_in(path: Path) -> list[str]:
    """Names of the files of a folder that end as checkpoints do."""
    try:
        return sorted(one.name for one in path.iterdir() if one.suffix.lower() in known_suffixes() and one.is_file())
    except OSError:
        return []


def few(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")
