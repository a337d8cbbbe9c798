"""Cures tried from Python, in the caller's own process: what `inspector.try_cure` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.analysis.cures import Tried, not_tried, request_for, tried
from inspector.capture import Capture, CaptureError, open_capture
from inspector.capture.added import add_trials
from inspector.capture.noted import why_not_added
from inspector.diagnosis.own_training import recorded_training
from inspector.engine.errors import InputError
from inspector.engine.registries import CURES
from inspector.engine.session.in_process import run_here
from inspector.registry import instead
from inspector.workspace.captured import captured_at
from inspector.workspace.its_model import load_of


@dataclass(frozen=True, slots=True)
class Trials:
    """What came of trying cures.

    Attributes:
        tried: each cure that was tried, with its verdict, sentence and numbers.
        refused: {key: why} of those that could not be.
        capture: where the losses are; it stays open.
    """

    tried: tuple[Tried, ...]
    refused: dict[str, str]
    capture: Capture


def try_here(
    target: Any,
    cures: str | Sequence[str],
    sequence: Any,
    steps: int,
    seeds: int,
    subject: Any,
    options: dict[str, Any],
) -> Trials:
    """See `inspector.try_cure`. Raises InputError, ModelError or CaptureError."""
    keys = [cures] if isinstance(cures, str) else list(cures) or list(CURES)
    for key in keys:
        if key not in CURES:
            raise InputError(f"There is no cure {key!r}; {instead(key, CURES)}.")
    asked: dict[str, Any] = {name: options.pop(name) for name in ("optimizer", "rate", "decay") if name in options}
    held = target if isinstance(target, Capture) else _opened(target)
    asked["recorded"] = (recorded_training(held) or None) if held is not None else None
    request = request_for(keys, iterations=steps, seeds=seeds, **asked)
    if held is None:
        result = run_here(target, sequence, only=[request], **options)
        return Trials(tuple(tried(result)), not_tried(result.refusals), result)
    if why := why_not_added(held):
        raise CaptureError(why)
    with run_here(*_model(held, subject, options), sequence, only=[request], **options) as result:
        add_trials(held, result)
        found = Trials(tuple(tried(result)), not_tried(result.refusals), held)
    held.refresh()
    return found


def _opened(target: Any) -> Capture | None:
    """The capture that is meant by a path; None for a subject."""
    path = captured_at(str(target)) if isinstance(target, (str, Path)) else None
    return None if path is None else open_capture(path)


def _model(held: Capture, subject: Any, options: dict[str, Any]) -> tuple[Any]:
    """The model of a capture: the one that is given, else the one that the capture names. Raises InputError."""
    if subject is not None:
        return (subject,)
    try:
        load = load_of(held.start)
    except LookupError as problem:
        raise InputError(f"The model cannot be opened: {problem}; give it as `subject`.") from None
    options.setdefault("checkpoint", load.checkpoint)
    return (load.subject,)
