"""Statistics of large attentions on the core that the model leaves free, while the model goes on.

An attention is complete when its call returns: its queries and keys are copies. Where maps are written nothing is done
ahead, since one pass serves maps and statistics.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch

from inspector.engine.attention.one_pass import Statistics, one_pass
from inspector.engine.trace.trace import Attention

LEAST = 1 << 20
"""Weights of an attention that is worth handing to another thread. Counter-example: many smaller ones."""


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
    """

    def __init__(self, sample: int, signals: Collection[str]) -> None:
        self._sample, self._signals = sample, frozenset(signals)
        self.waiting: dict[int, Waiting] = {}
        self._pool = ThreadPoolExecutor(1, "attention-statistics")
        weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)

    def arrived(self, attention: Attention) -> None:
        """Begin with an attention that is large enough, computed from queries and keys, and rightly recorded."""
        heads, queries = attention.query.shape[1:3]
        large = heads * queries * attention.key.shape[-2] >= LEAST and attention.query.device.type == "cpu"
        right = attention.check is not None and attention.check.passed
        if large and right and attention.weights is None and not attention.equivalent:
            result = self._pool.submit(_computed, attention, self._sample, self._signals, _caller(self))
            self.waiting[id(attention.query)] = Waiting(attention, result)

    def take(self, attention: Attention, signals: Collection[str]) -> Statistics | None:
        """The statistics of an attention that is still what it was on arrival; None where they are to be computed."""
        found = self.waiting.pop(id(attention.query), None)
        if found is None or not _same(found.attention, attention) or not self._signals.issuperset(signals):
            return None
        if found.result.cancel():
            return None  # not begun: the caller is as fast
        try:
            return found.result.result()
        except Exception:  # noqa: BLE001 - the caller computes it again and says what is wrong
            return None


def ahead(sample: int, signals: Collection[str]) -> Ahead | None:
    """None where no core is free for it: torch in a second thread takes as many threads again as in the first."""
    return Ahead(sample, signals) if _cores() > 1 and torch.get_num_threads() == 1 else None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _caller(whole: Ahead) -> Callable[[], None]:
    """A check that raises Dropped once nothing refers to `whole`; it does not refer to it itself."""
    known = weakref.ref(whole)

    def check() -> None:
        if known() is None:
            raise Dropped

    return check


def _computed(attention: Attention, sample: int, signals: frozenset[str], check: Callable[[], None]) -> Statistics:
    with torch.no_grad():
        return one_pass(attention, sample, check, signals)


def _same(before: Attention, now: Attention) -> bool:
    """Whether rows and what is defined of them are the same; what joins or cuts calls makes other tensors."""
    tensors = ("query", "key", "mask", "weights")
    values = ("scale", "causal", "first_query", "kept", "equivalent", "of_itself")
    return all(getattr(before, name) is getattr(now, name) for name in tensors) and all(
        getattr(before, name) == getattr(now, name) for name in values
    )
