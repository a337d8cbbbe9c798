"""A text file that a command writes as a whole."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from inspector.capture.regular import in_words
from inspector.cli.fault import Fault


def write_whole(path: Path, text: str) -> None:
    """Where that fails, what was there before stays. A device or a pipe is written as it is. Raises Fault."""
    target = path.resolve()  # what a link leads to
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as problem:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise Fault(f"{path} cannot be written ({in_words(problem)}); it is as it was.") from None
