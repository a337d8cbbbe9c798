"""The effective rank of outputs: against numpy's singular values, at its bounds, and as it is recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import inspector
from inspector.engine.watch.measures.effective_rank import MOST_KEPT, _Rows, effective_rank, with_spread


def by_hand(rows: np.ndarray) -> float:
    """exp of the entropy of σ / Σ σ in float64."""
    sizes = np.linalg.svd(rows, compute_uv=False)
    shares = sizes[sizes > 0] / sizes.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


@pytest.mark.parametrize("shape", [(40, 9), (9, 40), (16, 16)])
def test_it_is_that_of_the_singular_values(shape: tuple[int, int]) -> None:
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert effective_rank(rows) == pytest.approx(by_hand(rows.numpy()), rel=1e-9)


def test_its_bounds() -> None:
    assert effective_rank(torch.eye(7, dtype=torch.float64)) == pytest.approx(7)
    line = torch.arange(1.0, 21, dtype=torch.float64)[:, None] * torch.ones(5, dtype=torch.float64)
    assert effective_rank(line) == pytest.approx(1, abs=1e-5)
    assert with_spread(torch.zeros(20, 5, dtype=torch.float64)) == (0.0, 0.0)


def test_the_spread_is_the_jackknife_over_groups() -> None:
    rows = torch.randn(32, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    parts = [by_hand(np.delete(rows.numpy(), np.s_[n::4], axis=0)) for n in range(4)]
    assert with_spread(rows)[1] == pytest.approx(np.sqrt(3 * np.var(parts)), rel=1e-9)


@pytest.mark.parametrize(
    "output", [torch.ones(5), torch.ones(15, 8), torch.ones(50, 3), torch.ones(20, 8).long(), None]
)
def test_what_has_too_few_rows_or_features_has_none(output: object) -> None:
    rows = _Rows()
    rows.take(output)
    assert rows.spaced() is None


@pytest.mark.parametrize(("steps", "batch"), [(40, 4), (7, 30), (500, 3), (1, 900)])
def test_rows_are_of_all_calls_and_few_are_held(steps: int, batch: int) -> None:
    """A module that is called step after step: each call has a direction of its own."""
    rows = _Rows()
    every = torch.zeros(steps, batch, steps + 4)
    for n in range(steps):
        every[n, :, n] = 1 + torch.arange(batch)
        rows.take(every[n])
        assert sum(map(len, rows._parts)) <= MOST_KEPT
    taken = rows.spaced()
    assert taken is not None and len(taken) == min(64, steps * batch)
    seen = taken.abs().amax(0).nonzero().flatten()
    assert len(seen) >= min(steps, 32)  # calls
    assert seen[0] == 0 and seen[-1] >= steps - 1 - steps // 32


class Loop(nn.Module):
    """A plain recurrence by hand, whose state is 0 before the first step."""

    def __init__(self) -> None:
        super().__init__()
        self.wx, self.wh = nn.Linear(3, 8), nn.Linear(8, 8, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, self.seen = x.new_zeros(len(x), 8), list[torch.Tensor]()
        for row in x.unbind(1):
            self.seen.append(self.wh(h).detach())
            h = torch.tanh(self.wx(row) + self.wh(h))
        return h


def test_a_module_in_a_loop_is_not_judged_by_its_first_step(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Loop()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with inspector.watch(model, optimizer, tmp_path / "r.inspect", every=1):
        optimizer.zero_grad()
        model(torch.randn(2, 16, 3)).square().mean().backward()
        optimizer.step()
    with inspector.open_capture(tmp_path / "r.inspect") as capture:
        table = capture.array("modules:activation/effective_rank")
        names = capture.labels("module")
    every = torch.cat([one for one in model.seen for _ in (0, 1)]).double()  # it is called twice a step
    assert float(table[0, names.index("wh")]) == pytest.approx(by_hand(every.numpy()), rel=1e-5)


def test_a_watched_training_records_it_now_and_then(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    inputs, wanted = torch.randn(9, 6, 4, 4), list[float]()
    before = torch.get_rng_state()
    with inspector.watch(model, optimizer, tmp_path / "r.inspect", every=4) as watcher:
        for n in range(36):
            output = model(inputs[n % 9])
            wanted.append(by_hand(output.detach().double().reshape(-1, 8).numpy()))
            optimizer.zero_grad()
            output.square().mean().backward()
            optimizer.step()
    assert watcher is not None and torch.equal(before, torch.get_rng_state())
    with inspector.open_capture(tmp_path / "r.inspect") as capture:
        names = capture.labels("module")
        values = np.ma.filled(capture.array("modules:activation/effective_rank"), np.nan)[:, names.index("1")]
        spread = np.ma.filled(capture.array("modules:activation/effective_rank_spread"), np.nan)[:, names.index("1")]
        iterations = np.asarray(capture.array("training:iteration"))
    known = np.isfinite(values)
    assert known.sum() == 3 and np.isfinite(spread[known]).all()
    np.testing.assert_allclose(values[known], [wanted[int(n) - 1] for n in iterations[known]], rtol=1e-5)
