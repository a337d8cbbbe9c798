"""A file whose suffix, or else its first bytes, say what it is: it goes to the input that reads such files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.capture.regular import in_words, open_regular, read_text
from inspector.engine.errors import InputError
from inspector.engine.model.batching import MAX_TEXT, more_of, regular_file
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import INPUTS, input_of_file, make_input
from inspector.records import InputSpec

HEAD = 16
"""First bytes that are read where the suffix is unknown."""


class File:
    """Passes the file to the input that reads it; `options["files"]` adds more sequences of the same kind."""

    title = "File"
    summary = "A file of text, ids, numbers or sound, by its suffix."
    form = "file"
    order = 90
    options = None  # those of the input that reads the file

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """What the other input makes of the files."""
        paths = [regular_file(path) for path in (spec.value, *more_of(spec, "files"))]
        kind = _one_kind(paths)
        options = {name: value for name, value in spec.options.items() if name != "files"}
        if not getattr(INPUTS[kind], "of_content", False):
            more = {"files": [str(path) for path in paths[1:]]} if len(paths) > 1 else {}
            return make_input(subject, replace(spec, kind=kind, options={**options, **more}), seed)
        value, more = _contents(kind, [_content(path) for path in paths])
        batch = make_input(subject, replace(spec, kind=kind, value=value, options={**options, **more}), seed)
        batch.title = paths[0].name
        return batch


def _one_kind(paths: list[Path]) -> str:
    """The key of the input that reads all of the files. Raises InputError."""
    kinds = [input_of_file(path, _head(path)) for path in paths]
    for path, kind in zip(paths, kinds, strict=True):
        if kind is None:
            known = sorted(suffix for _, entry in INPUTS.items() for suffix in getattr(entry, "suffixes", ()))
            raise InputError(f"{path.name} has an unknown suffix; there are {', '.join(known)}.")
        if kind != kinds[0]:
            raise InputError(f"{path.name} is a file of {kind}, {paths[0].name} of {kinds[0]}; a batch has one kind.")
    return str(kinds[0])


def _head(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(HEAD)
    except OSError as problem:
        raise InputError(f"{path.name} cannot be read: {in_words(problem)}.") from None


def _contents(kind: str, contents: list[str]) -> tuple[str, dict[str, Any]]:
    """(value, options) of one or several texts: in an option `texts` where the input has one, else with semicolons."""
    if any(option.name == "texts" for option in getattr(INPUTS[kind], "options", ())):
        return contents[0], {"texts": contents[1:]}
    return ";".join(contents), {}


def _content(path: Path) -> str:
    file = regular_file(str(path), MAX_TEXT)
    try:
        return read_text(file).removesuffix("\n")
    except UnicodeDecodeError:
        raise InputError(f"{file.name} is not UTF-8 text.") from None
    except OSError as problem:
        raise InputError(f"{file.name} cannot be read: {in_words(problem)}.") from None


INPUTS.register("file")(File())
