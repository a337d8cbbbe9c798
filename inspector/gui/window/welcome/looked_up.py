"""Small facts for the first page, read in a thread: titles and sizes of kept runs, curves of recorded trainings."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inspector.capture import CaptureError, open_capture
from inspector.gui.state.switch_interval import giving_way
from inspector.gui.widgets.sketch import Sketch
from inspector.workspace.trainings import Training


@dataclass(frozen=True, slots=True)
class Kept:
    """The runs that the app keeps: (path, title) of the newest, how many there are, and the bytes of all."""

    newest: tuple[tuple[Path, str], ...]
    count: int
    size: int


Found = Kept | tuple[str, Sketch]
"""The kept runs, or the name of a training with the curve of its loss."""


class LookUp:
    """One thread; what it found is taken from the window's."""

    def __init__(self, kept: Callable[[], list[tuple[Path, int]]], trainings: Sequence[Training], shown: int) -> None:
        self._kept, self._trainings, self._shown = kept, trainings, shown
        self._found: deque[Found] = deque()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inspector-welcome", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """Whether all that will be found can be taken now."""
        return not self._thread.is_alive()

    def take(self) -> list[Found]:
        """What was found since the last call."""
        found = []
        while self._found:
            found.append(self._found.popleft())
        return found

    def close(self) -> None:
        """End it, and wait."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        with giving_way():
            self._read()

    def _read(self) -> None:
        runs = self._kept()
        newest = [(path, title_of(path)) for path, _ in runs[: self._shown] if not self._ended.is_set()]
        self._found.append(Kept(tuple(newest), len(runs), sum(size for _, size in runs)))
        for training in self._trainings:
            if self._ended.is_set():
                return
            sketch = loss_of(training.capture)
            if sketch is not None:
                self._found.append((training.name, sketch))


def title_of(path: Path) -> str:
    """What was run; the name of its folder where it cannot be read."""
    try:
        with open_capture(path) as capture:
            return capture.start.title
    except CaptureError:
        return path.name


def loss_of(path: Path) -> Sketch | None:
    """The loss over a recorded training, at small size; None where it cannot be read, or has none."""
    from inspector.gui.panel.overview.pictures import pictures_in_order

    picture = dict(pictures_in_order())["loss"]
    try:
        with open_capture(path) as capture:
            channels = picture.find(capture, -1)
            return picture.read(capture, -1, channels) if channels else None
    except CaptureError:
        return None
