"""A file that is written as a whole: under another name beside it, which then takes its place."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path


def replace_whole(path: Path, content: bytes, *, shared: bool = False, synchronised: bool = False) -> None:
    """Write a file that only its user can read, or with `shared` whoever may read the one that was there, or any new
    one. Where that fails, what was there stays and nothing is left beside it. `synchronised`: it outlives a loss of
    power too, which what only living processes tell each other need not. Raises OSError."""
    number, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}-", suffix=".part")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            if synchronised:
                file.flush()
                os.fsync(file.fileno())
        if shared:
            with suppress(OSError):  # a file system without modes: some sticks and shares
                Path(partial).chmod(_mode_of(path))
        Path(partial).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(partial).unlink(missing_ok=True)
        raise


def _mode_of(path: Path) -> int:
    """Of the file that is there, of a new one where there is none."""
    with suppress(OSError):
        found = path.lstat().st_mode
        if stat.S_ISREG(found):
            return stat.S_IMODE(found) & 0o777
    return 0o666 & ~_umask()


def _umask() -> int:
    present = os.umask(0)
    os.umask(present)
    return present
