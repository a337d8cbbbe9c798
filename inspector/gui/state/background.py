"""What a run has left to be computed, computed while nothing else is to be done: one quantity at a time.

What visible panels show comes first, then what is cheap, then the rest in the order of the run. What would take longer
than `budget` waits until it is asked for. Nobody waits for this work: it is no activity of the session, and any
request of the user ends it at once; what was cut short is computed again later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from inspector.capture import Capture
from inspector.gui.state.connection import Connection
from inspector.gui.state.exchange import Changes
from inspector.gui.state.needed import NOTHING_NEEDED, Needed
from inspector.gui.state.opening import Opening
from inspector.gui.state.shown import Shown
from inspector.records import Analyse, Cancel, Catalog, Failure, Finished, Loaded, Log, Progress, split_request

BUDGET = 10.0
"""Seconds above which a quantity is computed only where it is asked for."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What a panel shows and the run has not computed.

    Attributes:
        present: the key that is being computed; share: how far that is, 0 to 1.
        waiting: keys that will be computed by themselves.
        offered: keys that are computed only where they are asked for.
        seconds: about how long the offered ones take, or those that the panel offers to compute; 0: not known.
        refused: why none of what the panel offers to compute can be, in this run; "" where something may be.
        partly: why some of it cannot be, where something else may be.
        needed: what has to be done before, where this window has not made the capture.
        question: all keys that a person asked for and that are being computed, also those of other panels.
        broken_off: why no more comes of the run, although it has not said that it ended; "" where more may come.
    """

    present: str = ""
    share: float = 0.0
    waiting: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    seconds: float = 0.0
    refused: str = ""
    partly: str = ""
    needed: Needed = NOTHING_NEEDED
    question: tuple[str, ...] = ()
    broken_off: str = ""

    @property
    def can_be_asked(self) -> bool:
        """Whether anything that is asked for can be computed, at once or after its model was opened."""
        return not self.needed.why or self.needed.load is not None

    @property
    def sentence(self) -> str:
        """One line; "" where nothing is left."""
        share = f" ({100 * self.share:.0f} %)" if self.share else ""
        said = [f"Being computed: {self.present}{share}."] if self.present else []
        if self.waiting:
            said.append(f"{'Then' if self.present else 'To be computed next'}: {', '.join(self.waiting)}.")
        if self.offered:
            said.append(f"Not computed: {', '.join(self.offered)}. {self.needed.why}".rstrip())
        return " ".join(said)


NOTHING = Rest()


class Foreground(Protocol):
    """What it has to know of the session (state/work.py)."""

    connection: Connection
    models: Opening
    shown: Shown
    catalog: Catalog | None
    generation: int
    also: tuple[str, ...]

    @property
    def capture(self) -> Capture | None:
        """The capture that is shown."""

    @property
    def loaded(self) -> Loaded | None:
        """The model that is open."""

    @property
    def subject(self) -> str:
        """Its name."""

    @property
    def busy(self) -> bool:
        """Whether the user waits for something."""


@dataclass(slots=True)
class Background:
    """The rest of the run that ended last, and the quantity of it that is being computed."""

    work: Foreground
    budget: float = BUDGET
    looked_at: Callable[[], Collection[str]] = tuple
    """Keys of the quantities that visible panels show."""
    path: str = ""
    left: tuple[str, ...] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    """About how many seconds quantities take that are not computed, by key."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Quantities that could only be refused, with the reason."""
    present: str = ""
    """The request that is being computed."""
    share: float = 0.0
    generation: int = 0
    stored: bool = False
    """Whether the worker has stored the run, as far as is known."""
    _stopping: bool = False
    _failed: set[str] = field(default_factory=set)

    # -- what is left

    def forget(self) -> None:
        """Another run begins: the worker releases the one before."""
        self.stop()
        self.path, self.left, self.costs, self.refused, self.stored = "", (), {}, {}, False
        self._failed.clear()

    def ended(self, event: Finished) -> None:
        """A run has ended, or an analysis of it."""
        if event.path != self.path:
            self.forget()
            self.stored = event.stop.status == "done"
        self.path, self.left, self.costs, self.refused = event.path, event.stop.left, event.costs, event.refused

    def rests(self, wanted: Iterable[tuple[Iterable[str], Collection[str]]]) -> list[Rest]:
        """For each panel, given as (all that it shows, what it computes on request): what the run on screen lacks."""
        capture = self.work.capture
        stop = capture.stop if capture is not None else None
        mine = self._on_screen
        left = {split_request(request)[0] for request in (stop.left if stop is not None else ())}
        queued = {split_request(request)[0] for request in self._queue()} if mine and self._possible else set()
        present = split_request(self.present)[0] if mine else ""
        if stop is None or not (left or (mine and (self.costs or self.refused))):
            return [NOTHING for _ in wanted]
        return [self._rest([key for key in shows if key in left], extra, queued, present) for shows, extra in wanted]

    def _rest(self, keys: Sequence[str], extra: Collection[str], queued: Collection[str], present: str) -> Rest:
        offered = tuple(key for key in keys if key not in queued and key != present)
        seconds = sum(self.costs.get(key, 0.0) for key in (offered or extra)) if self._on_screen else 0.0
        waiting = tuple(key for key in keys if key in queued and key != present)
        shown = present in keys
        reasons = [self.refused.get(key, "") for key in extra] if self._on_screen else []
        said = " ".join(dict.fromkeys(filter(None, reasons)))
        refused, partly = (said, "") if all(reasons) else ("", said)
        return Rest(present if shown else "", self.share if shown else 0.0, waiting, offered, seconds, refused, partly)

    @property
    def count(self) -> int:
        """How many quantities will be computed by themselves, with the present one."""
        return len({*self._queue(), *filter(None, [self.present])}) if self._on_screen and self._possible else 0

    @property
    def seconds(self) -> float:
        """About how long what will be computed by itself still takes, as far as that is known."""
        if not self.count:
            return 0.0
        waiting = sum(self.costs.get(split_request(request)[0], 0.0) for request in self._queue())
        return waiting + self.costs.get(split_request(self.present)[0], 0.0) * (1.0 - self.share)

    @property
    def idle(self) -> bool:
        """Whether nothing is being computed and nothing will be by itself."""
        return not self.present and not self.count

    # -- one after the other

    def go_on(self) -> None:
        """Called at every tick: begin the next one where nothing else is to be done.

        What becomes visible does not wait for what is not.
        """
        if self.work.busy or self.work.models.pending is not None or not self._on_screen or not self._possible:
            return
        queue = self._queue()
        if self.present:
            if queue and not self._stopping and self._seen(queue[0]) and not self._seen(self.present):
                self._stopping = True
                self.work.connection.send(Cancel())
            return
        if queue:
            self._begin(queue[0])

    def stop(self) -> None:
        """The user has asked for something else: the worker gives up what it computes, and its answer is ignored."""
        if self.present and not self._stopping:
            self.work.connection.send(Cancel())
        self.present, self.share, self.generation, self._stopping = "", 0.0, 0, False

    def lost(self) -> None:
        """The worker has not stored the run any more: it has ended, or the model was opened again."""
        self.present, self.share, self.generation, self._stopping, self.stored = "", 0.0, 0, False, False

    def _begin(self, request: str) -> None:
        self.work.generation += 1
        self.present, self.share, self.generation = request, 0.0, self.work.generation
        self.work.connection.send(Analyse(path=self.path, quantities=(request,), generation=self.generation))

    @property
    def _on_screen(self) -> bool:
        """Whether the run is shown that this window has made."""
        made = self.work.shown.made
        return bool(self.path) and made is not None and made.request.path == self.path

    @property
    def _possible(self) -> bool:
        """Whether the worker can be asked for more of it."""
        made = self.work.shown.made
        open_ = self.work.connection.alive and self.work.loaded is not None
        return self.stored and open_ and made is not None and made.subject == self.work.subject

    def _queue(self) -> list[str]:
        """Requests that are computed by themselves, the next one first."""
        entries = self.work.catalog.quantities if self.work.catalog is not None else ()
        cheap = {entry.key for entry in entries if entry.cheap}
        asked = {split_request(request)[0] for request in self.work.also}
        seen = self.looked_at()
        wanted = [
            request for request in self.left
            if request not in self._failed and request != self.present and self._affordable(request, asked)
        ]  # fmt: skip

        def rank(request: str) -> tuple[bool, bool]:
            key = split_request(request)[0]
            return key not in seen, key not in cheap

        return sorted(wanted, key=rank)

    def _affordable(self, request: str, asked: set[str]) -> bool:
        key = split_request(request)[0]
        return key in asked or self.costs.get(key, 0.0) <= self.budget

    def _seen(self, request: str) -> bool:
        return split_request(request)[0] in self.looked_at()

    # -- answers

    def takes(self, event: Any, changes: Changes) -> bool:
        """Whether an answer of the worker belongs to this work; then it is taken."""
        generation = getattr(event, "generation", 0)
        if not self.present or not generation or generation != self.generation:
            return False
        if isinstance(event, Progress):
            self.share = event.done / event.total if event.total else 0.0
            return True
        if not isinstance(event, (Finished, Failure)):
            return False
        request, self.present, self.share, self._stopping = self.present, "", 0.0, False
        changes.state = True
        if isinstance(event, Finished):
            self.ended(event)
            if event.stop.status == "failed" or (event.stop.status == "done" and request in self.left):
                self._fail(request, event.stop.message, changes)
        elif event.kind == "needs run":
            self.lost()
        elif event.kind != "cancelled":
            self._fail(request, event.message, changes)
        return True

    def _fail(self, request: str, why: str, changes: Changes) -> None:
        """It is not tried again by itself."""
        self._failed.add(request)
        changes.lines.append(Log(f"{request} was not computed: {why or 'it gave no result.'}", "warning"))
