"""A file whose suffix says what it is: text, numbers or sound; token ids from .ids."""

from __future__ import annotations

from dataclasses import replace

from inspector.capture.regular import in_words, read_text
from inspector.engine.errors import InputError
from inspector.engine.model.batching import MAX_TEXT, more_of, regular_file
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import INPUTS
from inspector.records import InputSpec

BY_SUFFIX = {
    ".npy": "numbers", ".npz": "numbers", ".csv": "numbers", ".wav": "audio", ".flac": "audio", ".ogg": "audio",
    ".txt": "text", ".md": "text", ".ids": "ids",
}  # fmt: skip


class File:
    """Hands the file to the input that its suffix names; `options["files"]` adds more sequences of the same kind."""

    summary = "a file: .txt .ids .npy .npz .csv .wav .flac"

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """What the other input makes of the files."""
        paths = [regular_file(path) for path in (spec.value, *more_of(spec, "files"))]
        kinds = [BY_SUFFIX.get(path.suffix.lower()) for path in paths]
        for path, kind in zip(paths, kinds, strict=True):
            if kind is None:
                raise InputError(f"{path.name} has an unknown suffix; there are {', '.join(sorted(BY_SUFFIX))}.")
            if kind != kinds[0]:
                raise InputError(
                    f"{path.name} is a file of {kind}, {paths[0].name} of {kinds[0]}; a batch has one kind."
                )
        kind = str(kinds[0])
        if kind not in ("text", "ids"):
            return INPUTS[kind].make(subject, replace(spec, kind=kind), seed)
        contents = [_content(str(path)) for path in paths]
        value = contents[0] if kind == "text" else ";".join(contents)
        more = {"texts": contents[1:]} if kind == "text" else {}
        batch = INPUTS[kind].make(
            subject, replace(spec, kind=kind, value=value, options={**spec.options, **more}), seed
        )
        batch.title = paths[0].name
        return batch


def _content(path: str) -> str:
    file = regular_file(path, MAX_TEXT)
    try:
        return read_text(file).removesuffix("\n")
    except UnicodeDecodeError:
        raise InputError(f"{file.name} is not UTF-8 text.") from None
    except OSError as problem:
        raise InputError(f"{file.name} cannot be read: {in_words(problem)}.") from None


INPUTS.register("file")(File())
