"""Rules over a training that read more than its loss, at both sides of each limit: Adam's moments, products of
Jacobians, zeros, ranks, entropies and norms by layer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.diagnosis import RULES
from inspector.records import Channel, Frame, Page
from tests.support.border_series import (
    RISEN,
    by_chance,
    early_and_late,
    fallen_to_1,
    jump,
    levels,
    most_in_order,
    rising,
    with_inversions,
)
from tests.support.training_series import Floats, N, judged, of, ones

FLAT = np.ones(N)
GRADIENT = {"training:gradient_norm": np.stack([np.geomspace(1.0, 0.1, N)] * 2, 1)}
SILENT = np.linspace(0.5, 0.9, N)[:, None]
EVEN = np.full((N, 1), 0.5)
ENDS_ABOVE = [1.1, 1.2, 1.3, 1.51, 1.52], [1.1, 1.2, 1.3, 1.49, 1.52]
"""After a fall from 2 to 1: the lower one of the last two is a little more, and a little less, than half of that."""
BEYOND_FIRST = [1.5, 1.8, 2.0, 2.21, 2.3], [1.5, 1.8, 2.0, 2.19, 2.3]
"""1.1 times the first loss, 2."""
DRIFT, EVEN_ORDER = most_in_order(0.025, 10), most_in_order(0.05, 20)
"""Pairs of the second half's blocks (twice the probability of one direction is asked), and of all blocks."""
Given = dict[str, Any]


def rms(first: list[int], second: list[int]) -> dict[str, Floats]:
    """Gradients of two parameters that are three times Adam's estimate in some iterations."""
    table = ones(1.0, 1.0, 1.0)
    table[first, 0] = table[second, 1] = 3.0
    return {"parameters:adam/rms": table}


def stale(first: list[int], second: list[int], height: float = 1.0, points: int = 30) -> Given:
    return {"loss": jump(height, points), "tables": rms(first, second)}


def products(*values: float, loss: Floats = FLAT) -> Given:
    """Products of Jacobians by lag, of one probe; the gradient is not clipped."""
    name, table = "rnn.l0:jacobian/lag", np.array([[0.0] * len(values), values])
    about = Channel(name=name, kind="lag", dims=("statistic", "lag"), shape=table.shape, dtype="float64",
                    labels={"statistic": ("p10", "median")})  # fmt: skip
    more = [Frame(index=0, label="0"), about, Page(name, 0, (0, 0), table)]
    return {"loss": loss, "tables": {"training:gradient_norm": np.ones((N, 2))}, "more": more}


def vanishing(least: float = 1e-4, loss: Floats = FLAT) -> Given:
    return products(1.0, 0.3, 0.1, *[least] * 9, loss=loss)


def plastic(loss: Floats, zeros: Floats = SILENT, rank: Floats | None = None) -> Given:
    tables = {"modules:activation/zero": zeros, **GRADIENT}
    if rank is not None:
        tables["modules:activation/effective_rank"] = rank[:, None]
        tables["modules:activation/effective_rank_spread"] = np.full((N, 1), 0.5)
    return {"loss": loss, "tables": tables, "names": ("head.1",)}


def heads(loss: Floats, entropy: Floats) -> Given:
    return {"loss": loss, "tables": {"modules:attention/entropy": entropy[:, None]}, "names": ("a head 0",)}


def collapsing(inversions: int) -> Floats:
    """From 2 nat to 0.05, with so many pairs of blocks in the wrong order, none of them among the last two."""
    return levels(*[[*np.linspace(2.0, 0.2, 18), 0.07, 0.05][n] for n in with_inversions(inversions, 20)])


def norms(loss: Floats, logs: Floats, noise: float = 0.0) -> Given:
    """A norm whose logarithm is this, above and below by `noise` from one point to the next."""
    table = np.exp(logs + noise * np.where(np.arange(N) % 2, 1.0, -1.0))
    return {"loss": loss, "tables": {"parameters:weight/norm": table[:, None]}, "names": ("norm.weight",)}


def drifting(inversions: int = 0, size: float = 0.3) -> Floats:
    """Logarithms that stay over the first half, and rise over the second with so many pairs in the wrong order."""
    return levels(*[0.0] * 10, *(size * n for n in with_inversions(inversions, 10)))


def standing(end: float) -> Floats:
    """Falls in the first half, and in perfect order to `end` from 1 in the second."""
    return levels(*np.linspace(2.0, 1.1, 10), *np.linspace(1.0, end, 10))


def zeros(high: int) -> Given:
    """Nine tenths and more of the outputs are 0 in so many of the last twenty iterations, and in all before them."""
    table = np.full((N, 1), 0.95)
    table[-20:] = 0.0
    table[-19 : -19 + high - 1] = table[-1] = 0.95
    return {"tables": {"modules:activation/zero": table}, "names": ("relu",)}


def clipped(iterations: int) -> Given:
    return {"tables": {"training:gradient_norm": np.tile([2.0, 1.0], (iterations, 1))}}


def ratios(value: float, iterations: int = N, loss: Floats | None = None) -> Given:
    return {"tables": {"parameters:update/ratio": ones(value, value, value)[:iterations]}, "loss": loss}


Make = Callable[[], Given]
CASES: list[tuple[str, Make, Make, list[str], list[str]]] = [
    ("stale-second-moment.times", lambda: stale([193, 194, 195], [196, 197, 198]),
     lambda: stale([194, 195], [196, 197]), ["warning"], []),
    ("stale-second-moment.distance", lambda: stale([*range(190, 200)], [], 0.061),
     lambda: stale([*range(190, 200)], [], 0.059), ["info"], []),
    ("stale-second-moment.share", lambda: stale([*range(190, 200)], [], 0.101),
     lambda: stale([*range(190, 200)], [], 0.099), ["warning"], ["info"]),
    ("stale-second-moment.stays", lambda: stale([*range(190, 200)], [], points=3),
     lambda: stale([*range(190, 200)], [], points=2), ["warning"], ["info"]),
    ("reach-through-time.small", lambda: vanishing(0.99e-3), lambda: vanishing(1.01e-3), ["warning"], []),
    ("reach-through-time.large", lambda: products(1, 30, 1001), lambda: products(1, 30, 999), ["warning"], []),
    ("reach-through-time.share", lambda: vanishing(loss=levels(*[1.0] * 10, *[0.981] * 10)),
     lambda: vanishing(loss=levels(*[1.0] * 10, *[0.979] * 10)), ["warning"], ["info"]),
    ("reach-through-time.p", lambda: vanishing(loss=early_and_late(13)),
     lambda: vanishing(loss=early_and_late(12)), ["warning"], ["info"]),
    ("reach-through-time.once", lambda: vanishing(loss=0.81 * FLAT + 0.19 * (np.arange(N) < 1)),
     lambda: vanishing(loss=0.79 * FLAT + 0.21 * (np.arange(N) < 1)), ["warning"], []),
    ("plasticity.p", lambda: plastic(rising(RISEN)), lambda: plastic(rising(RISEN + 1)),
     ["warning"], []),
    ("plasticity.rise", lambda: plastic(fallen_to_1(ENDS_ABOVE[0])), lambda: plastic(fallen_to_1(ENDS_ABOVE[1])),
     ["warning"], []),
    ("plasticity.began", lambda: plastic(fallen_to_1(BEYOND_FIRST[1])), lambda: plastic(fallen_to_1(BEYOND_FIRST[0])),
     ["warning"], []),
    ("plasticity.rank", lambda: plastic(fallen_to_1(ENDS_ABOVE[0]), EVEN, levels(*np.linspace(20, 9.9, 20))),
     lambda: plastic(fallen_to_1(ENDS_ABOVE[0]), EVEN, levels(*np.linspace(20, 10.1, 20))), ["warning"], []),
    ("entropy-falls.p", lambda: heads(fallen_to_1(ENDS_ABOVE[0]), collapsing(EVEN_ORDER)),
     lambda: heads(fallen_to_1(ENDS_ABOVE[0]), collapsing(EVEN_ORDER + 1)), ["warning"], []),
    ("entropy-falls.rise", lambda: heads(fallen_to_1(ENDS_ABOVE[0]), collapsing(0)),
     lambda: heads(fallen_to_1(ENDS_ABOVE[1]), collapsing(0)), ["warning"], []),
    ("norms-drift.p", lambda: norms(FLAT, drifting(DRIFT)), lambda: norms(FLAT, drifting(DRIFT + 1)), ["info"], []),
    ("norms-drift.distance", lambda: norms(FLAT, drifting(size=0.5 / 9), 0.1225),
     lambda: norms(FLAT, drifting(size=0.5 / 9), 0.1275), ["info"], []),
    ("norms-drift.share", lambda: norms(standing(0.981), drifting()), lambda: norms(standing(0.979), drifting()),
     ["info"], []),
    ("norms-drift.rise", lambda: norms(fallen_to_1(ENDS_ABOVE[0]), drifting()),
     lambda: norms(fallen_to_1(ENDS_ABOVE[1]), drifting()), ["warning"], ["info"]),
    ("norms-drift.began", lambda: norms(fallen_to_1(BEYOND_FIRST[1]), drifting()),
     lambda: norms(fallen_to_1(BEYOND_FIRST[0]), drifting()), ["warning"], ["info"]),
    ("dead-activations.last", lambda: zeros(11), lambda: zeros(10), ["warning"], []),
    ("dead-activations.share", lambda: {"tables": {"modules:activation/zero": np.full((N, 1), 0.901)}},
     lambda: {"tables": {"modules:activation/zero": np.full((N, 1), 0.899)}}, ["warning"], []),
    ("clipping-always.iterations", lambda: clipped(20), lambda: clipped(19), ["info"], []),
    ("step-size.large", lambda: ratios(0.101), lambda: ratios(0.099), ["info"], []),
    ("step-size.iterations", lambda: ratios(0.2, 40), lambda: ratios(0.2, 39), ["info"], []),
]  # fmt: skip


@pytest.mark.parametrize(("limit", "beyond", "within", "told", "else_told"), CASES, ids=[case[0] for case in CASES])
def test_what_is_told_on_either_side_of_a_limit(
    tmp_path: Path, limit: str, beyond: Make, within: Make, told: list[str], else_told: list[str]
) -> None:
    rule, _, name = limit.partition(".")
    assert name in {one.name for one in RULES[rule].limits}
    for side, make, expected in (("beyond", beyond, told), ("within", within, else_told)):
        found = judged(tmp_path / f"{side}.inspect", **make())
        assert [one.severity for one in of(found, rule)] == expected, (side, found.short)


@pytest.mark.parametrize(("ratio", "said"), [(0.99e-6, True), (1.01e-6, False)])
def test_steps_that_are_next_to_nothing_beside_a_loss_that_stays(tmp_path: Path, ratio: float, said: bool) -> None:
    (found,) = of(judged(tmp_path / "a.inspect", **ratios(ratio, loss=FLAT)), "plateau")
    assert ("which is next to nothing" in found.message) is said


@pytest.mark.parametrize(("inversions", "of", "p"), [(1, 5, 0.042), (2, 5, 0.117), (12, 10, 0.036), (13, 10, 0.054)])
def test_how_often_chance_is_in_such_an_order_is_as_in_kendall_s_table(inversions: int, of: int, p: float) -> None:
    assert by_chance(inversions, of) == pytest.approx(p, abs=5e-4)
