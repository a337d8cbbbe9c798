"""A run that replaces a capture is written beside it, and takes its place as a whole once it has ended.

Until then the old capture is untouched; after that the new one is there: the two folders exchange their names in one
call of the system (renameat2(2), RENAME_EXCHANGE), so that a kill or a power cut at any moment leaves one or the other
under the name. Where a system or a file system has no such call, `store.py` replaces the old one in its own folder.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
from pathlib import Path

from inspector.capture.appending import folder_to_disk
from inspector.capture.layout import INDEX, SUFFIX, CaptureError
from inspector.capture.regular import in_words
from inspector.capture.target import in_use, index_files, is_ours, page_files

EXCHANGE, HERE = 2, -100
"""RENAME_EXCHANGE and AT_FDCWD of <linux/fs.h> and <fcntl.h>."""


def free_name_beside(path: Path) -> tuple[Path, list[Path]]:
    """A name for the run that is to replace the capture at `path`, and that nothing has; and what runs that were killed
    have left under such names."""
    stem, suffix = (path.name.removesuffix(SUFFIX), SUFFIX) if path.name.endswith(SUFFIX) else (path.name, "")
    number, left = 1, list[Path]()
    while True:
        found = path.with_name(f"{stem}.new{'' if number == 1 else f'-{number}'}{suffix}")
        if not os.path.lexists(found):
            return found, left
        if is_ours(found / INDEX) and not in_use(found / INDEX):
            left.append(found)
        number += 1


def can_exchange(folder: Path) -> bool:
    """Whether two folders in this one can exchange their names; tried with two empty ones."""
    names = [folder / f".inspector-{secrets.token_hex(6)}" for _ in range(2)]
    try:
        for name in names:
            name.mkdir()
        _exchange(*names)
    except (OSError, AttributeError):
        return False
    finally:
        for name in names:
            with contextlib.suppress(OSError):
                name.rmdir()
    return True


def take_place(new: Path, old: Path) -> None:
    """The finished capture `new` gets the name of the capture `old`, which is removed. What else lies in the folder of
    `old` stays under its name. Raises CaptureError; then each is whole under the name that it had."""
    kept = f"the new run is in {new}, and {old} is as it was"
    if not is_ours(old / INDEX):
        raise CaptureError(f"{old} is no capture any more; {kept}.")
    if in_use(old / INDEX):
        raise CaptureError(f"{old} is being written by another run by now; {kept}.")
    try:
        with contextlib.suppress(OSError):
            shutil.copymode(old, new)
        _exchange(new, old)
    except (OSError, AttributeError) as problem:
        why = in_words(problem) if isinstance(problem, OSError) else "this system cannot exchange two folders"
        raise CaptureError(f"{old} could not be replaced ({why}); {kept}.") from None
    folder_to_disk(old.parent)
    _remove(new, old)


def _remove(replaced: Path, new: Path) -> None:
    """Remove a capture that was replaced; files that are none of its own go on in the folder of the new one."""
    own = {*index_files(replaced), *page_files(replaced).values()}
    with contextlib.suppress(OSError):  # what cannot be removed stays beside it
        for other in replaced.iterdir():
            if other not in own and not os.path.lexists(new / other.name):
                other.rename(new / other.name)
        for path in sorted(own):
            path.unlink()
        replaced.rmdir()


def remove_unused(new: Path) -> None:
    """Remove what was begun for a run that has captured nothing."""
    with contextlib.suppress(OSError):
        for path in (*index_files(new), *page_files(new).values()):
            path.unlink()
        new.rmdir()


def _exchange(one: Path, other: Path) -> None:
    """Raises OSError, or AttributeError where there is no such call."""
    if sys.platform != "linux":
        raise AttributeError("renameat2")
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).renameat2
    if call(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one))
