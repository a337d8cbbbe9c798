"""About how long quantities will take: their counted work over the speed that was seen in this session."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

import torch

from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.trace import Trace
from inspector.engine.trace.work import RunSize, run_size
from inspector.records import duration

ENOUGH_SECONDS = 0.02
"""What took less says little about the speed: calls and files decide there."""
SIDE, TURNS = 512, 3
LONG_SECONDS, NOTABLE_SECONDS = 3.0, 1.0
"""Seconds of all quantities of a run from which an estimate is told, and of one from which it is named in it."""


class Costs:
    """The speed of this machine, from what was computed before, else from one product of matrices.

    A quantity that was computed before has a speed of its own. Counter-example: a speed that was seen while another
    program used the machine makes every later estimate too long, until the quantity is computed once more.
    """

    def __init__(self) -> None:
        self._speeds: dict[str, float] = {}
        self._work = self._seconds = self._product = 0.0

    def learn(self, seconds: Mapping[str, float], traces: Sequence[Trace]) -> None:
        """These quantities took so long on these traces."""
        sizes = [run_size(trace) for trace in traces]
        for key, took in seconds.items():
            work = _work(key, sizes)
            if work and took >= ENOUGH_SECONDS:
                self._speeds[key] = work / took
                self._work, self._seconds = self._work + work, self._seconds + took

    def estimate(self, keys: Iterable[str], traces: Sequence[Trace]) -> dict[str, float]:
        """Seconds of each quantity that declares its work and has any here; what can only be refused takes none."""
        sizes, wanted = [run_size(trace) for trace in traces], list(keys)
        without = refused(wanted, traces)
        counted = {key: _work(key, sizes) for key in wanted if key not in without}
        return {key: work / self._speed(key) for key, work in counted.items() if work}

    def _speed(self, key: str) -> float:
        """Multiplications a second."""
        if key in self._speeds:
            return self._speeds[key]
        if self._seconds >= ENOUGH_SECONDS:
            return self._work / self._seconds
        self._product = self._product or _product_speed()
        return self._product


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


def _work(key: str, sizes: Sequence[RunSize]) -> float:
    declared = QUANTITIES[key].work if key in QUANTITIES else None
    return 0.0 if declared is None else sum(map(declared, sizes))


def _product_speed() -> float:
    """Multiplications a second of a product of float32 matrices: the best of a few, some milliseconds each."""
    matrix, best = torch.ones(SIDE, SIDE), float("inf")
    for _ in range(TURNS):
        began = time.perf_counter()
        torch.mm(matrix, matrix)
        best = min(best, time.perf_counter() - began)
    return SIDE**3 / max(best, 1e-9)
