"""That a capture has no writer now because its training is elsewhere and its connection broke: a listener waits.

The listener leaves a small file in the folder `control` with its process, so that one that ended counts for nothing,
and takes it away once the training is back or has ended. Without it the run would be said to have ended, which nobody
knows.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from inspector.capture.control import FOLDER
from inspector.capture.owner import is_alive, own_lease
from inspector.capture.private import private_file
from inspector.capture.regular import open_regular
from inspector.records.json_text import read_json

NAME = "listener.json"
MOST_BYTES = 1024


def await_training(path: Path) -> None:
    """This process waits for the training that writes the capture in a folder. Where the file cannot be written (a full
    disk) the run is said to be unfinished, as if nobody waited."""
    pid, mark, _ = own_lease()
    folder = path / FOLDER
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink():  # somebody's capture must not choose where this writes
            return
        partial = folder / f".{NAME}.part"
        with private_file(partial) as file:
            file.write(json.dumps({"pid": pid, "started": mark}).encode())
        partial.replace(folder / NAME)


def await_no_more(path: Path) -> None:
    """The training is back, has ended, or is not waited for any more."""
    with suppress(OSError):
        (path / FOLDER / NAME).unlink(missing_ok=True)


def awaited_since(path: Path) -> float | None:
    """Since when a listener that is alive waits for the training of a capture, in seconds since 1970; None where none
    does. Never raises: the file may be anybody's."""
    try:
        with open_regular(path / FOLDER / NAME) as file:
            told, since = read_json(file.read(MOST_BYTES + 1)[:MOST_BYTES]), os.fstat(file.fileno()).st_mtime
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict) or set(told) != {"pid", "started"}:
        return None
    pid, mark = told["pid"], told["started"]
    return since if type(pid) is int and isinstance(mark, str) and is_alive(pid, mark) else None
