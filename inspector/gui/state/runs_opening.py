"""Several captures and logs that are opened in the background, to have their curves drawn together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from inspector.capture import CancelledError, Capture, CaptureError, LogView, open_any, open_capture, open_log
from inspector.capture.comparing.together import Together
from inspector.capture.opening import is_log
from inspector.gui.state.followed_log import LogOpening
from inspector.records import counted


class RunsOpening(LogOpening):
    """Opens them in a thread; what is opened already is not opened again."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(dict.fromkeys(path.absolute() for path in paths))
        super().__init__(self.paths[0])

    def _open(self) -> None:
        views: list[Capture | LogView] = []
        try:
            for path in self.paths:
                views.append(self._one(path))
            self.view = cast(LogView, Together(views))  # reads like a log of several runs
        except (CancelledError, CaptureError, OSError) as problem:
            self.problem = str(problem)
        except Exception as fault:  # noqa: BLE001 - a thread that ends without a word would leave the window waiting
            self.problem = f"These runs could not be read: {type(fault).__name__}: {fault}"
        if self.view is None:
            for view in views:
                view.close()

    def _one(self, path: Path) -> Capture | LogView:
        if self.cancelled:
            raise CancelledError("Cancelled.")
        if is_log(path):
            return open_log(path, progress=self._note, cancelled=self._cancelled.is_set)
        return open_any(path) if path.exists() else open_capture(path)

    @property
    def name(self) -> str:
        """What is opened, for sentences."""
        return counted(len(self.paths), "run file") if len(self.paths) > 1 else self.path.name

    @property
    def shown(self) -> str:
        """What is said once they were read."""
        return f"{len(self.view.runs)} runs are shown together." if self.view is not None else ""

    @property
    def sentence(self) -> str:
        """How far it is."""
        return f"Reading {self.name} …"
