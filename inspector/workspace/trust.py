"""Which code the user agreed to run: files by path and content, remembered in the user's configuration folder.

The list is as sensitive as the code: whoever can write it can have code run. It is private to the user, replaced as a
whole, and ignored where anybody else could have written it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import platformdirs

from inspector.capture.whole_file import replace_whole
from inspector.records.json_text import read_json

LARGEST_LIST = 16 << 20
MOST_FILES = 20_000
"""Files that are remembered; the oldest agreements go first. All of them travel to the worker in one record."""
PATIENCE = 2.0
"""Seconds to wait while another window writes the list, which takes milliseconds."""
_SHA256 = re.compile("[0-9a-f]{64}")


class NotRegularError(OSError):
    """A path that is not a regular file, or a file that is too large."""


def store() -> Path:
    """The file of the list: a JSON object of absolute paths and the SHA-256 of what was agreed to."""
    return Path(platformdirs.user_config_dir("inspector", appauthor=False)) / "trusted.json"


def digest(content: bytes) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def read_regular(path: Path | str, most: int) -> tuple[bytes, os.stat_result]:
    """A regular file's content and status, opened without waiting: a named pipe would never answer.

    Raises OSError; NotRegularError for anything that is not a regular file or has more than `most` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise NotRegularError(f"{path} is not a regular file")
        if about.st_size > most:
            raise NotRegularError(f"{path} has {about.st_size} bytes; at most {most} are read")
        return file.read(), about


def agreed_files() -> tuple[dict[str, str], str]:
    """{absolute path: SHA-256} of the files agreed to, and a one-line message where the list could not be used, or
    ""."""
    path = store()
    try:
        content, about = read_regular(path, LARGEST_LIST)
        problem = _writable_by_others(about)
        known = {} if problem else read_json(content)
        if not isinstance(known, dict):
            problem = "it is not a list of files"
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError) as fault:
        problem = getattr(fault, "strerror", None) or str(fault)
    if problem:
        return {}, f"The list of trusted code {path} cannot be used ({problem}); every file will be asked about again."
    return {path: sha for path, sha in known.items() if isinstance(sha, str) and _SHA256.fullmatch(sha)}, ""


def _writable_by_others(about: os.stat_result) -> str:
    if sys.platform == "win32":
        return ""
    if about.st_uid not in (0, os.geteuid()):
        return "it belongs to another user"
    return "other users may write to it" if about.st_mode & 0o022 else ""


def agree(files: Mapping[str, str]) -> None:
    """Remember that the user agreed to run these files ({absolute path: SHA-256}). Raises OSError.

    Files agreed to in another window meanwhile stay.
    """
    folder = store().parent
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    with _alone(folder):
        known = {path: sha for path, sha in agreed_files()[0].items() if path not in files}
        listed = list({**known, **files}.items())[-MOST_FILES:]
        replace_whole(store(), json.dumps(dict(listed), indent=1).encode("ascii"), synchronised=True)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock that ends with the process. Raises OSError when another one holds it for too long."""
    descriptor = os.open(folder / "trusted.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                _lock(descriptor)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Take the lock or raise OSError; closing the file gives it back."""
    if sys.platform == "win32":
        import msvcrt

        windows: Any = msvcrt
        windows.locking(descriptor, windows.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
