"""Rules over a training at both sides of each limit: two captures that differ by next to nothing, of which one is told.

Losses are made of twenty levels, of as many points each as a block of the trend has, so that medians of blocks and what
they gain are known to the last digit. Orders that chance makes as often as a limit says are those of Kendall's table.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from inspector.diagnosis import RULES
from tests.support.border_series import RISEN, Series, early_and_late, fallen_to_1, jump, levels, rising
from tests.support.training_series import Floats, falling, judged, of, ones


def rows(name: str, some: int, of: int) -> dict[str, Floats]:
    """A series that is above 0 in `some` points, and 0 in the others."""
    return {name: np.where(np.arange(of) < of - some, 0.0, 1.0)}


def neighbours(equal: int, of: int) -> dict[str, Floats]:
    """Hashes of batches, of which so many are that of the one before."""
    return {"training:batch_hash": np.concatenate([np.zeros(equal + 1), np.arange(1, of - equal + 1)])}


def tables(**shapes: Floats) -> Series:
    return {f"parameters:{name.replace('_', '/', 1)}": table for name, table in shapes.items()}


Case = tuple[
    str, Callable[[], tuple[Floats | None, Series]], Callable[[], tuple[Floats | None, Series]], list[str], list[str]
]
CASES: list[Case] = [
    ("no-gradient.iterations", lambda: (None, tables(gradient_norm=ones(1, 0, 1)[:10])),
     lambda: (None, tables(gradient_norm=ones(1, 0, 1)[:9])), ["warning"], []),
    ("unmoved.iterations", lambda: (None, tables(gradient_norm=ones(1, 1, 1)[:10], update_norm=ones(0, 1, 1)[:10])),
     lambda: (None, tables(gradient_norm=ones(1, 1, 1)[:9], update_norm=ones(0, 1, 1)[:9])), ["error"], []),
    ("repeated-batch.iterations", lambda: (None, neighbours(9, 9)), lambda: (None, neighbours(8, 8)), ["warning"], []),
    ("repeated-batch.share", lambda: (None, neighbours(11, 100)), lambda: (None, neighbours(10, 100)), ["info"], []),
    ("evaluation-mode.share", lambda: (None, rows("training:evaluation_mode", 6, 100)),
     lambda: (None, rows("training:evaluation_mode", 5, 100)), ["warning"], []),
    # the first two iterations do not count: nothing is before them
    ("kept-gradient.iterations", lambda: (None, rows("training:gradient_kept", 10, 12)),
     lambda: (None, rows("training:gradient_kept", 9, 11)), ["warning"], []),
    ("kept-gradient.share", lambda: (None, rows("training:gradient_kept", 20, 102)),
     lambda: (None, rows("training:gradient_kept", 19, 102)), ["warning"], []),
    ("loss-spike.distance", lambda: (jump(0.101, 30), {}), lambda: (jump(0.099, 30), {}), ["warning"], []),
    ("loss-spike.recovery", lambda: (jump(1.0, 21), {}), lambda: (jump(1.0, 20), {}), ["warning"], ["info"]),
    ("loss-spike.share", lambda: (jump(0.2, 30, first=2.99), {}), lambda: (jump(0.2, 30, first=3.01), {}),
     ["warning"], ["info"]),
    ("diverged.p", lambda: (rising(RISEN), {}), lambda: (rising(RISEN + 1), {}), ["error"], []),
    ("diverged.share", lambda: (fallen_to_1([1.1, 1.2, 1.3, 1.51, 1.52]), {}),
     lambda: (fallen_to_1([1.1, 1.2, 1.3, 1.49, 1.52]), {}), ["error"], []),
    ("diverged.above", lambda: (levels(*[1.51] * 20) - 0.51 * (np.arange(400) < 1), {}),
     lambda: (levels(*[1.49] * 20) - 0.49 * (np.arange(400) < 1), {}), ["error"], []),
    ("plateau.share", lambda: (levels(*[1.0] * 10, *[0.981] * 10), {}), lambda: (levels(*[1.0] * 10, *[0.979] * 10), {}),
     ["warning"], []),
    # n = 10: S = 19 has p = 0.054, S = 21 has 0.036; S = 45 − 2 × inversions
    ("plateau.p", lambda: (early_and_late(13), {}), lambda: (early_and_late(12), {}), ["warning"], []),
    ("plateau.once", lambda: (levels(*[0.81] * 20) + 0.19 * (np.arange(400) < 1), {}),
     lambda: (levels(*[0.79] * 20) + 0.21 * (np.arange(400) < 1), {}), ["warning"], ["info"]),
]  # fmt: skip


@pytest.mark.parametrize(("limit", "beyond", "within", "told", "else_told"), CASES, ids=[case[0] for case in CASES])
def test_what_is_told_on_either_side_of_a_limit(
    tmp_path: Path,
    limit: str,
    beyond: Callable[[], tuple[Floats | None, Series]],
    within: Callable[[], tuple[Floats | None, Series]],
    told: list[str],
    else_told: list[str],
) -> None:
    rule = limit.partition(".")[0]
    assert limit.partition(".")[2] in {one.name for one in RULES[rule].limits}
    for name, (loss, series) in {"beyond": beyond(), "within": within()}.items():
        found = judged(tmp_path / f"{name}.inspect", loss, series)
        expected = told if name == "beyond" else else_told
        assert [one.severity for one in of(found, rule)] == expected, (name, found.short)


def test_a_healthy_loss_of_the_same_kind_is_left_alone(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.inspect", falling(noise=0.0))
    assert not [one for one in found.findings if one.severity != "info"]
