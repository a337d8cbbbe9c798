"""What a session exchanges: with its worker's process on one side, with its window on the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from inspector.gui.state.folder_look import FolderLook
from inspector.records import Failure, Load, Loaded, Log, NeedsTrust, ParameterChanges, Run


class Worker(Protocol):
    """The parent's end of a worker (transport.process.WorkerProcess)."""

    @property
    def alive(self) -> bool:
        """True while it runs."""

    def start(self) -> None:
        """Start it."""

    def send(self, request: Any) -> None:
        """Send a request."""

    def close(self, patience: float = 1.0) -> None:
        """End it."""


Make = Callable[[Callable[[Any], None], Callable[[str, str], None], Callable[[Any], None]], Worker]


@dataclass(slots=True)
class Changes:
    """The changes of one tick: channels with new data, log lines, and whether the rest of the state changed."""

    channels: frozenset[str] = frozenset()
    another_capture: bool = False
    replaced: bool = False
    """Another run has taken the place of what is shown, at its path, and is shown now."""
    opened: bool = False
    """A capture that was asked for by its name is shown now."""
    state: bool = False
    lines: list[Log] = field(default_factory=list)
    begun: tuple[Log, ...] = ()
    """Lines that have begun and not ended, as far as they were printed."""
    failure: Failure | None = None
    consent: Loaded | None = None
    untrusted: NeedsTrust | None = None
    loaded: Loaded | None = None
    computed: bool = False
    """More was computed for the run that is shown."""
    needs_run: str = ""
    """Why the requested quantities need a new run."""
    not_opened: Load | None = None
    """The model that could not be, or was not, opened; the one before is still open."""
    refused: Run | None = None
    """The run that was not possible as requested; what was shown before is still shown."""
    parameters: ParameterChanges | Failure | None = None
    """How the parameters of two checkpoints differ, or why that cannot be said."""
    looked: FolderLook | None = None
    """Folders that were looked through, and are opened now."""
