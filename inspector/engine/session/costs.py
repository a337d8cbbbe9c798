"""About how long quantities will take: their counted work at the rates of this machine and of this session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inspector.engine.registries import QUANTITIES
from inspector.engine.session.rates import Rates, measured
from inspector.engine.trace.trace import Trace
from inspector.engine.trace.work import NONE, RunSize, Work, building, run_size, total
from inspector.records import duration

ENOUGH_SECONDS = 0.02
"""What took less says little about the rates: calls and files decide there."""
LONG_SECONDS, NOTABLE_SECONDS = 3.0, 1.0
"""Seconds of all quantities of a run from which an estimate is told, and of one from which it is named in it."""


class Costs:
    """Estimates of what quantities take, corrected by what was computed before.

    A quantity that was computed before is corrected by how it compared with its own estimate. Counter-example: while
    another program used the machine it took longer, and later estimates are too long until it is computed once more.
    """

    def __init__(self, rates: Rates | None = None) -> None:
        self._rates = rates
        self._seen: dict[str, float] = {}
        self._expected = self._seconds = 0.0

    def learn(self, seconds: Mapping[str, float], traces: Sequence[Trace]) -> None:
        """These quantities took so long on these traces."""
        sizes = [run_size(trace) for trace in traces]
        for key, took in seconds.items():
            work = _work(key, sizes)
            if work and took >= ENOUGH_SECONDS and not _found_before(key, seconds):
                expected = self._plain(work)
                self._seen[key] = took / expected
                self._expected, self._seconds = self._expected + expected, self._seconds + took

    def estimate(self, keys: Iterable[str], traces: Sequence[Trace]) -> dict[str, float]:
        """Seconds of each quantity that has any work here; what can only be refused takes none.

        Jacobians that must be built and are kept are a part of the first quantity that needs them; what two quantities
        find together, of the first of both.
        """
        sizes, wanted = [run_size(trace) for trace in traces], list(keys)
        without = refused(wanted, traces)
        wanted = [key for key in wanted if key in QUANTITIES and key not in without]
        found = {key: self._one(key, sizes) for key in wanted if not _found_before(key, wanted)}
        self._add_building(found, [key for key in wanted if QUANTITIES[key].jacobians], sizes)
        return {key: seconds for key, seconds in found.items() if seconds}

    def _one(self, key: str, sizes: Sequence[RunSize]) -> float:
        work = _work(key, sizes)
        return self._plain(work) * self._correction(key) if work else 0.0

    def _add_building(self, found: dict[str, float], keys: Sequence[str], sizes: Sequence[RunSize]) -> None:
        once = total(building(size, kept=True) for size in sizes)
        each = total(building(size, kept=False) for size in sizes)
        for key in keys:
            if key in found and (once or each):
                found[key] += self._plain(once + each)
                once = NONE

    def _plain(self, work: Work) -> float:
        self._rates = self._rates or measured()
        return self._rates.seconds(work)

    def _correction(self, key: str) -> float:
        """By how much this takes longer than its work says, as far as it was seen."""
        if key in self._seen:
            return self._seen[key]
        return self._seconds / self._expected if self._seconds >= ENOUGH_SECONDS else 1.0


def refused(keys: Iterable[str], traces: Sequence[Trace]) -> dict[str, str]:
    """Quantities that can only be refused on each of these traces, known from sizes alone, with the reason."""
    found = {}
    for key in keys:
        reasons = [QUANTITIES[key].limit(trace) for trace in traces] if key in QUANTITIES else []
        if reasons and all(reasons):
            found[key] = reasons[0]
    return found


def announcement(seconds: Mapping[str, float], without: Mapping[str, str]) -> list[str]:
    """What is said before quantities are computed: those that cannot be, and what takes long; nothing of short ones."""
    said = [f"{key} will not be computed: {reason}" for key, reason in without.items()]
    if sum(seconds.values()) >= LONG_SECONDS:
        large = sorted(((took, key) for key, took in seconds.items() if took >= NOTABLE_SECONDS), reverse=True)
        each = ", ".join(f"{key} {duration(took)}" for took, key in large)
        said.append(
            f"The quantities of this run will take about {duration(sum(seconds.values()))}{': ' if each else ''}{each}."
        )
    return said


def _found_before(key: str, keys: Iterable[str]) -> bool:
    """Whether another of the keys finds it too."""
    return key in QUANTITIES and QUANTITIES[key].found_with in keys


def _work(key: str, sizes: Sequence[RunSize]) -> Work:
    declared = QUANTITIES[key].work if key in QUANTITIES else None
    return NONE if declared is None else total(map(declared, sizes))
