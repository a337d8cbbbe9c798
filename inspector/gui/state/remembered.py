"""What a person worked on, kept between starts: models with checkpoint and input, and where they were at the end.

It is JSON in the settings. What cannot be read (an older version, a file that was changed by hand) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from inspector.capture.regular import is_there
from inspector.gui.state.settings import Settings
from inspector.records import InputSpec, Load, ViewAt, decode, encode
from inspector.records.json_text import read_json
from inspector.records.saved_session import SavedSession

MODELS, LAST = "models", "last"
MOST = 8
MOST_LETTERS = 20_000
"""Letters of an input that are remembered; a longer one is left out, and the first example runs instead."""

FILES = ("audio", "file", "numbers", "picture", "sequences")
"""Inputs whose value is a path."""
WORDS = {"generated": "generated", "ids": "ids", "vectors": "numbers"}
"""What stands before a value that does not say by itself what it is."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A model as it was opened, and the sequence that ran on it last."""

    subject: str
    checkpoint: str = ""
    device: str = "cpu"
    title: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "example"
    value: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def load(self) -> Load:
        """The request that opens it again."""
        return Load(
            subject=self.subject, checkpoint=self.checkpoint, device=self.device, arguments=dict(self.arguments)
        )

    @property
    def input(self) -> InputSpec:
        """The sequence that runs on it."""
        return InputSpec(kind=self.kind, value=self.value, options=dict(self.options))

    @property
    def words(self) -> str:
        """Checkpoint, sequence and device, in a line."""
        said = [Path(self.checkpoint).name] if self.checkpoint else []
        said += [self._sequence] + ([f"on {self.device}"] if self.device != "cpu" else [])
        return " · ".join(said)

    @property
    def _sequence(self) -> str:
        """What ran last, as one that chooses it again calls it: a typed text in quotes, a file by its name."""
        if not self.value:
            return f"first {self.kind}"
        if self.kind == "text":
            return repr(self.value)
        if self.kind in FILES:
            return Path(self.value).name or self.value
        steps = f", {self.options['steps']} steps" if "steps" in self.options else ""
        return f"{WORDS.get(self.kind, '')} {self.value}{steps}".strip()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a person was: a capture or log, the model that made it here ("" subject: none did), and the view of it."""

    path: str
    title: str = ""
    model: Opened = field(default_factory=lambda: Opened(""))
    view: ViewAt = field(default_factory=ViewAt)
    session: SavedSession = field(default_factory=SavedSession)
    """Of which pins, cursor, choices and zoom count here: what is shown is at the path."""


def opened(load: Load, title: str, spec: InputSpec) -> Opened:
    """A model that is open, with what ran on it."""
    if spec.parts or len(spec.value) > MOST_LETTERS:
        spec = InputSpec()
    return Opened(
        load.subject, load.checkpoint, load.device, title, dict(load.arguments), spec.kind, spec.value,
        dict(spec.options),
    )  # fmt: skip


def recent_models(settings: Settings) -> list[Opened]:
    """Newest first."""
    found = (_opened(each) for each in _list(settings.text(MODELS)))
    return [each for each in found if each is not None and each.subject]


def remember_model(settings: Settings, model: Opened) -> None:
    """Put a model at the head of the recent ones; one of the same checkpoint moves there with its new sequence."""
    same = (model.subject, model.checkpoint)
    others = [each for each in recent_models(settings) if (each.subject, each.checkpoint) != same]
    _write(settings, MODELS, [asdict(each) for each in (model, *others)][:MOST])


def last_place(settings: Settings) -> Place | None:
    """Where a person was when the window was closed, as far as it is still there."""
    told = _read(settings.text(LAST))
    if not isinstance(told, dict) or not isinstance(told.get("path"), str) or not is_there(told["path"]):
        return None
    view: Any = told.get("view")
    try:
        at = ViewAt(**{**view, "steps": tuple(view["steps"]) if view.get("steps") else None, "iterations": None,
                       "curves": ()})  # fmt: skip
    except (TypeError, KeyError, AttributeError):
        at = ViewAt()
    model = _opened(told.get("model")) or Opened("")
    return Place(told["path"], str(told.get("title", "")), model, at, _session(told.get("session")))


def remember_place(settings: Settings, place: Place) -> None:
    """Keep where a person is."""
    told = {**asdict(replace(place, session=SavedSession())), "session": read_json(encode(place.session))}
    if len(json.dumps(told["session"])) > MOST_LETTERS:
        del told["session"]
    _write(settings, LAST, told)


def _write(settings: Settings, name: str, what: Any) -> None:
    try:
        settings.set_text(name, json.dumps(what))
    except (TypeError, ValueError):  # an option of another package that JSON has no word for: nothing is remembered
        return


def _read(text: str) -> Any:
    try:
        return read_json(text) if text else None
    except ValueError:
        return None


def _list(text: str) -> list[Any]:
    found = _read(text)
    return found if isinstance(found, list) else []


def _session(told: Any) -> SavedSession:
    """Of a file of settings; what cannot be read is as at first."""
    try:
        found = decode(json.dumps(told)) if isinstance(told, dict) else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, SavedSession) else SavedSession()


def _opened(told: Any) -> Opened | None:
    try:
        made = Opened(**told)
    except TypeError:
        return None
    texts = (made.subject, made.checkpoint, made.device, made.title, made.kind, made.value)
    maps = (made.arguments, made.options)
    return made if all(isinstance(t, str) for t in texts) and all(isinstance(m, dict) for m in maps) else None
