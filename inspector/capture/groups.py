"""Groups of records on their way to the disk: while the pages of one are synchronised, those of the next are appended,
and the rows of the one before are committed. The order is kept, and in each group pages are on the disk before rows.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from inspector.capture.appending import Mark, Unsynchronised


@dataclass(slots=True)
class Group:
    """Records of one transaction, whose pages have their places, and how far page files go with them.

    Attributes:
        rest: what is not on the disk yet. problem: what went wrong on the way. marks: events of those who wait for it.
    """

    records: list[Any]
    mark: Mark
    rest: Unsynchronised | None = None
    problem: Exception | None = None
    marks: list[threading.Event] = field(default_factory=list)

    def synchronise(self) -> None:
        """Return when its pages are on the disk; what goes wrong is its problem."""
        rest, self.rest = self.rest, None
        if rest is not None:
            try:
                rest.to_disk()
            except Exception as problem:  # noqa: BLE001 - told when it is its turn
                self.problem = self.problem or problem


class Groups:
    """Two threads, one that synchronises and one that commits; at most one group waits for each."""

    def __init__(self, finish: Callable[[Group], None]) -> None:
        self._finish = finish
        self._appended: queue.Queue[Group | None] = queue.Queue(1)
        self._synchronised: queue.Queue[Group | None] = queue.Queue(1)
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for name, work in (("capture-disk", self._to_disk), ("capture-index", self._to_index))
        ]
        for thread in self._threads:
            thread.start()

    def put(self, group: Group) -> None:
        """Hand on a group, once there is room for it."""
        self._appended.put(group)

    def close(self) -> None:
        """Return when all groups are finished."""
        self._appended.put(None)
        for thread in self._threads:
            thread.join()

    def _to_disk(self) -> None:
        while (group := self._appended.get()) is not None:
            group.synchronise()
            self._synchronised.put(group)
        self._synchronised.put(None)

    def _to_index(self) -> None:
        while (group := self._synchronised.get()) is not None:
            # it notes itself what goes wrong, and may fail at that where no memory is left; a thread that ended then
            # would leave its queue full, and whoever hands something on would wait for ever
            with suppress(BaseException):
                self._finish(group)
            for mark in group.marks:
                mark.set()
