"""Files that a folder of weights names lie in it: a link in a folder that somebody else made may lead anywhere."""

from __future__ import annotations

import re
from pathlib import Path

from inspector.engine.errors import InputError
from inspector.records.plain_text import shortened

BLOBS = "blobs"
_DIGEST = re.compile(r"[0-9a-f]{40,64}\Z")


def require_inside(folder: Path, name: str) -> None:
    """Raises InputError where a file of a folder is a link that leads out of it.

    Hugging Face's cache is as it is made: `snapshots/REVISION/NAME` is a link to `blobs/DIGEST` beside `snapshots`. A
    folder that is itself a link is taken for what it leads to.
    """
    try:
        found, own = (folder / name).resolve(), folder.resolve()
    except (OSError, RuntimeError):
        raise InputError(f"{folder.name}/{shortened(name, 80)} is a link that leads nowhere.") from None
    except ValueError:  # a zero byte
        raise InputError(f"{folder.name} names {shortened(name, 80)!r}, which is no name of a file.") from None
    cached = own.parent.parent / BLOBS
    if not found.is_relative_to(own) and not (found.parent == cached and _DIGEST.match(found.name)):
        raise InputError(
            f"{folder.name}/{shortened(name, 80)} is a link out of its folder, which is not followed; put the "
            "file itself there, "
            "or open it by its own name."
        )
