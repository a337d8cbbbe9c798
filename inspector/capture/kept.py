"""The runs that windows store in one folder: their names in order, and which of them may be removed.

Names begin with a number that only grows, so that a clock that is set back changes nothing. Every window lists in a
file of its own (with its process, so that a dead window's file does not count) the captures that it shows or waits for.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from inspector.capture.layout import INDEX, SUFFIX, CaptureError
from inspector.capture.owner import is_alive, own_lease
from inspector.capture.regular import open_regular
from inspector.capture.target import in_use, index_files, is_ours, page_files
from inspector.capture.whole_file import replace_whole
from inspector.records.json_text import read_json

HELD = ".held"
GOING = ".going"
"""The suffix of a capture's name while it is being removed."""
MAX_HELD_BYTES = 64 << 10
_NUMBERED = re.compile(r"run-(\d{1,15})-")


class KeptRuns:
    """The runs in one folder, as one window sees them. No method raises because of what other windows do meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pid, self._mark, token = own_lease()
        self._word = folder / HELD / f"{self._pid}-{token}.json"
        self._last = 0

    def next_path(self) -> Path:
        """The path of the next run; its number is higher than that of any run in the folder."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(OSError):  # another user's folder: the files written in it are private anyway
            self.folder.chmod(0o700)  # one of an earlier version
        self._last = max([self._last, *(_number(path) for path in self._found())]) + 1
        name = f"run-{self._last:06d}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}{SUFFIX}"
        return self.folder / name

    def hold(self, paths: Iterable[Path]) -> None:
        """Register the captures that this window shows or waits for; those in other folders are never removed."""
        names = sorted({path.name for path in paths if self._is_here(path)})
        if not names:
            self.release()
            return
        told = json.dumps({"pid": self._pid, "started": self._mark, "names": names}).encode()
        with suppress(OSError):  # a full disk: then no run is written that could be removed, either
            self._word.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_whole(self._word, told)

    def _is_here(self, path: Path) -> bool:
        try:
            return path.parent.resolve() == self.folder.resolve()
        except (OSError, RuntimeError):
            return False

    def release(self) -> None:
        """This window no longer shows any of the runs."""
        with suppress(OSError):
            self._word.unlink(missing_ok=True)

    def prune(self, keep: int) -> None:
        """Remove all but the newest `keep` runs, except those that a window shows and those still being written."""
        for path in self.folder.glob(f"*{SUFFIX}{GOING}"):
            self._remove(path)  # another window began and was killed
        found = sorted(self._found(), key=lambda path: (_number(path), path.name))
        for path in found[: max(0, len(found) - keep)]:
            going = path.with_name(path.name + GOING)
            if path.name in self._held() or not _may_go(path):
                continue
            with suppress(OSError):  # another window was quicker, or the system locks open files
                path.rename(going)
                self._remove(going)

    def listed(self) -> list[tuple[Path, int]]:
        """The runs in the folder with the bytes of their files, newest first; not those that are being removed."""
        found = sorted(self._found(), key=lambda path: (_number(path), path.name), reverse=True)
        return [(path, size_of(path)) for path in found]

    def _remove(self, going: Path) -> None:
        """Remove a capture under its last name; its own name is restored if a window needs it meanwhile."""
        own = going.with_name(going.name.removesuffix(GOING))
        with suppress(OSError):
            if own.name in self._held():
                going.rename(own)
                return
            remove_capture(going)

    def _found(self) -> list[Path]:
        return [path for path in self.folder.glob(f"*{SUFFIX}") if path.is_dir() and not path.is_symlink()]

    def _held(self) -> set[str]:
        """Names that a living window holds; the files of dead ones are removed."""
        names: set[str] = set()
        for word in (self.folder / HELD).glob("*.json"):
            with suppress(OSError, ValueError, KeyError, TypeError, OverflowError):
                with open_regular(word) as file:
                    data = file.read(MAX_HELD_BYTES + 1)
                if len(data) <= MAX_HELD_BYTES:
                    told = read_json(data.decode("utf-8"))
                    if is_alive(int(told["pid"]), str(told["started"])):
                        names.update(map(str, told["names"]))
                    else:
                        word.unlink(missing_ok=True)
        return names


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder; those that disappear meanwhile count as nothing."""
    total = 0
    with suppress(OSError), os.scandir(folder) as files:
        for file in files:
            with suppress(OSError):
                total += file.stat(follow_symlinks=False).st_size
    return total


def _may_go(folder: Path) -> bool:
    """Whether a folder is empty, or has a capture that is not being written."""
    try:
        if not any(folder.iterdir()):
            return True
    except OSError:
        return False
    try:
        return is_ours(folder / INDEX) and not in_use(folder / INDEX)
    except CaptureError:  # a pipe or a folder where SQLite keeps a file
        return False


def remove_capture(folder: Path) -> None:
    """Remove the files that a capture owns, then the folder if nothing else is in it. Anything else stays.

    Raises OSError where the system does not release a file.
    """
    if is_ours(folder / INDEX):
        for path in (*page_files(folder).values(), *reversed(index_files(folder))):
            path.unlink(missing_ok=True)
    with suppress(OSError):  # other files are in it
        folder.rmdir()


def _number(path: Path) -> int:
    """The number that a run's name begins with; 0 for names of earlier versions, which begin with a date."""
    found = _NUMBERED.match(path.name)
    return int(found[1]) if found else 0
