"""What goes on from its own tokens, or from a state that another batch left, at both sides of each limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.diagnosis import Diagnosis
from tests.support.generated_run import Measured, severities
from tests.support.generated_run import judged as judged_run
from tests.support.training_series import judged as judged_training

PAIRS = 16
EDGE = 1 / (np.sqrt(16 / 15) / 4)
"""The deviation d of numbers 1 ± d, one after the other, whose mean of sixteen is one standard error: n − 1 below."""


def drift(name: str, *rows: float, sequences: int = 8) -> Callable[[Path], Diagnosis]:
    """A table of an exposure test, every sequence alike."""
    table = np.repeat(np.array(rows)[:, None], sequences, axis=1)
    measured = Measured("decoding", ("statistic", "sequence"), table)
    return lambda path: judged_run(path, [{f"decoding:drift/{name}": measured}])


def wrong(forced: float = 0.1, after: float = 1.0, **more: int) -> Callable[[Path], Diagnosis]:
    """Shares of wrong tokens: after right ones, after its own, after a wrong one, and there after right ones."""
    return drift("sequences", forced, 0.6, after, 0.0, **more)


def entropies(data: float, own: float) -> Callable[[Path], Diagnosis]:
    """Nats in the first and the last part, of the data and of what the model says; as sure in the first."""
    return drift("continued", data, data, data, own, 0.0, 0.0, 0.0, 0.0)


def repeats(data: float, own: float) -> Callable[[Path], Diagnosis]:
    return drift("continued", 1.0, 1.0, 1.0, 1.0, data, data, data, own)


def states(
    pairs: int = PAIRS, rows: float = 1.0, follows: float = 0.0, spread: float = 0.01, later: tuple[float, ...] = ()
) -> Callable[[Path], Diagnosis]:
    """Scores of pairs of batches: neighbouring steps 1 ± `spread` better than exchanged rows, first steps of the next
    batch by `follows`. `later`: mean and spread of both at lag 1, where rows go on after a gap."""
    side = np.where(np.arange(pairs) % 2, 1.0, -1.0)
    columns = [(np.full(pairs, follows), 1.0 + spread * side)]
    if later:
        mean, wide = later
        columns.append((np.full(pairs, mean), mean + wide * side))
    tables: dict[str, Any] = {
        "follows": np.stack([one for one, _ in columns], 1), "within": np.stack([two for _, two in columns], 1),
        "others": np.zeros((pairs, len(columns))), "rows": np.full((pairs, 1), rows),
    }  # fmt: skip
    return lambda path: judged_training(path, tables={f"training:carried/{name}": one for name, one in tables.items()})


CASES = [
    ("exposure-bias.after", wrong(after=0.51), wrong(after=0.49)),
    ("exposure-bias.forced", wrong(forced=0.499), wrong(forced=0.501)),
    ("exposure-bias.sequences", wrong(sequences=8), wrong(sequences=7)),
    ("exposure-bias.lost", entropies(1.0, 1.51), entropies(1.0, 1.49)),
    ("exposure-bias.nats", entropies(0.1, 0.201), entropies(0.1, 0.199)),
    ("exposure-bias.loops", repeats(0.1, 0.36), repeats(0.1, 0.34)),
    ("unrelated-batches.comparisons", states(pairs=8), states(pairs=7)),
    ("unrelated-batches.rows", states(rows=0.5), states(rows=0.49)),
    ("unrelated-batches.errors", states(spread=EDGE / 5.1), states(spread=EDGE / 4.9)),
    ("unrelated-batches.share", states(follows=0.24), states(follows=0.26)),
    # steps that far apart tell of each other, or not: where they do, rows go on
    ("unrelated-batches.gap", states(later=(0.2, 0.2 * EDGE / 2.9)), states(later=(0.2, 0.2 * EDGE / 3.1))),
]


@pytest.mark.parametrize(("limit", "beyond", "within"), CASES, ids=[case[0] for case in CASES])
def test_what_is_told_on_either_side_of_a_limit(
    tmp_path: Path, limit: str, beyond: Callable[[Path], Diagnosis], within: Callable[[Path], Diagnosis]
) -> None:
    rule = limit.partition(".")[0]
    assert severities(beyond(tmp_path / "beyond.inspect"), rule) == ["warning"]
    assert severities(within(tmp_path / "within.inspect"), rule) == []
