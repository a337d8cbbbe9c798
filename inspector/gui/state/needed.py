"""What has to be done before more can be computed of the capture on screen, where this window has not made it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from inspector.capture import Capture, not_added_to
from inspector.gui.state.opening import Opening
from inspector.records import SECONDS, Catalog, Load, Loaded, RunStart
from inspector.workspace.its_model import load_of, weights_of

EXAMPLE = "its first example runs then, with what is missing"


@dataclass(frozen=True, slots=True)
class Needed:
    """Attributes:
    why: one sentence; "" where the model that made the capture is open.
    load: opens that model; None where nothing can be added.
    button: what a button says that does it.
    """

    why: str = ""
    load: Load | None = None
    button: str = ""


NOTHING_NEEDED = Needed()


class Window(Protocol):
    """What it has to know of a window's session."""

    catalog: Catalog | None
    models: Opening

    @property
    def capture(self) -> Capture | None:
        """The capture that is shown."""

    @property
    def loaded(self) -> Loaded | None:
        """The model that is open."""

    @property
    def can_run_again(self) -> bool:
        """Whether the model that is open made the capture in this window."""


def needed_for(session: Window) -> Needed:
    """What the capture that is shown needs before more of it is computed."""
    capture = session.capture
    if capture is None or session.can_run_again:
        return NOTHING_NEEDED
    closed = not_added_to(capture.start)
    return Needed(closed) if closed else _by_its_model(session, capture.start)


def computed_in(capture: Capture) -> frozenset[str]:
    """Keys of the quantities that were computed for a capture, whether they gave anything or not."""
    return frozenset(one.name.removeprefix(SECONDS) for one in capture.scalars if one.name.startswith(SECONDS))


def _by_its_model(session: Window, start: RunStart) -> Needed:
    try:
        load = load_of(start)
    except LookupError as problem:
        return Needed(f"Only the model of this capture could compute it: {problem}.")
    known = session.catalog.devices if session.catalog is not None else ()
    device = str(start.meta.get("device", "cpu"))
    load = replace(load, device=device if device in known else "cpu")
    name = Path(load.subject).name
    if session.loaded is not None and session.models.load is not None and _same(session.models.load, load):
        return Needed(f"It needs a run of {name}, which is open: {EXAMPLE}.", load, f"Run {name}")
    weights = f" with {Path(load.checkpoint).name}" if load.checkpoint else ""
    return Needed(f"It needs the model of this capture, {name}{weights}: {EXAMPLE}.", load, "Open its model")


def _same(one: Load, other: Load) -> bool:
    return (one.subject, weights_of(one)) == (other.subject, weights_of(other))
