"""Where a watched training writes: a path of its own process, that nothing else is at."""

from __future__ import annotations

from pathlib import Path

import torch.distributed as dist

from inspector.capture import CaptureError
from inspector.capture.regular import in_words
from inspector.engine.watch.processes.ranks import several
from inspector.records.plain_text import shortened


def own_path(path: Path) -> Path:
    """The path of this process: processes that train models of their own write captures of their own."""
    rank = dist.get_rank() if several() else 0
    return path if not rank else path.with_name(f"{path.name.removesuffix(path.suffix)}-process-{rank}{path.suffix}")


def free_path(path: Path) -> Path:
    """The path, or with a number where it exists: a training that is started again replaces nothing.

    Raises CaptureError.
    """
    try:
        if not path.exists():
            return path
    except OSError as problem:
        raise CaptureError(f"Nothing can be written at {shortened(str(path), 200)} ({in_words(problem)}).") from None
    stem, suffix = path.name.removesuffix(path.suffix), path.suffix
    numbered = (path.with_name(f"{stem}-{n}{suffix}") for n in range(2, 100_000))
    return next(one for one in numbered if not one.exists())
