"""A text file that a command writes as a whole."""

from __future__ import annotations

from pathlib import Path

from inspector.capture.regular import in_words
from inspector.capture.whole_file import replace_whole
from inspector.cli.fault import Fault


def write_whole(path: Path, text: str) -> None:
    """Where that fails, what was there before stays. A device or a pipe is written as it is. Raises Fault."""
    target = path.resolve()  # what a link leads to
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        replace_whole(target, text.encode("utf-8"), shared=True, synchronised=True)
    except OSError as problem:
        raise Fault(f"{path} cannot be written ({in_words(problem)}); it is as it was.") from None
