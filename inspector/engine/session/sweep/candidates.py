"""Which files and folders are checkpoints: those of a folder, of a pattern, or as they are named."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from inspector.capture.regular import in_words, open_regular, path_of
from inspector.engine.errors import InputError
from inspector.engine.registries import LOADERS
from inspector.records import counted
from inspector.records.json_text import read_json

BESIDE = ("optimizer.", "scheduler.", "scaler.", "rng_state", "training_args.", "tmp-checkpoint", "tokenizer", ".")
"""How the names of files begin that trainers write beside the weights."""
WILD = "*?["
MAX_INDEX = 64 << 20
DEEP = 3
"""Folders below the one that is given in which checkpoints are looked for, to be named in the message."""


def checkpoints_in(paths: Sequence[str]) -> list[Path]:
    """The checkpoints that folders, patterns and names stand for, each once, as absolute paths.

    A link to another of them (`last.ckpt`) does not count. Raises InputError where a path does not exist, and where
    there is none.
    """
    found = [path for given in paths for path in _of(given)]
    places = {_place(path) for path in found if not path.is_symlink()}
    return list(dict.fromkeys(path for path in found if not path.is_symlink() or _place(path) not in places))


def _place(path: Path) -> str:
    """Where it really is; of links in a circle some place (`Path.resolve` raises): its frame says what is wrong."""
    return os.path.realpath(path)


def _of(given: str) -> Iterator[Path]:
    path = path_of(given).absolute()
    if path.exists() or path.is_symlink():
        yield from [path] if not path.is_dir() or is_checkpoint_folder(path) else _inside(path)
    elif any(letter in given for letter in WILD):
        matches = sorted(Path(one) for one in glob.glob(str(path), recursive=True))  # noqa: PTH207 - absolute patterns
        shards = {shard for folder in {one.parent for one in matches} for shard in _shards(folder)}
        yield from (one for one in matches if _is_checkpoint(one) and one not in shards)
    else:
        raise InputError(f"There is no {given}; expected a folder of checkpoints, a pattern ('run/*.pt'), or files.")


def _inside(folder: Path) -> Iterator[Path]:
    """Raises InputError where nobody may look into it."""
    shards = _shards(folder)
    try:
        listed = sorted(folder.iterdir())
    except OSError as problem:
        raise InputError(f"{folder} cannot be looked into: {in_words(problem)}.") from None
    yield from (path for path in listed if _is_checkpoint(path) and path not in shards)


def _is_checkpoint(path: Path) -> bool:
    if path.name.startswith(BESIDE):
        return False
    if path.is_dir():
        return is_checkpoint_folder(path)
    return path.name.endswith(suffixes()) and (path.is_file() or path.is_symlink())


def is_checkpoint_folder(path: Path) -> bool:
    """Whether a folder is one checkpoint, by the loaders that read folders.

    A folder of checkpoints may hold the last weights too (`model.safetensors` beside `checkpoint-500`): then it is not.
    """
    able = [loader for _, loader in LOADERS.items() if getattr(loader, "folders", False)]
    if not any(loader.sniff(path, b"") for loader in able):
        return False
    below = (one for one in path.iterdir() if one.is_dir() and not one.name.startswith(BESIDE))
    return not any(loader.sniff(one, b"") for one in below for loader in able)


def suffixes() -> tuple[str, ...]:
    """How the names of checkpoint files end."""
    return tuple(suffix for _, loader in LOADERS.items() for suffix in loader.suffixes)


def _shards(folder: Path) -> set[Path]:
    """Files that hold a part of a checkpoint, by the indexes beside them."""
    found: set[Path] = set()
    for index in folder.glob("*.index.json"):
        try:
            with open_regular(index) as file:
                raw: Any = read_json(file.read(MAX_INDEX))
        except (OSError, ValueError):
            continue  # its loader will say what is wrong
        places = raw.get("weight_map") if isinstance(raw, dict) else None
        found |= {folder / str(place) for place in places.values()} if isinstance(places, dict) else set()
    return found


def _held(folder: Path) -> int:
    """How many checkpoints a folder has; none where nobody may look into it."""
    try:
        return len(list(_inside(folder)))
    except InputError:
        return 0


def nothing_in(paths: Sequence[str]) -> str:
    """The message where there is no checkpoint, with folders below that have some."""
    below: dict[str, int] = {}
    for given in paths:
        top = path_of(given)
        for depth in range(1, DEEP + 1) if top.is_dir() else ():
            for folder in sorted(top.glob("/".join("*" * depth))):
                if folder.is_dir() and not is_checkpoint_folder(folder) and (held := _held(folder)):
                    below[str(folder)] = held
    named = ", ".join(f"{folder} has {held}" for folder, held in list(below.items())[:4])
    more = f"; {named}" if named else f"; files end with {', '.join(suffixes())}"
    where = paths[0] if len(paths) == 1 else counted(len(paths), "path")
    return f"There is no checkpoint in {where}{more}."
