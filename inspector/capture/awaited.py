"""That a capture has no writer now because its training is elsewhere and its connection broke: a listener waits.

The listener leaves a small file in the folder `control` with its process, so that one that ended counts for nothing,
and with the capture's folder and its path: a copy of it is not waited for, nor is one that was moved from where the
training will come back to. It takes its own word away once the
training is back or has ended, and nobody else's. Without it the run would be said to have ended, which nobody knows.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from inspector.capture.control import FOLDER
from inspector.capture.identity import identity
from inspector.capture.owner import is_alive, own_lease
from inspector.capture.private import folder_for
from inspector.capture.regular import open_regular
from inspector.capture.whole_file import replace_whole
from inspector.records.json_text import read_json

NAME = "listener.json"
MOST_BYTES = 32768
_FIELDS = {"pid", "started", "device", "inode", "path"}


class Awaiting:
    """Of one listener, and one capture. Nothing is raised: where the file cannot be written (a full disk) the run is
    said to be unfinished, as if nobody waited."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._own: dict[str, Any] | None = None

    def begin(self) -> None:
        """This process waits for the training that writes the capture. Of several that wait the last one is told."""
        pid, mark, _ = own_lease()
        place = identity(self._path)
        if place is None:
            return
        own = {"pid": pid, "started": mark, "device": place[0], "inode": place[1], "path": str(self._path.absolute())}
        with suppress(OSError):
            replace_whole(folder_for(self._path / FOLDER) / NAME, json.dumps(own).encode())
            self._own = own

    def end(self) -> None:
        """The training is back, has ended, or is not waited for any more."""
        own, self._own = self._own, None
        if own is not None and _told(self._path)[0] == own:
            with suppress(OSError):
                self._take_away(own, self._path / FOLDER / NAME)

    def _take_away(self, own: dict[str, Any], at: Path) -> None:
        """Remove the file, unless it is another one by now: another listener may write its own between a look and a
        removal, so the file is moved to a name that nobody else has, looked at there, and put back."""
        aside = at.with_name(f".{NAME}-{secrets.token_hex(8)}.part")
        at.rename(aside)
        try:
            if _told(self._path, aside.name)[0] != own:
                _put_back(aside, at)
        finally:
            aside.unlink(missing_ok=True)


def awaited_since(path: Path) -> float | None:
    """Since when a listener that is alive waits for the training of a capture, in seconds since 1970; None where none
    does. Never raises: the file may be anybody's."""
    told, since = _told(path)
    if set(told) != _FIELDS:
        return None
    pid, mark = told["pid"], told["started"]
    if type(pid) is not int or not isinstance(mark, str) or not _waits_at(told, path):
        return None
    return since if is_alive(pid, mark) else None


def _waits_at(told: dict[str, Any], path: Path) -> bool:
    """Whether the folder is the one that was waited for, and still stands there, by whatever name it is opened."""
    place = identity(path)
    if place is None or (told["device"], told["inode"]) != place or not isinstance(told["path"], str):
        return False
    with suppress(ValueError, OSError):  # a name with a zero byte: the file may be anybody's
        return identity(Path(told["path"])) == place
    return False


def _put_back(aside: Path, at: Path) -> None:
    """Where there is one again it is later, and stays."""
    try:
        os.link(aside, at)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        if not at.exists():
            aside.rename(at)


def _told(path: Path, name: str = NAME) -> tuple[dict[str, Any], float]:
    """(what the file says, since when); ({}, 0.0) where it is none, or not in a folder of the capture's own."""
    try:
        if (path / FOLDER).is_symlink():
            return {}, 0.0
        with open_regular(path / FOLDER / name) as file:
            told, since = read_json(file.read(MOST_BYTES + 1)[:MOST_BYTES]), os.fstat(file.fileno()).st_mtime
    except (OSError, ValueError):
        return {}, 0.0
    return (told, since) if isinstance(told, dict) else ({}, 0.0)
