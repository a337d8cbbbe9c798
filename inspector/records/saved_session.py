"""What is open in a window, as one small text file: the model and its run, or what was opened, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inspector.records.decoding import Decode
from inspector.records.edits import Edit
from inspector.records.note import Note
from inspector.records.requests import InputSpec, Load
from inspector.records.view_at import ViewAt

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A place that was pinned: the step on each axis, the part of the model, and the unit, head and key of it."""

    steps: Mapping[str, int]
    place: str = ""
    unit: int | None = None
    head: int | None = None
    key: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedSession:
    """Everything that is needed to be back where one was. Nothing here runs by itself.

    Attributes:
        version: of this form; a newer one is refused.
        load: the model; what of it says that code may run is neither written nor read.
        input, edits, decode, also: the run that is shown, and the quantities beyond the default ones.
        opened: path of a capture or log that is shown instead of a run; relative to the file where it lies beside it.
        at: panel, frame, place and cursor.
        pins: places whose numbers stand beside those under the cursor. notes: of the capture.
        layout: the docks, as gui/window/docking/layouts.py describes them.
        choices: of each panel (by key) what is chosen in its controls, by their names.
        cursor: where it is, on each axis of steps; `at` has the step of the input alone.
        zooms: of each panel (by key) what was zoomed in its plots, as gui/window/zooms.py describes it.
    """

    version: int = VERSION
    load: Load | None = None
    input: InputSpec | None = None
    edits: tuple[Edit, ...] = ()
    decode: Decode | None = None
    also: tuple[str, ...] = ()
    opened: str = ""
    at: ViewAt = field(default_factory=ViewAt)
    pins: tuple[Pinned, ...] = ()
    notes: tuple[Note, ...] = ()
    layout: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, Any] = field(default_factory=dict)
    cursor: Pinned | None = None
    zooms: Mapping[str, Any] = field(default_factory=dict)
