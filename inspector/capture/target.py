"""Where a capture may be written: what is recognised as a capture, which files it owns, and what is never changed."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from pathlib import Path

from inspector.capture.connection import Connection, check_beside
from inspector.capture.layout import APPLICATION_ID, INDEX, BusyError, CaptureError
from inspector.capture.owner import is_alive

MAGIC = b"SQLite format 3\x00"
ID_AT = 68
"""Where the header of an SQLite file holds the application id: four bytes, the largest first."""
HEADER_BYTES = 100
_INDEX_FILES = tuple(INDEX + suffix for suffix in ("", "-wal", "-shm", "-journal"))
_PAGES = re.compile(r"pages-(\d{4})\.bin\Z")


def check_target(path: Path, overwrite: bool) -> bool:
    """Whether a capture at `path` will be replaced (True) or a new folder is made (False); nothing is changed.

    Raises CaptureError for a path that is not a capture's folder, and for a capture without `overwrite`.
    """
    try:
        if path.is_symlink():
            raise CaptureError(f"{path} is a symbolic link; a capture gets a folder of its own: choose another name.")
        if not path.exists():
            return False
        if not path.is_dir():
            raise CaptureError(f"{path} is a file; a capture is a folder: choose another name.")
        if path.samefile(Path.cwd()):
            raise CaptureError(f"{path} is the current directory; a capture gets a folder of its own: name one.")
        return _check_folder(path, overwrite)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise CaptureError(f"A capture cannot be written to {path}: {reason}.") from None


def _check_folder(path: Path, overwrite: bool) -> bool:
    if not any(path.iterdir()):
        return False
    if not os.path.lexists(path / INDEX):
        raise CaptureError(f"{path} is a folder with other files in it, not a capture; choose another name.")
    if not is_ours(path / INDEX):
        raise CaptureError(
            f"{path} holds an {INDEX} that is not a capture's, so nothing is written there; choose another name."
        )
    _check_beside(path)
    if not overwrite:
        raise CaptureError(
            f"{path} already holds a capture; choose another name, or replace it with --overwrite (overwrite=True)."
        )
    if in_use(path / INDEX):
        raise busy(path)
    return True


def _check_beside(path: Path) -> None:
    """SQLite would write through a link in place of one of its files beside an index, wherever it leads."""
    check_beside(path / INDEX)
    for name in _INDEX_FILES[1:]:
        if (path / name).is_symlink():
            raise CaptureError(f"{path / name} is a symbolic link, so nothing is written there; choose another name.")


def busy(path: Path) -> CaptureError:
    """The error about a capture that is being written."""
    return CaptureError(f"{path} is being written by another run; choose another name or end that run first.")


def is_ours(index: Path) -> bool:
    """Whether a file is the index of a capture, by its first bytes. Anything but a regular file is never opened."""
    try:
        if not stat.S_ISREG(index.lstat().st_mode):
            return False
        with index.open("rb") as file:
            head = file.read(HEADER_BYTES)
    except OSError:
        return False
    return has_our_id(head)


def has_our_id(head: bytes) -> bool:
    """Whether the first bytes of a file are those of an SQLite database with the application id of captures."""
    return head.startswith(MAGIC) and head[ID_AT : ID_AT + 4] == APPLICATION_ID.to_bytes(4, "big")


def in_use(index: Path) -> bool:
    """Whether a process that is alive writes the capture of this index.

    Raises CaptureError where SQLite would open something that is no ordinary file, and perhaps wait forever.
    """
    check_beside(index)
    try:
        with Connection(index) as connection:
            return is_leased(connection)
    except BusyError:  # a locked index is being changed
        return True
    except (CaptureError, sqlite3.Error):  # a damaged one is useless to any writer
        return False


def is_leased(connection: sqlite3.Connection) -> bool:
    """Whether the lease in an index belongs to a process that is alive."""
    try:
        rows = connection.execute("SELECT pid, started FROM lease").fetchall()
    except sqlite3.OperationalError:  # there is no such table
        return False
    return any(isinstance(pid, int) and isinstance(mark, str) and is_alive(pid, mark) for pid, mark in rows)


def is_damage(problem: sqlite3.Error) -> bool:
    """Whether SQLite reports that a file is damaged, rather than locked, full or unreachable."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def index_files(folder: Path) -> list[Path]:
    """The index of a capture and what SQLite keeps beside it, where they exist as regular files."""
    return [path for name in _INDEX_FILES if _is_regular(path := folder / name)]


def page_files(folder: Path) -> dict[int, Path]:
    """The page files in a folder by their number; files with other names are ignored."""
    found = ((_PAGES.match(path.name), path) for path in folder.iterdir())
    return {int(match[1]): path for match, path in found if match and _is_regular(path)}


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
