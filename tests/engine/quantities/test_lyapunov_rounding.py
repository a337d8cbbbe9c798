"""Lyapunov exponents of models in float32, of Jacobians without full rank: right, or not known; numpy loops in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

Array = npt.NDArray[np.float64]
IN, H, T, RANK = 2, 8, 240, 3


class Cell(nn.Module):
    """h' = f(W x + b + U V h)."""

    def __init__(self, squash: Callable[[Tensor], Tensor], rank: int, size: float) -> None:
        super().__init__()
        self.squash, self.w = squash, nn.Linear(IN, H)
        self.up, self.down = nn.Parameter(torch.randn(H, rank) * size / H), nn.Parameter(torch.randn(rank, H))

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            h = self.squash(self.w(row) + h @ self.down.T @ self.up.T)
            out.append(h)
        return torch.stack(out, 1)


def tanh_and_slope(a: Array) -> Array:
    """∂ tanh a / ∂a, as cosh says it: exact also where tanh a rounds to 1."""
    return np.diag(1 / np.cosh(a) ** 2)


def of_softmax(a: Array) -> Array:
    p = np.exp(a - a.max()) / np.exp(a - a.max()).sum()
    found: Array = np.diag(p) - np.outer(p, p)
    return found


CELLS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Array], int, float, int]] = {
    "low rank": (torch.tanh, tanh_and_slope, RANK, 2.0, RANK),
    "saturated": (torch.tanh, tanh_and_slope, H, 5.0, 2),
    "softmax": (lambda a: torch.softmax(a, -1), of_softmax, H, 6.0, H - 1),
}
"""The function, its derivative, the rank of U V and its size, and how many exponents are compared."""


def by_hand(w: Array, b: Array, u: Array, slope: Callable[[Array], Array], x: Array, states: Array) -> Array:
    """All exponents after a tenth of warm-up, descending, from the Jacobian of every step in float64."""
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(H, H)))[0]
    total, steps = np.zeros(H), 0
    for t in range(T):
        before = states[t - 1] if t else np.zeros(H)
        basis, triangle = np.linalg.qr(slope(w @ x[t] + b + u @ before) @ u @ basis)
        if t >= T // 10:
            total += np.log(np.abs(np.diag(triangle)) + 1e-300)
            steps += 1
    return np.sort(total / steps)[::-1]


def ran(model: nn.Module, x: Tensor) -> Kept:
    sink = Kept()
    perform(Subject(model), Batch(x, torch.tensor([T]), ()), sink, RunOptions(only=("states", "lyapunov")))
    return sink


def numbers(*tensors: Tensor) -> list[Array]:
    return [one.detach().double().numpy() for one in tensors]


@pytest.mark.parametrize("name", CELLS)
def test_steps_by_hand_are_run_again_in_float64(name: str) -> None:
    torch.manual_seed(2)
    squash, slope, rank, size, compared = CELLS[name]
    model, x = Cell(squash, rank, size), torch.randn(1, T, IN)
    sink = ran(model, x)
    w, b, up, down, given = numbers(model.w.weight, model.w.bias, model.up, model.down, x[0])
    expected = by_hand(w, b, up @ down, slope, given, sink.array("model:h").astype(np.float64))
    found = sink.array("model:lyapunov/exponents")
    error = sink.array("model:lyapunov/errors")[2]
    np.testing.assert_allclose(found[:compared], expected[:compared], atol=1e-3 + 4 * error[:compared].max())
    if rank == RANK or name == "softmax":
        assert np.isneginf(found[compared:]).all()  # U V has no more directions; a softmax's sum never moves
    method = [one.method for one in sink.channels().values() if one.name == "model:lyapunov/exponents"]
    assert "Jacobians in float64" in method[-1]


def test_what_rounding_hides_of_a_module_of_torchs_is_not_known() -> None:
    torch.manual_seed(2)
    rnn, x = nn.RNN(IN, H, batch_first=True), torch.randn(1, T, IN)
    with torch.no_grad():
        rnn.weight_hh_l0.copy_(torch.randn(H, RANK) @ torch.randn(RANK, H) * 2 / H)
    sink = ran(rnn, x)
    place = next(name for name in sink.names() if name.endswith("lyapunov/exponents")).rpartition(":")[0]
    w, b, u, given = numbers(rnn.weight_ih_l0, rnn.bias_ih_l0 + rnn.bias_hh_l0, rnn.weight_hh_l0, x[0])
    states = sink.array(f"{place}:h").astype(np.float64)
    expected = by_hand(w, b, u, tanh_and_slope, given, states)
    found = sink.array(f"{place}:lyapunov/exponents")
    error = sink.array(f"{place}:lyapunov/errors")[2]
    np.testing.assert_allclose(found[:RANK], expected[:RANK], atol=1e-3 + 4 * error[:RANK].max())
    assert np.isnan(found[RANK:]).all() and expected[RANK] < -14  # the product is rounded, so its rank is H
    assert "NaN lie below the rounding" in sink.channels()[f"{place}:lyapunov/exponents"].method


def test_what_float32_tells_is_left_as_it_is() -> None:
    torch.manual_seed(2)
    sink = ran(Cell(torch.tanh, H, 2.0), torch.randn(1, T, IN))
    assert "Jacobians in float64" not in sink.channels()["model:lyapunov/exponents"].method
    assert np.isfinite(sink.array("model:lyapunov/exponents")).all()
