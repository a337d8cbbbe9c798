"""A file whose suffix says what it is: text, numbers or sound; token ids from .ids."""

from __future__ import annotations

from dataclasses import replace

from inspector.engine.batching import regular_file
from inspector.engine.errors import InputError
from inspector.engine.shelves import INPUTS
from inspector.engine.subject import Batch, Subject
from inspector.records import InputSpec

BY_SUFFIX = {
    ".npy": "numbers", ".npz": "numbers", ".csv": "numbers", ".wav": "audio", ".flac": "audio", ".ogg": "audio",
    ".txt": "text", ".md": "text", ".ids": "ids",
}  # fmt: skip


class File:
    """Hands the file to the input that its suffix names."""

    summary = "a file: .txt .ids .npy .npz .csv .wav .flac"

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """What the other input makes of the file."""
        path = regular_file(spec.value)
        kind = BY_SUFFIX.get(path.suffix.lower())
        if kind is None:
            raise InputError(f"{path.name} has a suffix that is not known; there are {', '.join(sorted(BY_SUFFIX))}.")
        if kind not in ("text", "ids"):
            return INPUTS[kind].make(subject, replace(spec, kind=kind), seed)
        try:
            content = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{path.name} is not UTF-8 text.") from None
        content = content.removesuffix("\n")
        batch = INPUTS[kind].make(subject, replace(spec, kind=kind, value=content), seed)
        batch.title = path.name
        return batch


INPUTS.register("file")(File())
