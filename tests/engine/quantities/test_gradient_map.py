"""The step × step map of gradients where they vanish: down to the smallest numbers, and without them in the products."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.cells.spread_block import SpreadBlock
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

KEY = "gradient/lag_map"
STEPS = 320


class Net(nn.Module):
    """A recurrence whose gradients fall by about 0.5 a step; every step's loss reads that step's state."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 40, batch_first=True), nn.Linear(40, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.rnn(x)[0])
        return out


def run(silent: slice = slice(0, 0)) -> tuple[Net, Tensor, np.ndarray]:
    """(model, sequence, map); steps in `silent` have no loss."""
    torch.manual_seed(0)
    net, x, kept = Net(), torch.randn(1, STEPS, 3), Kept()
    weight = torch.ones(STEPS)
    weight[silent] = 0
    subject = Subject(
        model=net, kind="vectors", width=3, loss=lambda out, _batch: out.square().sum(-1) * weight[: out.shape[1]]
    )
    perform(subject, Batch(x, torch.tensor([STEPS])), kept, RunOptions(only=(KEY,)))
    return net, x, kept.array(f"rnn.l0:{KEY}")


def expected(net: Net, x: Tensor, rows: tuple[int, ...]) -> dict[int, list[float]]:
    """Norms of ∂ℓ_t/∂h_k by autograd through torch's own cell in float64, from the states that the model had."""
    cell, head = nn.GRUCell(3, 40).double(), nn.Linear(40, 2).double()
    head.load_state_dict(net.head.state_dict())
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).data = getattr(net.rnn, f"{name}_l0").data.double()
    states = [torch.zeros(1, 40, dtype=torch.float64, requires_grad=True)]
    for row in x[0].double():
        states.append(cell(row[None], states[-1]))
    return {
        t: [float(g.norm()) for g in torch.autograd.grad(head(states[t + 1]).square().sum(), states[1 : t + 2], retain_graph=True)]
        for t in rows
    }  # fmt: skip


def test_vanished_gradients_are_exact_down_to_the_smallest_numbers() -> None:
    net, x, shown = run()
    for t, norms in expected(net, x, (STEPS - 1, STEPS // 2, 0)).items():
        normal = np.array(norms) > 1e-37
        np.testing.assert_allclose(shown[t, : t + 1][normal], np.array(norms)[normal], rtol=1e-3)
        np.testing.assert_allclose(shown[t, : t + 1], norms, rtol=1e-3, atol=2e-45)
        assert (shown[t, t + 1 :] == 0).all()
    assert ((shown > 0) & (shown < 1e-35)).any()


def test_steps_without_a_loss_have_rows_of_zeros() -> None:
    net, x, shown = run(slice(100, STEPS))
    assert (shown[100:] == 0).all()
    np.testing.assert_allclose(shown[99, :100], expected(net, x, (99,))[99], rtol=1e-3, atol=2e-45)


def test_products_see_hardly_a_number_below_the_normal_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """With them a product is twenty times as slow."""
    tiny, seen = torch.finfo(torch.float32).smallest_normal, [0, 0]
    plain = SpreadBlock.back_

    def counted(block: SpreadBlock, rows: Tensor, at: int) -> None:
        seen[0] += int(((rows != 0) & (rows.abs() < tiny)).sum())
        seen[1] += rows.numel()
        plain(block, rows, at)

    monkeypatch.setattr(SpreadBlock, "back_", counted)
    run()
    assert seen[1] > 0 and seen[0] <= 1e-4 * seen[1]
