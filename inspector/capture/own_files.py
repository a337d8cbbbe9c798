"""What of a folder is copied or packed: its own files, and only where there is room for them.

A capture may come from anybody. A link in it may lead to a private file of its reader's, which would be mailed with the
copy, or to a device that never ends; a file with a hole may claim any length.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from inspector.capture.layout import CaptureError


def is_own(path: Path) -> bool:
    """Whether a path is an ordinary file or folder, and no link."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def require_own(path: Path, done: str) -> None:
    """Raises CaptureError where a file is a link; `done` says what is not done with it."""
    if path.is_symlink():
        raise CaptureError(f"{path} is a link to another file, so it is not {done}; put the file itself there.")


def require_room(folder: Path, files: Iterable[Path]) -> None:
    """Raises CaptureError where files have more bytes than the disk of a folder has room for; OSError."""
    needed, free = sum(os.lstat(one).st_size for one in files), shutil.disk_usage(folder).free
    if needed > free:
        raise CaptureError(f"{folder} has room for {free:,} bytes; {needed:,} are needed.", full=True)
