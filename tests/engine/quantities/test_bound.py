"""The bound γσ₁(W): γ against the steepest slope of φ, σ₁ against power iteration, over every plain recurrence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.dynamics import weight_spectra as spectra_file
from inspector.engine.quantities.jacobian import bound as bound_file
from inspector.records import SECONDS, Scalar
from sample_models import cells

D = torch.float64
IN, H, LENGTHS = 3, 5, (20, 13)
KEYS = ("jacobian/bound", "jacobian/spectral_norm")
SLOPES: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh, "relu": torch.relu, "hardtanh": nn.functional.hardtanh, "logistic": torch.sigmoid,
    "softplus": nn.functional.softplus,
}  # fmt: skip


def steepest(function: Callable[[Tensor], Tensor]) -> float:
    """max |φ′| over a grid, by autograd."""
    grid = torch.linspace(-40, 40, 80_001, dtype=D, requires_grad=True)
    return float(torch.autograd.grad(function(grid).sum(), grid)[0].abs().max())


def largest_stretch(matrix: Tensor) -> float:
    """max ‖W v‖ of unit vectors, by power iteration on WᵀW."""
    v = torch.ones(matrix.shape[1], dtype=D)
    for _ in range(3000):
        v = matrix.T @ (matrix @ v)
        v = v / v.norm()
    return float((matrix @ v).norm())


class Fused(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        options = {"num_layers": 2, "bidirectional": True, "batch_first": True}
        self.rnn = nn.GRU(IN, H, **options) if kind == "gru" else nn.RNN(IN, H, nonlinearity=kind, **options)

    def forward(self, x: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, torch.tensor(LENGTHS), batch_first=True)
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]


class Looped(nn.Module):
    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for x_t in x.unbind(1):
            h = self.cell(x_t, h)
            out.append(h)
        return torch.stack(out, 1)


def seen(model: nn.Module, lengths: tuple[int, ...] = (20, 20)) -> Kept:
    torch.manual_seed(3)
    x = torch.randn(2, 20, IN, dtype=next(model.parameters()).dtype)
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=IN)
    perform(subject, Batch(x, torch.tensor(lengths), look_at=1), kept, RunOptions(only=tuple(KEYS)))
    return kept


def check(kept: Kept, place: str, expected: float, steps: int) -> None:
    found, norms = (kept.array(f"{place}:{key}") for key in KEYS)
    assert found.shape == norms.shape == (steps,)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (norms <= expected * (1 + 1e-12)).all()


@pytest.mark.parametrize("kind", ["tanh", "relu"])
def test_of_torchs_own_layers_and_cells(kind: str) -> None:
    torch.manual_seed(0)
    net = Fused(kind).double().eval()
    kept = seen(net, LENGTHS)
    for layer in (0, 1):
        for reverse in ("", "_reverse"):
            weight = getattr(net.rnn, f"weight_hh_l{layer}{reverse}").detach()
            expected = steepest(SLOPES[kind]) * largest_stretch(weight)
            check(kept, f"rnn.l{layer}{reverse.replace('_', '.')}", expected, LENGTHS[1])
    cell = nn.RNNCell(IN, H, nonlinearity=kind).double()
    check(seen(Looped(cell)), "cell", steepest(SLOPES[kind]) * largest_stretch(cell.weight_hh.detach()), 20)


@pytest.mark.parametrize("kind", SLOPES)
def test_of_hand_written_networks(kind: str) -> None:
    torch.manual_seed(0)
    cell = cells.ElmanCell(IN, H, kind, gain=0.8).double()
    with torch.no_grad():
        cell.from_state.weight.add_(0.2 * torch.randn(H, H, dtype=D))
    kept = seen(Looped(cell))
    gamma = steepest(SLOPES[kind])
    assert gamma == pytest.approx(0.25 if kind == "logistic" else 1.0, rel=1e-6)
    check(kept, "cell", gamma * largest_stretch(cell.from_state.weight.detach()), 20)
    assert f"= {gamma:.3g}" in kept.channel("cell:jacobian/bound").formula


class Halfway(cells.ElmanCell):
    """A plain step mixed with the state: its Jacobian is no diag(φ′) W."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return 0.5 * h + 0.5 * super().forward(x, h)


class Stack(nn.Module):
    """Layers one above the other: depth is the step axis, and every step has a weight of its own."""

    def __init__(self, function: Callable[[Tensor], Tensor], carry: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(IN, IN) for _ in range(6))
        self.function, self.carry = function, carry

    def forward(self, x: Tensor) -> Tensor:
        h = x
        for layer in self.layers:
            after = self.function(layer(h))
            h = after + self.carry * h if self.carry else after
        return h


@pytest.mark.parametrize("kind", ["tanh", "relu", "logistic"])
def test_of_layers_every_one_has_its_own(kind: str) -> None:
    torch.manual_seed(0)
    model, kept = Stack(SLOPES[kind], 0.0).double(), Kept()
    subject = Subject(model=model, kind="vectors", width=IN)
    keys = (*KEYS, "weight/spectrum", "masks")
    perform(subject, Batch(torch.randn(1, 1, IN, dtype=D), torch.tensor([1])), kept, RunOptions(only=tuple(keys)))
    weights = [layer.weight.detach() for layer in model.layers]
    expected = [steepest(SLOPES[kind]) * largest_stretch(weight) for weight in weights]
    found, norms = (kept.array(f"model:{key}") for key in KEYS)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert found.shape == (6,) and (norms <= found * (1 + 1e-12)).all() and not kept.reasons()
    for n, weight in enumerate(weights):
        place = f"model:weight/layers.{n}.weight"
        singular = np.linalg.svd(weight.numpy(), compute_uv=False)
        np.testing.assert_allclose(kept.array(f"{place}/singular_values"), singular, rtol=1e-9)
        defect = np.linalg.norm(weight.numpy().T @ weight.numpy() - np.eye(IN))
        assert kept.scalar(f"{place}/orthogonality_defect") == pytest.approx(defect)
    said = [record.name for record in kept.of(Scalar) if not record.name.startswith(SECONDS)]
    assert not [name for name in said if name.endswith("/bound")], "one layer alone says nothing of all"
    masks = {name for name in kept.names() if ":mask" in name}
    assert masks == ({"model:mask", "model:mask/open_share"} if kind == "relu" else set())


def test_layers_with_a_carry_have_weights_and_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    subject = Subject(model=Stack(torch.tanh, 0.5), kind="vectors", width=IN)
    batch = Batch(torch.randn(1, 1, IN), torch.tensor([1]))
    kept = Kept()
    perform(subject, batch, kept, RunOptions(only=("jacobian/bound", "weight/spectrum")))
    assert "model:weight/layers.5.weight/eigenvalues" in kept.names()
    assert "model:jacobian/bound" not in kept.names() and not kept.reasons()
    monkeypatch.setattr(spectra_file, "BUDGET", 5 * IN**3)
    kept = Kept()
    perform(subject, batch, kept, RunOptions(only=("weight/spectrum",)))
    assert kept.reasons() == ["Spectra of 6 weights of 3 × 3 cost too much; the limit is 5."]


@pytest.mark.parametrize("make", [
    lambda: Fused("gru"), lambda: Looped(cells.TextbookGruCell(IN, H)), lambda: Looped(Halfway(IN, H)),
    lambda: Looped(cells.SimplifiedGateCell(IN, H)), lambda: Looped(nn.GRUCell(IN, H)),
])  # fmt: skip
def test_steps_that_are_not_plain_have_none_and_nothing_is_said(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    kept = seen(make().double().eval(), LENGTHS)
    assert any(name.endswith("jacobian/spectral_norm") for name in kept.names())
    assert not any("bound" in name for name in kept.names()) and not kept.reasons()


def test_weights_that_have_no_norm_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = nn.RNNCell(IN, H)
    with torch.no_grad():
        cell.weight_hh[0, 0] = torch.inf
    kept = seen(Looped(cell))
    assert any("Wₕₕ holds a NaN or infinity" in reason for reason in kept.reasons())
    monkeypatch.setattr(bound_file, "LARGEST", 4)
    kept = seen(Looped(nn.RNNCell(IN, H)))
    assert any("5 × 5 weight costs too much" in reason for reason in kept.reasons())
