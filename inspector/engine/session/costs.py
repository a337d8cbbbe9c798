"""About how long quantities will take: their counted work over the speed that was seen in this session."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

import torch

from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.trace import Trace
from inspector.engine.trace.work import RunSize, run_size

ENOUGH_SECONDS = 0.02
"""What took less says little about the speed: calls and files decide there."""
SIDE, TURNS = 512, 3


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
        """Seconds of each quantity that declares its work and has any here."""
        sizes = [run_size(trace) for trace in traces]
        counted = {key: _work(key, sizes) for key in keys}
        return {key: work / self._speed(key) for key, work in counted.items() if work}

    def _speed(self, key: str) -> float:
        """Multiplications a second."""
        if key in self._speeds:
            return self._speeds[key]
        if self._seconds >= ENOUGH_SECONDS:
            return self._work / self._seconds
        self._product = self._product or _product_speed()
        return self._product


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
