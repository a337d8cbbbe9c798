"""Statistics over starts of products by lag: one dead start among many does not decide, and is told of by itself."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
STEPS, H, CLIPPED = 60, 3, 30


class Clipped(nn.Module):
    """h ← φ(W h + x). With hardtanh: where all units of a step are outside ±1 its Jacobian is exactly 0."""

    def __init__(self, squash: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.squash = squash
        self.w = nn.Linear(H, H, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            h = self.squash(self.w(h) + x[:, t])
            out.append(h)
        return torch.stack(out, 1)


def products(model: Clipped, x: Tensor) -> np.ndarray:
    """(start, lag) ‖J … J‖_F / √H by autograd on the loop from every start; NaN beyond the end."""
    found, h = np.full((STEPS - 1, STEPS), np.nan), torch.zeros(H, dtype=D)
    for t in range(STEPS - 1):
        h = nn.functional.hardtanh(model.w(h) + x[t]).detach()
        start = g = h.clone().requires_grad_()
        found[t, 0] = 1.0
        for lag in range(1, STEPS - t):
            g = nn.functional.hardtanh(model.w(g) + x[t + lag])
            rows = [torch.autograd.grad(one, start, retain_graph=True)[0] for one in g]
            found[t, lag] = float(torch.stack(rows).norm()) / math.sqrt(H)
    return found


def run(
    blown: float = 9.0, squash: Callable[[Tensor], Tensor] = nn.functional.hardtanh
) -> tuple[Clipped, Tensor, Kept]:
    torch.manual_seed(3)
    model = Clipped(squash).to(D)
    with torch.no_grad():
        model.w.weight.copy_(torch.linalg.qr(torch.randn(H, H, dtype=D)).Q * 0.9)
    x = 0.01 * torch.randn(1, STEPS, H, dtype=D)
    x[0, CLIPPED] = blown
    kept = Kept()
    perform(
        Subject(model=model, kind="vectors", width=H), Batch(x, torch.tensor([STEPS])), kept,
        RunOptions(only=("jacobian/lag",)),
    )  # fmt: skip
    return model, x[0], kept


def test_a_step_that_clips_every_unit_makes_its_starts_dead_and_decides_nothing_else() -> None:
    model, x, kept = run()
    expected = products(model, x)
    name = next(one for one in kept.names() if one.endswith(":jacobian/lag"))
    table = dict(zip(kept.channel(name).labels["statistic"], kept.array(name), strict=True))
    assert list(table) == ["median", "p10", "p90", "mean"]
    zeros = np.nanmean(np.where(np.isnan(expected), np.nan, expected == 0), axis=0)
    assert 0 < zeros[1] < 0.05 < 0.4 < zeros[25] < 0.9, "one step of sixty kills the products over it"
    np.testing.assert_allclose(kept.array(f"{name}_dead"), zeros, rtol=1e-12)
    np.testing.assert_allclose(table["mean"], np.nanmean(expected, axis=0), rtol=1e-9)
    for row, level in (("median", 0.5), ("p10", 0.1), ("p90", 0.9)):
        np.testing.assert_allclose(table[row], np.nanquantile(expected, level, axis=0), rtol=1e-9, atol=1e-300)
    passed = np.flatnonzero(np.nanmedian(expected, axis=0) < 1e-3)
    assert kept.scalar(f"{name}_horizon") == passed[0] > 10


def test_a_nan_of_the_model_is_not_left_out_of_the_statistics() -> None:
    _, _, kept = run(blown=math.nan, squash=torch.tanh)
    name = next(one for one in kept.names() if one.endswith(":jacobian/lag"))
    assert np.isnan(kept.array(name)[:, 1:29]).all() and np.isnan(kept.array(f"{name}_dead")[1:29]).all()
    assert math.isnan(kept.scalar(f"{name}_horizon"))
