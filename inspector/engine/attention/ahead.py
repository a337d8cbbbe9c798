"""Statistics and maps of large attentions on the core that the model leaves free, while the model goes on.

An attention is complete when its call returns: its queries and keys are copies. Its place and the axes of its map are
known when the model has returned: a map that was written before is described again then, or written again where later
calls turned out to be rows of it.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch

from inspector.engine.attention.map_pages import described, free_bytes, page_writer
from inspector.engine.attention.one_pass import Statistics, one_pass
from inspector.engine.attention.rows import Rows
from inspector.engine.hooks.heap import Heap
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention

LEAST = 1 << 20
"""Weights of an attention that is worth handing to another thread. Counter-example: many smaller ones."""
MAP_BYTES = 512 << 20
"""Of the maps that are written ahead, together: whether all of a run fit on the disk is known when it has ended, and
where they do not these stay beside the queries and keys of the others."""
BLOCK = 1 << 20
"""Bytes of a block of rows in float32: the model has its largest tensors beside it. Larger ones gain little here."""
SHARE_OF_DISK = 0.1
"""Nor are maps larger than this share of the free disk written ahead."""


class Dropped(Exception):
    """Nobody waits for the statistics any more."""


@dataclass(slots=True)
class Waiting:
    """An attention, and what becomes of its statistics."""

    attention: Attention
    result: Future[Statistics]


class Ahead:
    """Computes statistics of the attentions that arrive, in their order; whoever needs them takes them or computes them
    itself. What was not begun when nothing refers to this any more is not computed.

    With an emitter their maps are written too, of the first call of each place, until `stop` is called: before the
    run's axes are laid out, and before its capture ends.
    """

    def __init__(self, sample: int, signals: Collection[str], emit: Emitter | None = None) -> None:
        self._sample, self._signals, self._emit = sample, frozenset(signals), emit
        free = None if emit is None else free_bytes(emit)
        self._room = MAP_BYTES if free is None else min(MAP_BYTES, int(free * SHARE_OF_DISK))
        self._places: set[str] = set()
        self.waiting: dict[int, Waiting] = {}
        name = "attention-statistics" if emit is None else "attention-maps"
        self._pool = ThreadPoolExecutor(1, name)
        weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)

    def arrived(self, attention: Attention) -> None:
        """Begin with an attention that is large enough, computed from queries and keys, and rightly recorded."""
        first = attention.place not in self._places
        self._places.add(attention.place)
        heads, queries = attention.query.shape[1:3]
        weights = heads * queries * attention.key.shape[-2]
        large = weights >= LEAST and attention.query.device.type == "cpu"
        right = attention.check is not None and attention.check.passed
        if not (large and right and attention.weights is None and not attention.equivalent):
            return
        if self._emit is not None:
            needed = torch.float16.itemsize * weights
            if not first or needed > self._room:
                return
            self._room -= needed
        result = self._pool.submit(_computed, attention, self._sample, self._signals, _caller(self), self._emit)
        self.waiting[id(attention.query)] = Waiting(attention, result)

    @property
    def map_places(self) -> frozenset[str]:
        """The places of which rows of a map have been written."""
        begun = [one for one in self.waiting.values() if self._emit is not None and not one.result.cancelled()]
        return frozenset(one.attention.place for one in begun)

    def stop(self) -> None:
        """Where maps are written: wait for the one that is, begin no more."""
        if self._emit is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def take(self, attention: Attention, signals: Collection[str]) -> Statistics | None:
        """The statistics of an attention that is still what it was on arrival, whose map is written where maps are;
        None where they are to be computed."""
        found = self.waiting.pop(id(attention.query), None)
        if found is None or not _same(found.attention, attention) or not self._signals.issuperset(signals):
            return None
        if found.result.cancel():
            return None  # not begun: the caller is as fast
        try:
            return found.result.result()
        except Exception:  # noqa: BLE001 - the caller computes it again and says what is wrong
            return None


def ahead(sample: int, signals: Collection[str], emit: Emitter | None = None) -> Ahead | None:
    """None where no core is free for it: torch in a second thread takes as many threads again as in the first."""
    return Ahead(sample, signals, emit) if _cores() > 1 and torch.get_num_threads() == 1 else None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _caller(whole: Ahead) -> Callable[[], None]:
    """A check that raises Dropped once nothing refers to `whole`; it does not refer to it itself."""
    known = weakref.ref(whole)

    def check() -> None:
        if known() is None:
            raise Dropped

    return check


def _computed(
    attention: Attention, sample: int, signals: frozenset[str], check: Callable[[], None], emit: Emitter | None
) -> Statistics:
    try:
        if emit is None:
            with torch.no_grad():
                return one_pass(attention, sample, check, signals, None, BLOCK)
        return _with_map(attention, sample, signals, check, emit)
    finally:
        Heap(0).tidy(0)  # this thread's heap is its own, and the model's calls do not use its gaps


def _with_map(
    attention: Attention, sample: int, signals: frozenset[str], check: Callable[[], None], emit: Emitter
) -> Statistics:
    channel = described(attention, Rows(attention, sample))
    emit.channel(channel)

    def unless_cancelled() -> None:
        check()
        emit.check()

    with torch.no_grad():
        return one_pass(attention, sample, unless_cancelled, signals, page_writer(emit, channel), BLOCK)


def _same(before: Attention, now: Attention) -> bool:
    """Whether rows and what is defined of them are the same; what joins or cuts calls makes other tensors."""
    tensors = ("query", "key", "mask", "weights")
    values = ("scale", "causal", "first_query", "kept", "equivalent", "of_itself")
    return all(getattr(before, name) is getattr(now, name) for name in tensors) and all(
        getattr(before, name) == getattr(now, name) for name in values
    )
