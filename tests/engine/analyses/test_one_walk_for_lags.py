"""Norms of products by lag and their comparison with the direct path come from one walk over the steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from kept import Kept
from models import OnlyOutput
from torch import nn

from inspector.engine.analyses import carried_products, lag_budgets
from inspector.engine.analyses.lag_statistics import by_lag
from inspector.engine.cells.base import StepBlock
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
STEPS, HIDDEN = 70, 6
BOTH = ("jacobian/lag", "paths/lag")


def run(*only: str) -> Kept:
    torch.manual_seed(0)
    net, kept = OnlyOutput(nn.LSTM(3, HIDDEN, batch_first=True)).to(D).eval(), Kept()
    x = torch.randn(1, STEPS, 3, dtype=D)
    perform(Subject(model=net, kind="vectors", width=3), Batch(x, torch.tensor([STEPS])), kept, RunOptions(only=only))
    return kept


def estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LAG_BUDGET", "PATH_BUDGET"):
        monkeypatch.setattr(lag_budgets, name, 2.0 * (2 * HIDDEN) ** 2 * 8 * (STEPS - 1) * 9)
    monkeypatch.setattr(lag_budgets, "FEWEST", 9)


@pytest.mark.parametrize("rough", [False, True])
def test_the_steps_are_walked_once_for_both(rough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if rough:
        estimates(monkeypatch)
    blocks: list[int] = []
    plain: Callable[[StepBlock, int], carried_products.Push] = carried_products.forward

    def counted(block: StepBlock, count: int) -> carried_products.Push:
        blocks.append(count)
        return plain(block, count)

    monkeypatch.setattr(carried_products, "forward", counted)
    run(*BOTH)
    assert len(blocks) == -(-STEPS // 64)


@pytest.mark.parametrize("rough", [False, True])
def test_each_alone_gives_what_both_together_give(rough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if rough:
        estimates(monkeypatch)
    together = run(*BOTH)
    for only, name in zip(BOTH, ("jacobian/lag", "path/lag_difference"), strict=True):
        np.testing.assert_array_equal(run(only).array(f"rnn.l0:{name}"), together.array(f"rnn.l0:{name}"))


def test_where_both_are_estimates_all_paths_are_those_of_the_lag_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    estimates(monkeypatch)
    kept = run(*BOTH)
    a, b = (kept.array(f"rnn.l0:{name}") for name in ("jacobian/lag", "path/lag_whole"))
    np.testing.assert_allclose(a, b, rtol=1e-12)
    methods = {kept.channel(f"rnn.l0:{name}").method for name in ("jacobian/lag", "path/lag_whole")}
    assert len(methods) == 1 and "estimated from 8" in methods.pop()


@pytest.mark.parametrize("size", [1, 1 << 30])
def test_looking_at_many_steps_together_is_looking_at_each(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run("paths/lag")
    monkeypatch.setattr(carried_products, "PIECE_BYTES", size)
    found = run("paths/lag")
    for name in ("path/lag_direct", "path/lag_whole", "path/lag_difference", "path/retention"):
        np.testing.assert_allclose(found.array(f"rnn.l0:{name}"), expected.array(f"rnn.l0:{name}"), rtol=1e-13)


def test_statistics_of_all_lags_at_once_are_numpys() -> None:
    random = torch.Generator().manual_seed(1)
    logs = torch.randn(9, 7, generator=random, dtype=D)
    logs[4, 2], logs[1, 3], logs[2, 4] = -torch.inf, torch.nan, torch.nan
    there = torch.arange(9)[:, None] + torch.arange(7) < 11
    there[2, 4], there[:, 6] = False, False
    found = by_lag(logs, there)
    for lag in range(7):
        values = np.exp(logs[there[:, lag], lag].numpy())
        if not len(values) or np.isnan(values).any():
            assert bool(found[:, lag].isnan().all())
            continue
        expected = [*np.quantile(values, [0.5, 0.1, 0.9]), values.mean()]
        # between neighbours of which one is 0, logarithms are interpolated as the numbers themselves are
        torch.testing.assert_close(found[:, lag], torch.tensor(expected, dtype=D), rtol=1e-12, atol=1e-300)
