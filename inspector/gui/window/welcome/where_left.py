"""Remembers which model ran what, and at the end where a person was, for the next start of the window."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.gui.panel.colours import colours_of
from inspector.gui.state.followed_log import as_log
from inspector.gui.state.remembered import Opened, Place, opened, remember_model, remember_place
from inspector.gui.widgets.plain_text import clean
from inspector.records import STEP_DOMAIN, ViewAt
from inspector.records.saved_session import SavedSession

if TYPE_CHECKING:
    from inspector.gui.window.asking import Asking


def remember_run(window: Asking) -> None:
    """A run of the model that is open is shown: it heads the recent models."""
    model = model_of(window)
    if model is not None:
        remember_model(window.settings, model)


def model_of(window: Asking) -> Opened | None:
    """The model that made what is shown, with its sequence; None where that cannot be asked for in these words again
    (nothing is shown, it was changed or decoded, or another model made it)."""
    session = window.session
    made, load = session.again_possible, session.models.load
    if session.capture is None or made is None or load is None or made.request.edits or made.request.decode is not None:
        return None
    title = session.loaded.title if session.loaded is not None else ""
    return opened(load, title or load.subject, made.request.input)


def _being_opened(window: Asking) -> Opened | None:
    """The model that made what is shown, and that is not open again yet."""
    made, load = window.session.shown.current, window.session.opening
    if made is None or load is None or made.subject != load.subject:
        return None
    return opened(load, load.subject, made.request.input)


def remember_view(window: Asking) -> None:
    """What is shown is where a person was; where nothing is, the place before stays."""
    capture = window.session.capture
    if capture is None:
        return
    log = as_log(capture)
    place = Place(
        str(Path(capture.path).absolute()), clean(capture.start.title),
        model_of(window) or _being_opened(window) or Opened(""),
        window.open_at.waiting(capture) or (view_of(window) if log is None else ViewAt(run=log.run or "")),
        SavedSession(**window.sessions.kept()),
    )  # fmt: skip
    remember_place(window.settings, place)


def view_of(window: Asking) -> ViewAt:
    """Panel, frame, place, step, unit, head, the colours of maps, and the steps in view where those are not all."""
    at = window.looking.position
    low, high = window.steps.bounds
    part = high - low < window.steps.length - 0.01
    shown = window.docking.enlarged or next((key for key in window.panels.kinds if key in window.docking.seen), "")
    return ViewAt(
        panel=shown, frame=at.frame, place=at.place, step=at.at(STEP_DOMAIN), unit=at.unit, head=at.head,
        steps=(max(0, round(low + 0.5)), round(high - 0.5)) if part else None,
        colours=colours_of(window.looking).text,
    )  # fmt: skip
