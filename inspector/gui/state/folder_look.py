"""What folders that were dropped or named hold is looked up beside the window: a data set has thousands of files, and
a disk on a network answers slowly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inspector.capture import CancelledError, is_log
from inspector.capture.turns import give_way
from inspector.gui.state.followed_log import LogOpening
from inspector.gui.state.offered import Offered
from inspector.gui.state.switch_interval import giving_way
from inspector.records import counted

PATIENCE = 0.05
"""Seconds that the window waits for a look before it says that it goes on: most folders are small."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a folder that is no capture holds.

    Attributes:
        log: it has the log of a training, in it or below.
        weights: the checkpoints of a folder of weights (`Offered.weights_in`).
        checkpoint: it is one checkpoint itself.
        checkpoints_below: some of its folders are.
    """

    log: bool = False
    weights: tuple[str, ...] = ()
    checkpoint: bool = False
    checkpoints_below: bool = False


def held_by(folder: str, offered: Offered, noted: Callable[[int], None] | None = None) -> Held:
    """Look through a folder; `noted` as in `is_log`."""
    log = is_log(folder, noted)
    if offered.catalog is None:  # which files are weights is not known yet
        return Held(log)
    return Held(
        log, offered.weights_in(folder), offered.is_checkpoint_folder(folder), offered.checkpoints_below(folder)
    )


class FolderLook(LogOpening):
    """Looks through folders in a thread: `held` has what each holds once it has `finished`; there is no view."""

    def __init__(self, folders: Sequence[str], offered: Offered, then: Callable[[], None]) -> None:
        """`then` is what waits for the look: it is called by whoever waits."""
        self.folders, self.offered, self.then = tuple(dict.fromkeys(folders)), offered, then
        self.held: Mapping[str, Held] = {}
        self.seen = 0
        super().__init__(Path(self.folders[0]))

    def _open(self) -> None:
        found: dict[str, Held] = {}
        try:
            with giving_way():
                for folder in self.folders:
                    self.path = Path(folder)
                    found[folder] = held_by(folder, self.offered, self._seen)
        except CancelledError as problem:
            self.problem = str(problem)
        except Exception as fault:  # noqa: BLE001 - a thread that ends without a word would leave the window waiting
            self.problem = f"{self.name} could not be looked through: {type(fault).__name__}: {fault}"
        self.held = found

    def _seen(self, entries: int) -> None:
        """Called from within the search."""
        self.seen = entries
        give_way()
        if self.cancelled:
            raise CancelledError("Cancelled.")

    def soon(self) -> bool:
        """Whether it has finished, after waiting for as long as the window may answer nothing."""
        self._thread.join(PATIENCE)
        return self.finished

    @property
    def sentence(self) -> str:
        """How far it is."""
        files = f" ({counted(self.seen, 'file')} seen)" if self.seen else ""
        return f"Looking through the folder {self.name}{files} …"
