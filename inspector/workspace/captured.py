"""Which word of a command is a capture, and which names a subject."""

from __future__ import annotations

from pathlib import Path

from inspector.capture import PACKED_SUFFIX
from inspector.capture.layout import INDEX
from inspector.capture.regular import is_a_file, is_there
from inspector.workspace.samples import find_sample
from inspector.workspace.trainings import path_or_training


def captured_at(word: str) -> Path | None:
    """The capture at a path, or of the recorded training of that name; None for what is no capture (a subject)."""
    path = Path(path_or_training(word))
    if find_sample(word) is not None and not is_there(path):
        return None
    packed = is_a_file(path) and path.name.endswith(PACKED_SUFFIX)
    return path if packed or is_a_file(path / INDEX) else None
