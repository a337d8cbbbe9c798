"""Masks and recurrent weights of hand-written recurrences against derivatives and matrices taken by hand, in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from kept import Kept
from models import GruByHand
from torch import Tensor, nn

from inspector.engine.cells.gate_info import RecurrentWeight
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.recurrent.traced.cells.replayed import ReplayStep
from inspector.engine.trace.trace import Trace
from inspector.records import Scalar
from sample_models import cells

D = torch.float64
IN, H, T = 3, 4, 10


class Stepping(nn.Module):
    """Any step (x, h) → h in a loop; outputs are the states."""

    def __init__(self, step: nn.Module, state: tuple[int, ...] = (H,)) -> None:
        super().__init__()
        self.cell, self.state = step, state

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], *self.state)
        out = []
        for x_t in x.unbind(1):
            h = self.cell(x_t, h)
            out.append(h)
        return torch.stack(out, 1)


def seen(model: nn.Module, *keys: str, b: int = 2, look_at: int = 1, scale: float = 2.0) -> tuple[Trace, Kept, Tensor]:
    torch.manual_seed(5)
    x = scale * torch.randn(b, T, IN, dtype=D)
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out.square().flatten(2).sum(-1))
    kept = Kept()
    trace = perform(
        subject, Batch(x, torch.tensor([T] * b), look_at=look_at), kept, RunOptions(only=tuple(keys or ("states",)))
    )
    return trace, kept, x


class Squashed(nn.Module):
    """h' = φ(U x + W h + b)."""

    def __init__(self, squash: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.u, self.w, self.squash = nn.Linear(IN, H), nn.Linear(H, H, bias=False), squash

    def pre_activation(self, x: Tensor, h: Tensor) -> Tensor:
        return self.u(x) + self.w(h)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return self.squash(self.pre_activation(x, h))


SQUASHES: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "F.relu": nn.functional.relu,
    "ReLU in place": nn.ReLU(inplace=True),
    "relu_": lambda a: a.relu_(),
    "relu6": nn.functional.relu6,
    "ReLU6": nn.ReLU6(),
    "hardtanh": nn.functional.hardtanh,
    "Hardtanh": nn.Hardtanh(-0.3, 0.7),
    "leaky_relu": nn.functional.leaky_relu,
    "LeakyReLU": nn.LeakyReLU(0.3),
}


@pytest.mark.parametrize("name", SQUASHES)
def test_masks_are_the_derivative_of_what_makes_the_state(name: str) -> None:
    torch.manual_seed(0)
    cell = Squashed(SQUASHES[name]).double()
    trace, kept, x = seen(Stepping(cell), "masks", scale=6.0 if "6" in name else 2.0)
    (item,) = trace.recurrences
    h, masks, product, sizes = torch.zeros(H, dtype=D), [], torch.eye(H, dtype=D), []
    for t, row in enumerate(x[1]):
        a = cell.pre_activation(row, h).detach().requires_grad_()
        h = SQUASHES[name](a.clone())
        masks.append(torch.autograd.grad(h.sum(), a)[0])
        h = h.detach()
        if t:
            product = torch.diag(masks[-1]) @ cell.w.weight.detach() @ product
            sizes.append(float(product.norm()))
    expected = torch.stack(masks)
    np.testing.assert_array_equal(kept.array(f"{item.place}:mask"), expected.half().double())
    assert set(expected.unique().tolist()) != {1.0}, "with every unit open nothing is tested"
    np.testing.assert_allclose(kept.array(f"{item.place}:mask/open_share"), (expected == 1).double().mean(1))
    torch.testing.assert_close(
        item.block(0, T).jacobian()[1:, 1], expected[1:, :, None] * cell.w.weight.detach(), rtol=1e-12, atol=1e-14
    )
    assert kept.array(f"{item.place}:mask/masked_product")[-1] == pytest.approx(sizes[-1] / H**0.5, rel=1e-9)
    closes = "leaky" not in name.lower()
    assert (f"{item.place}:mask/open_paths" in kept.names()) == closes
    if closes:
        whole = float(expected[1:].mean(1).prod())
        assert kept.array(f"{item.place}:mask/open_paths")[-1] == pytest.approx(whole, rel=1e-9, abs=1e-300)


class Gated(Squashed):
    """A rectified value mixed with the state: no mask says what passes."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return 0.5 * torch.relu(self.pre_activation(x, h)) + 0.5 * h


class Twice(Squashed):
    """Rectified, but the state goes two ways into the pre-activation: masks, but no paths through one matrix."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.relu(self.pre_activation(x, h) + h)


class Negative(Squashed):
    """A leaky ReLU of a negative slope is no function whose value tells its derivative."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return nn.functional.leaky_relu(self.pre_activation(x, h), -0.5)


def test_what_is_no_piecewise_linear_state_has_no_mask() -> None:
    for kind in (Gated, Negative, lambda _: Squashed(torch.tanh)):
        _, kept, _ = seen(Stepping(kind(torch.relu).double()), "masks")
        assert not any(":mask" in name for name in kept.names()) and not kept.reasons()
    trace, kept, _ = seen(Stepping(Twice(torch.relu).double()), "masks")
    assert {name for name in kept.names() if ":mask" in name} == {"cell:mask", "cell:mask/open_share"}
    assert [weight.gain for weight in trace.recurrences[0].cell.recurrent_weights()] == [None]


def test_a_state_of_nan_has_no_mask_there() -> None:
    torch.manual_seed(0)
    cell = Squashed(torch.relu).double()

    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = cell

        def forward(self, x: Tensor) -> Tensor:
            h, out = x.new_zeros(x.shape[0], H), []
            for t, x_t in enumerate(x.unbind(1)):
                h = cell(x_t if t != 6 else x_t * torch.nan, h)
                out.append(h)
            return torch.stack(out, 1)

    _, kept, _ = seen(Broken(), "masks")
    found = kept.array("cell:mask")
    assert np.isfinite(found[:6]).all() and np.isnan(found[6:]).all()


def weights_of(model: nn.Module, **options: int) -> list[RecurrentWeight]:
    trace, kept, _ = seen(model, **options)  # type: ignore[arg-type]
    (item,) = trace.recurrences
    assert isinstance(item.cell, ReplayStep) and not kept.reasons()
    return item.cell.recurrent_weights()


class Products(nn.Module):
    """The same plain step, the product written in one of several ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.u, self.w = way, nn.Linear(IN, H), nn.Parameter(torch.randn(H, H) / 2)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        if self.way == "addmm":
            return torch.tanh(torch.addmm(self.u(x), h, self.w))
        product = {
            "h @ w": lambda: h @ self.w,
            "h @ w.T": lambda: h @ self.w.T,
            "matmul": lambda: torch.matmul(h, self.w.t()),
            "mm": lambda: h.mm(self.w),
            "linear": lambda: nn.functional.linear(h, self.w),
        }[self.way]
        return torch.tanh(self.u(x) + product())


@pytest.mark.parametrize("way", ["h @ w", "h @ w.T", "matmul", "mm", "addmm", "linear"])
def test_however_the_product_is_written_it_is_the_matrix_of_the_jacobian(way: str) -> None:
    torch.manual_seed(1)
    model = Stepping(Products(way)).double()
    trace, _, _ = seen(model)
    (item,) = trace.recurrences
    (weight,) = item.cell.recurrent_weights()
    assert weight.signal == "w" and weight.symbol == "w" and weight.gain == 1.0
    slope = 1 - item.states[1:].square()
    torch.testing.assert_close(item.block(0, T).jacobian(), slope[..., None] * weight.matrix, rtol=1e-12, atol=1e-14)


class Column(nn.Module):
    """One sequence, states as column vectors: h' = tanh(W h + U x)."""

    def __init__(self, flat: bool) -> None:
        super().__init__()
        self.flat, self.w, self.u = flat, nn.Parameter(torch.randn(H, H) / 2), nn.Parameter(torch.randn(H, IN))

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(H) if self.flat else x.new_zeros(H, 1)
        out = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.w @ h + self.u @ (x[0, t] if self.flat else x[0, t][:, None]))
            out.append(h.reshape(H))
        return torch.stack(out)[None]


@pytest.mark.parametrize("flat", [True, False])
def test_states_that_are_vectors_or_columns(flat: bool) -> None:
    torch.manual_seed(2)
    model = Column(flat).double()
    (weight,) = weights_of(model, b=1, look_at=0)
    torch.testing.assert_close(weight.matrix, model.w.detach())
    assert weight.gain == 1.0


def test_one_map_of_all_gates_is_taken_apart_by_the_gates_names() -> None:
    torch.manual_seed(3)
    cell = GruByHand(IN, H).double()
    found = weights_of(Stepping(cell))
    assert [(weight.signal, weight.gain) for weight in found] == [("r", None), ("z", None), ("n", None)]
    for weight, expected in zip(found, cell.u.weight.chunk(3), strict=True):
        torch.testing.assert_close(weight.matrix, expected.detach())


def test_columns_of_the_state_are_taken_out_of_a_map_of_input_and_state() -> None:
    torch.manual_seed(4)
    cell = cells.TextbookGruCell(IN, H).double()
    trace, _, _ = seen(cells_in_a_loop(cells.Unrolled(cell)))
    found = trace.recurrences[0].cell.recurrent_weights()
    assert {weight.signal for weight in found} == {"reset.weight", "update.weight", "candidate.weight"}
    for weight in found:
        expected = cell.get_parameter(weight.signal)[:, IN:].detach()
        torch.testing.assert_close(weight.matrix, expected)  # of the candidate: what r ⊙ h is multiplied with
        assert weight.symbol == f"{weight.signal}[:, {IN}:{IN + H}]" and weight.gain is None


def cells_in_a_loop(rnn: nn.Module) -> nn.Module:
    class Outputs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = rnn

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = rnn(x)[0]
            return out

    return Outputs()


def test_both_matrices_of_a_skip_connection() -> None:
    torch.manual_seed(4)
    cell = cells.SkipThroughTime(IN, H, 3).double()
    trace, kept, _ = seen(cells_in_a_loop(cells.Unrolled(cell)), "weight/spectrum")
    found = {weight.signal: weight.matrix for weight in trace.recurrences[0].cell.recurrent_weights()}
    assert set(found) == {"from_state.weight", "from_skipped.weight"}
    torch.testing.assert_close(found["from_skipped.weight"], cell.from_skipped.weight.detach())
    place = trace.recurrences[0].place
    values = kept.array(f"{place}:weight/from_state.weight/singular_values")
    np.testing.assert_allclose(values, torch.linalg.svdvals(cell.from_state.weight.detach()), rtol=1e-10)
    assert not [r for r in kept.records if isinstance(r, Scalar) and r.name.endswith("/bound")]


class Fast(nn.Module):
    """Matrices that change from step to step: made of the input, or of the state itself."""

    def __init__(self, of_state: bool) -> None:
        super().__init__()
        self.make, self.of_state = nn.Linear(H if of_state else IN, H * H), of_state

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        weight = self.make((h if self.of_state else x)[0]).view(H, H)
        return torch.tanh(h @ weight + x[:, :1])


def test_a_matrix_of_its_own_for_every_step_is_no_weight() -> None:
    assert weights_of(Stepping(Fast(False)).double()) == []
    found = weights_of(Stepping(Fast(True)).double(), b=1, look_at=0)  # but the map that makes it is one
    assert [weight.signal for weight in found] == [f"make.weight[{n}]" for n in range(H)]


@pytest.mark.parametrize("activation", ["tanh", "logistic", "softplus", "relu", "hardtanh"])
def test_the_bound_of_a_plain_network(activation: str) -> None:
    torch.manual_seed(6)
    cell = cells.ElmanCell(IN, H, activation).double()
    model = cells_in_a_loop(cells.Unrolled(cell))
    trace, kept, _ = seen(model, "weight/spectrum")
    place = trace.recurrences[0].place
    gamma = 0.25 if activation == "logistic" else 1.0
    expected = gamma * float(torch.linalg.svdvals(cell.from_state.weight.detach())[0])
    assert kept.scalar(f"{place}:weight/from_state.weight/bound") == pytest.approx(expected, rel=1e-10)
    norms = torch.linalg.matrix_norm(trace.recurrences[0].block(0, T).jacobian()[:, 1], 2)
    assert float(norms.max()) <= expected * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["orthogonal", "weight_norm"])
def test_a_parametrised_weight_has_its_effective_value_and_its_own_name(kind: str) -> None:
    torch.manual_seed(7)
    cell = cells.ElmanCell(IN, H).double()
    getattr(nn.utils.parametrizations, kind)(cell.from_state)
    trace, _, _ = seen(cells_in_a_loop(cells.Unrolled(cell)))
    (weight,) = trace.recurrences[0].cell.recurrent_weights()
    assert weight.signal == "from_state.weight" and weight.gain == 1.0
    torch.testing.assert_close(weight.matrix, cell.from_state.weight.detach())


class Alternating(nn.Module):
    """One matrix or the other, as the input says: no single one is that of all steps."""

    def __init__(self) -> None:
        super().__init__()
        self.u, self.a, self.b = nn.Linear(IN, H), nn.Linear(H, H), nn.Linear(H, H)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        chosen = self.a if float(x.detach().sum()) > 0 else self.b
        return torch.relu(self.u(x) + chosen(h))


def test_matrices_that_change_with_the_data_have_no_paths_through_one_matrix() -> None:
    torch.manual_seed(8)
    trace, kept, _ = seen(Stepping(Alternating().double()), "masks", b=1, look_at=0)
    assert all(weight.gain is None for weight in trace.recurrences[0].cell.recurrent_weights())
    assert {name for name in kept.names() if ":mask" in name} == {"cell:mask", "cell:mask/open_share"}
