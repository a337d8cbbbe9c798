"""Ordinary files, and nothing else: opening a named pipe waits forever, a device has no end, a socket no bytes.

A path from outside is checked before it is opened, opened without waiting, and checked again once it is open.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from io import BufferedReader, FileIO, TextIOWrapper
from pathlib import Path

KINDS = {
    stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}  # fmt: skip
AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
BINARY = getattr(os, "O_BINARY", 0)


class NotRegularError(OSError):
    """A path is not an ordinary file; `strerror` says what it is."""

    def __init__(self, path: Path | str, mode: int) -> None:
        kind = KINDS.get(stat.S_IFMT(mode), "not a file that can be read")
        super().__init__(errno.EINVAL, f"it is {kind}, not an ordinary file", str(path))


def is_there(path: Path | str) -> bool:
    """Whether something is at a path, which may be any text: longer than a name may be, with a NUL in it, or in the
    home of a user that does not exist."""
    return _looked(path, Path.exists)


def is_a_file(path: Path | str) -> bool:
    """Whether a file is there; the path may be any text."""
    return _looked(path, Path.is_file)


def is_a_folder(path: Path | str) -> bool:
    """Whether a folder is there; the path may be any text."""
    return _looked(path, Path.is_dir)


def path_of(text: Path | str) -> Path:
    """The path that a text names, `~` being a home; as it stands where that home is not known."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def _looked(path: Path | str, look: Callable[[Path], bool]) -> bool:
    try:
        return look(path_of(path))
    except (OSError, ValueError):
        return False


def regular_stat(path: Path | str) -> os.stat_result:
    """The status of an ordinary file. Raises NotRegularError, or OSError where it cannot be read.

    Links are followed; a link that leads in a circle raises OSError.
    """
    found = os.stat(path)  # noqa: PTH116 - also for strings
    if not stat.S_ISREG(found.st_mode):
        raise NotRegularError(path, found.st_mode)
    return found


def open_regular(path: Path | str) -> BufferedReader:
    """Open an ordinary file for reading bytes. Raises NotRegularError or OSError, and never waits."""
    return BufferedReader(open_unbuffered(path))


def open_unbuffered(path: Path | str) -> FileIO:
    """The same, for reading pieces at chosen offsets."""
    regular_stat(path)
    number = os.open(path, os.O_RDONLY | AT_ONCE | BINARY)
    try:
        mode = os.fstat(number).st_mode
        if not stat.S_ISREG(mode):  # another one was put there in the meantime
            raise NotRegularError(path, mode)
        return FileIO(number, "rb")
    except BaseException:
        os.close(number)
        raise


def read_text(path: Path | str) -> str:
    """The whole of an ordinary file as UTF-8 text. Raises as `open_regular` does, or UnicodeDecodeError."""
    with open_regular(path) as file, TextIOWrapper(file, encoding="utf-8") as text:
        return text.read()


def in_words(problem: OSError) -> str:
    """Why a file cannot be read, as the end of a sentence: "it is a named pipe, not an ordinary file"."""
    return (problem.strerror or str(problem)).rstrip(".")
