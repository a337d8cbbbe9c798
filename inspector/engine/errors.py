"""The engine's own exceptions. Each message is one clear sentence: what was given, what was expected, what exists."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import torch

from inspector.engine.wording import class_name, text_of
from inspector.records.plain_text import LONGEST_LINE, plain_sentence, shortened

LONGEST_TEXT, LONGEST_DETAILS = 500, 100_000
"""Characters of what was raised that a message quotes, and of its details: torch says what to do in 200 to 400."""
_cut: ContextVar[list[str] | None] = ContextVar("cut messages", default=None)


class InputError(ValueError):
    """Bad arguments or unreadable input (exit code 2). What the message quotes is shown as plain text."""

    def __init__(self, message: str) -> None:
        super().__init__(plain_sentence(message, LONGEST_LINE))


class ModelError(RuntimeError):
    """The user's model raised; `details` holds the traceback of the user's own frames (exit code 1)."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class Unsupported(NotImplementedError):
    """A quantity does not exist for this recurrence or cannot be computed exactly; the reason is the message."""


class NotApplicable(Unsupported):
    """The quantity has no meaning here (the forget gate of a plain RNN):
    skipped without a message, since nothing is missing."""


class CancelledError(Exception):
    """The user cancelled; raised between pages, never inside the user's model."""


def of_the_models_code(fault: BaseException) -> ModelError | None:
    """The ModelError that a fault is, or is to be told as: it came up in a file of the user's where nothing of the
    model's was meant to be called (an attribute that raises when it is looked at). None for a fault of this program."""
    if isinstance(fault, ModelError):
        return fault
    files = [frame.filename for frame in traceback.extract_tb(fault.__traceback__)]
    own = str(Path(__file__).parent.parent)
    behind = files[max((at + 1 for at, file in enumerate(files) if file.startswith(own)), default=0) :]
    libraries = (sys.prefix, sys.base_prefix, str(Path(torch.__file__).parent.parent), "<")
    return None if all(file.startswith(libraries) for file in behind) else model_error(fault)


@contextmanager
def whole_texts() -> Iterator[list[str]]:
    """The messages that are made inside and quote less than all that was raised, whole: a refusal has one line, so what
    it leaves out is written where many fit."""
    found: list[str] = []
    before = _cut.set(found)
    try:
        yield found
    finally:
        _cut.reset(before)


def _tell_cut(text: str) -> None:
    found = _cut.get()
    if found is not None and text not in found:
        found.append(text)


def model_error(fault: BaseException, who: str = "The model") -> ModelError:
    """A one-line message about what the user's code (`who`) raised, with the user's own frames as details."""
    own = str(Path(__file__).parent.parent)
    frames = [f for f in traceback.extract_tb(fault.__traceback__) if not f.filename.startswith(own)]
    hidden = (str(Path(torch.__file__).parent), "<frozen ")  # the latter is Python's own import
    user = [f for f in frames if not any(part in f.filename for part in hidden)] or frames
    place = (fault.filename, fault.lineno) if isinstance(fault, SyntaxError) and fault.filename else None
    if place is None and user:  # code that Python could not read has no frame: the last one is that of its import
        place = (user[-1].filename, user[-1].lineno)
    where = f" ({Path(place[0]).name}, line {place[1]})" if place is not None else ""
    said = text_of(fault)
    if isinstance(fault, SyntaxError) and place is not None:
        said = fault.msg or said  # without the place, which is said already
    text = plain_sentence(" ".join(said.split()), LONGEST_TEXT)  # where it is cut, "…" says so; `details` have it whole
    if isinstance(fault, SystemExit):
        text = f"it asked Python to exit with {text or 0}"
    if len(" ".join(said.split())) > LONGEST_TEXT:
        _tell_cut(f"{who} raised {class_name(fault)}{where}: {shortened(said, LONGEST_DETAILS)}")
    details = "".join(traceback.format_list(frames)) + f"{class_name(fault)}: {shortened(said, LONGEST_DETAILS)}"
    sentence = f"{who} raised {class_name(fault)}{where}: {text or 'no message'}"
    return ModelError(sentence.rstrip(".") + ".", details)
