"""Groups of records on their way to the disk: while the pages of some are synchronised, those of the next are appended,
and the rows of the ones before are committed. The order is kept, and in each group pages are on the disk before rows.

What waits goes together: groups that arrived while the disk was busy are synchronised by one call, and their rows are
one transaction. So a slow disk is asked seldom, and a fast one at every group.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from inspector.capture.appending import Mark, Unsynchronised

WAITING = 3
"""Groups that may wait for each of the two steps: with 4 MB each, what a power cut may take of what nobody waits for
stays some tenths of a second."""


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
        synchronise([self])

    def add(self, later: Group) -> None:
        """Take over all of the group that follows it, which has no problem."""
        self.records += later.records
        self.mark = later.mark
        self.marks += later.marks


class Groups:
    """Two threads, one that synchronises and one that commits."""

    def __init__(self, finish: Callable[[Group], None]) -> None:
        self._finish = finish
        self._appended: queue.Queue[Group | None] = queue.Queue(WAITING)
        self._synchronised: queue.Queue[Group | None] = queue.Queue(WAITING)
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
        for groups in _waiting(self._appended):
            synchronise(groups)
            for group in groups:
                self._synchronised.put(group)
        self._synchronised.put(None)

    def _to_index(self) -> None:
        for groups in _waiting(self._synchronised):
            for group in _together(groups):
                # it notes itself what goes wrong, and may fail at that where no memory is left; a thread that ended
                # then would leave its queue full, and whoever hands something on would wait for ever
                with suppress(BaseException):
                    self._finish(group)
                for mark in group.marks:
                    mark.set()


def _waiting(groups: queue.Queue[Group | None]) -> Iterator[list[Group]]:
    """All that waits, each time there is any, until the end."""
    while (group := groups.get()) is not None:
        found = [group]
        while len(found) <= WAITING and not groups.empty():  # nobody else takes any
            following = groups.get()
            if following is None:
                yield found
                return
            found.append(following)
        yield found


def _together(groups: list[Group]) -> Iterator[Group]:
    """The same records in as few groups as there can be: one in which something went wrong stays by itself."""
    before: Group | None = None
    for group in groups:
        if before is not None and before.problem is None and group.problem is None:
            before.add(group)
            continue
        if before is not None:
            yield before
        before = group
    if before is not None:
        yield before


def synchronise(groups: list[Group]) -> None:
    """Return when the pages of all are on the disk, by one call for each page file."""
    for _, of_one in groupby((group for group in groups if group.rest is not None), lambda group: group.mark[0]):
        some = list(of_one)
        rests = [group.rest for group in some if group.rest is not None]
        for group in some:
            group.rest = None
        for rest in rests[:-1]:
            os.close(rest.descriptor)
        folder = next((rest.folder for rest in rests if rest.folder is not None), None)
        try:
            Unsynchronised(rests[-1].descriptor, folder).to_disk()
        except Exception as problem:  # noqa: BLE001 - told when it is its turn
            for group in some:
                group.problem = group.problem or problem
