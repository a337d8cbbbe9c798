"""The logs in a folder, found within bounds: links that lead out are not followed, pipes and devices not opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from inspector.capture.layout import INDEX
from inspector.capture.logs.reader import HEAD, LOGS, LogReader
from inspector.capture.regular import in_words, open_regular
from inspector.records.plain_text import plain_sentence

DEEPEST = 64
"""Folders inside folders that are looked into."""
MOST_ENTRIES = 100_000
"""Files and folders that are looked at."""
MOST_FILES = 2_000
"""Log files that are opened."""
NOTHING: Mapping[Path, str] = {}
Noted = Callable[[int], None]
"""Called with how many entries were seen, before each folder and now and then within one; what it raises ends the
search."""
OFTEN = 256
"""Entries after which that is called again."""


@dataclass(slots=True)
class Search:
    """What was found: (file, key of its reader) in order, and what was not looked at, a sentence each."""

    found: list[tuple[Path, str]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    seen: int = 0
    too_deep: str = ""
    """The first folder that was not looked into, because it lies too deep."""
    not_listed: str = ""
    """What is said of the first folder that cannot be listed."""
    most: int = 0
    """How many logs are enough; 0: none is left out."""
    noted: Noted | None = None

    @property
    def enough(self) -> bool:
        """Whether as many were found as are asked for."""
        return 0 < self.most <= len(self.found)

    def take(self, path: Path, key: str, root: str) -> bool:
        """Take one more log; whether no more are looked for."""
        if len(self.found) >= MOST_FILES:
            self.left_out.append(f"{root} has more than the {MOST_FILES:,} log files that are read.")
            return True
        self.found.append((path, key))
        return self.enough

    def count(self) -> int:
        """How many entries were seen, with one more."""
        self.seen += 1
        if self.seen % OFTEN == 0:
            self.note()
        return self.seen

    def note(self) -> None:
        """Say how many entries were seen."""
        if self.noted is not None:
            self.noted(self.seen)


def logs_at(path: Path, known: Mapping[Path, str] = NOTHING) -> Search:
    """The logs at a path, a file or a folder. `known`: files that were recognised before, which are not looked into
    again. Raises OSError where it cannot be read."""
    if path.is_dir():
        return search(path, known)
    key = recognise(path)
    return Search([(path, key)] if key else [])


def has_logs(path: Path, noted: Noted | None = None) -> bool:
    """Whether `logs_at` finds any: looks no further than the first. Raises OSError where it cannot be read."""
    if path.is_dir():
        return bool(search(path, most=1, noted=noted).found)
    return bool(recognise(path))


def search(
    folder: Path, known_files: Mapping[Path, str] = NOTHING, *, most: int = 0, noted: Noted | None = None
) -> Search:
    """All logs below a folder, or the first `most` that are come upon. Raises OSError where the folder itself cannot
    be listed."""
    done, root = Search(most=most, noted=noted), Path(os.path.realpath(folder))
    known: set[str] = set()
    waiting = [(folder, 0)]
    while waiting:
        here, depth = waiting.pop(0)
        real = os.path.realpath(here)
        if real in known:
            continue
        known.add(real)
        below = _look(here, depth, root, done, known_files)
        if done.left_out or done.enough:
            break
        waiting += [(path, depth + 1) for path in below]
    if done.too_deep:
        done.left_out.append(
            f"{done.too_deep} is more than {DEEPEST} folders deep in {root.name}: nothing in such folders is read."
        )
    if done.not_listed:
        done.left_out.append(plain_sentence(done.not_listed))
    done.found.sort(key=lambda one: (LOGS[one[1]].order, one[1], one[0]))
    return done


def _look(here: Path, depth: int, root: Path, done: Search, known: Mapping[Path, str]) -> list[Path]:
    """The folders in a folder; its logs are noted."""
    done.note()
    try:
        with os.scandir(here) as entries:
            listed = sorted((entry.name, entry) for entry in entries)
    except OSError as problem:
        if here == root or depth == 0:
            raise
        done.not_listed = done.not_listed or f"{here.name} cannot be looked into: {in_words(problem)}."
        return []
    below: list[Path] = []
    for name, entry in listed:
        if done.count() > MOST_ENTRIES:
            done.left_out.append(f"{root.name} has more than the {MOST_ENTRIES:,} files that are looked at.")
            return below
        if name.startswith(".") or (entry.is_symlink() and not _inside(entry.path, root)):
            continue
        path = here / name
        if _is(entry.is_dir):
            if entry.is_symlink():
                continue  # what it leads to inside the folder is found where it is
            if os.path.exists(path / INDEX):  # noqa: PTH110 - Path.exists raises where a folder may not be looked into
                continue
            if depth < DEEPEST:
                below.append(path)
            else:
                done.too_deep = done.too_deep or entry.name
            continue
        key = (known.get(path) or recognise(path, in_folder=True)) if _is(entry.is_file) else ""
        if key and done.take(path, key, root.name):
            break
    return below


def _is(asked: Callable[[], bool]) -> bool:
    """Whether an entry is a folder, or a file: neither where that cannot be told, as of links that lead in a circle."""
    try:
        return asked()
    except OSError:
        return False


def _inside(path: str, root: Path) -> bool:
    try:
        return Path(os.path.realpath(path)).is_relative_to(root)
    except OSError:
        return False


def recognise(path: Path, *, in_folder: bool = False) -> str:
    """The key of the reader of a file: by its first bytes, else by its name; "" where there is none.

    In a folder only files with a known name are looked into. Raises OSError unless `in_folder`.
    """
    readers = sorted(LOGS.items(), key=lambda one: (one[1].order, one[0]))
    named = [(key, reader) for key, reader in readers if _is_named(reader, path.name)]
    if in_folder and not named:
        return ""
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
    except OSError:
        if in_folder:
            return ""
        raise
    for key, reader in readers:
        if head.startswith(tuple(reader.magic)) or reader.sniff(path, head):
            return key
    return next((key for key, reader in named if reader.certain or not in_folder), "")


def _is_named(reader: LogReader, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in reader.names)
