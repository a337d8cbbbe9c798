"""Closed forms against torch.func, finite differences and PyTorch's own cells, in float64."""

from __future__ import annotations

import pytest
import torch
from families import FAMILIES, make, numbers, walk
from hypothesis import given, settings
from hypothesis import strategies as st
from krylov import lanczos
from torch import Tensor, nn

from inspector.engine.cells import spectral
from inspector.engine.cells.base import Cell, StepBlock
from inspector.engine.cells.bptt_sweep import sweep
from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.cells.gru import GruStep
from inspector.engine.cells.lstm import LstmStep
from inspector.engine.cells.rnn import RnnStep
from inspector.engine.cells.spectral import Krylov, spectral_norms

D = torch.float64


def compare(cell: Cell, t: int, b: int, i: int) -> None:
    x = numbers(t, b, i)
    states = walk(cell, x)
    block = cell.block(x, states[:-1], states[1:])
    slow = FunctionStep(cell.step, cell.parts).block(x, states[:-1], states[1:])
    jacobian, vectors = slow.jacobian(), numbers(t, b, cell.state_size, 2)
    close = {"rtol": 1e-10, "atol": 1e-12}
    torch.testing.assert_close(block.jacobian(), jacobian, **close)
    torch.testing.assert_close(block.jvp(vectors), jacobian @ vectors, **close)
    torch.testing.assert_close(block.vjp(vectors), jacobian.mT @ vectors, **close)
    torch.testing.assert_close(block.vjp(vectors[:1], slice(0, 1)), (jacobian.mT @ vectors)[:1], **close)
    torch.testing.assert_close(block.frobenius(), jacobian.flatten(2).norm(dim=2), **close)
    torch.testing.assert_close(block.input_vjp(vectors), slow.input_vjp(vectors), **close)
    direct = block.direct()
    through = jacobian if direct is None else jacobian - torch.diag_embed(direct)
    torch.testing.assert_close(block.through_frobenius(), through.flatten(2).norm(dim=2), **close)


@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_against_torch_func(family: str) -> None:
    torch.manual_seed(0)
    compare(make(family), 6, 2, 3)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(FAMILIES), st.integers(1, 4), st.integers(1, 6), st.integers(1, 4), st.integers(1, 3))
def test_derivatives_of_any_shape(family: str, i: int, h: int, t: int, b: int) -> None:
    torch.manual_seed(i + 10 * h)
    compare(make(family, i, max(h, 2)), t, b, i)


@pytest.mark.parametrize("family", FAMILIES)
def test_jacobians_against_finite_differences(family: str) -> None:
    """The whole state moves, h and c alike: the LSTM's Jacobian is 2H × 2H (traps 2 and 11)."""
    torch.manual_seed(1)
    cell = make(family)
    x = numbers(3, 1, 3)
    states = walk(cell, x)
    jacobian, e = cell.block(x, states[:-1], states[1:]).jacobian(), 1e-6
    for j in range(cell.state_size):
        push = torch.zeros(cell.state_size, dtype=D)
        push[j] = e
        for t in range(3):
            slope = (cell.step(x[t], states[t] + push) - cell.step(x[t], states[t] - push)) / (2 * e)
            torch.testing.assert_close(jacobian[t, 0, :, j], slope[0], rtol=1e-6, atol=1e-8)


def test_an_lstm_whose_gates_keep_is_not_called_vanishing() -> None:
    """∂h/∂h alone leaves out the carousel diag(f) and would report a healthy LSTM as vanishing (B3)."""
    h = 4
    bias = torch.cat((torch.full((h,), -9.0), torch.full((h,), 9.0), torch.zeros(h), torch.full((h,), -9.0))).double()
    cell = LstmStep(torch.zeros(4 * h, 2, dtype=D), numbers(4 * h, h, scale=0.01), bias, torch.zeros(4 * h, dtype=D))
    x = numbers(5, 1, 2)
    states = walk(cell, x)
    block = cell.block(x, states[:-1], states[1:])
    assert float(spectral_norms(block)[0].min()) > 0.99
    assert float(block.jacobian()[..., :h, :h].flatten(2).norm(dim=2).max()) < 0.1


def test_steps_equal_torchs_own_cells() -> None:
    """PyTorch's GRU: z = 1 keeps, the reset gate acts after the matrix product (trap 12); LSTM order i, f, g, o."""
    torch.manual_seed(2)
    x, h, c = numbers(3, 4), numbers(3, 5), numbers(3, 5)
    gru, lstm, rnn = nn.GRUCell(4, 5).double(), nn.LSTMCell(4, 5).double(), nn.RNNCell(4, 5).double()
    weights = lambda m: (m.weight_ih, m.weight_hh, m.bias_ih, m.bias_hh)  # noqa: E731
    torch.testing.assert_close(GruStep(*weights(gru)).step(x, h), gru(x, h))
    torch.testing.assert_close(RnnStep(*weights(rnn), "tanh").step(x, h), rnn(x, h))
    torch.testing.assert_close(LstmStep(*weights(lstm)).step(x, torch.cat((h, c), 1)), torch.cat(lstm(x, (h, c)), 1))
    keeps = GruStep(torch.zeros(15, 4, dtype=D), torch.zeros(15, 5, dtype=D), torch.full((15,), 50.0, dtype=D), None)
    keeps.b_hh = torch.zeros(15, dtype=D)
    torch.testing.assert_close(keeps.step(x, h), h)


@pytest.mark.parametrize("family", ["gru", "lstm", "projected"])
def test_gates_of_all_steps_equal_those_of_each_step(family: str) -> None:
    torch.manual_seed(3)
    cell = make(family)
    x = numbers(7, 2, 3)
    states = walk(cell, x)
    together = cell.gates(x, states[:-1])
    assert tuple(together) == cell.gate_names
    for t in range(7):
        alone = cell.gates(x[t : t + 1], states[t : t + 1])
        for name, values in alone.items():
            torch.testing.assert_close(together[name][t], values[0])
    start = {name: states[0][:, part] for name, part in cell.parts.items()}
    found = cell.recompute(x, start, states[1:][..., cell.parts["h"]])
    torch.testing.assert_close(found.states, states)
    torch.testing.assert_close(found.made, states[1:][..., cell.parts["h"]])


@pytest.mark.parametrize("family", FAMILIES)
def test_lanczos_finds_the_largest_singular_value(family: str) -> None:
    torch.manual_seed(4)
    cell = make(family, 4, 24)
    x = numbers(8, 2, 4)
    states = walk(cell, x)
    block = cell.block(x, states[:-1], states[1:])
    exact = torch.linalg.svdvals(block.jacobian())[..., 0]
    value, residual = lanczos(block, cell.state_size)
    torch.testing.assert_close(value, exact, rtol=1e-8, atol=1e-10)
    rough, _ = lanczos(block, 6)
    assert bool((rough <= exact * (1 + 1e-9)).all()), "the estimate is a lower bound"
    torch.testing.assert_close(spectral_norms(block)[0], exact, rtol=2e-4, atol=1e-10)
    assert float(residual.max()) < 1e-6


def still(w: Tensor, t: int = 5) -> StepBlock:
    """Steps of a tanh network at rest: every Jacobian is W itself."""
    h = len(w)
    cell = RnnStep(torch.zeros(h, 1, dtype=w.dtype), w, None, None, "tanh")
    rest = torch.zeros(t, 1, h, dtype=w.dtype)
    return cell.block(rest[..., :1], rest, rest)


def with_values(values: Tensor) -> Tensor:
    """A matrix with these singular values."""
    n = len(values)
    left, right = (torch.linalg.qr(numbers(n, n)).Q for _ in range(2))
    return left @ values.diag() @ right


def test_steps_whose_two_largest_values_nearly_coincide_go_on_until_they_are_told_apart() -> None:
    torch.manual_seed(8)
    values = torch.linspace(0.0, 1.0, 90, dtype=D)
    values[-2] = 1 - 1e-3
    block = still(with_values(values))
    assert float(lanczos(block, 20)[1].min()) > 1e-4, "twenty iterations are too few here"
    value, residual = spectral_norms(block)
    assert float(residual.max()) < 1e-6
    torch.testing.assert_close(value, torch.ones_like(value), rtol=1e-9, atol=0)


def test_going_on_is_the_same_as_beginning_with_more_iterations() -> None:
    torch.manual_seed(9)
    cell = make("lstm", 3, 40)
    x = numbers(6, 2, 3)
    states = walk(cell, x)
    block = cell.block(x, states[:-1], states[1:])
    space = Krylov(block, 12)
    space.extend(12)
    some = torch.tensor([1, 4])
    later = space.only(some, 30)
    later.extend(30)
    for found, whole in zip(later.largest(), lanczos(block, 30), strict=True):
        torch.testing.assert_close(found, whole[some], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, D])
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_spectral_norms_of_matrices_with_equal_values_and_of_any_size(dtype: torch.dtype, size: float) -> None:
    torch.manual_seed(10)
    close = 20 * torch.finfo(dtype).eps
    for values in (torch.ones(60), torch.linspace(0.3, 1.0, 60), torch.tensor([1.0] + 59 * [0.0])):
        w = (with_values(values.double()) * size).to(dtype)
        value, residual = spectral_norms(still(w))
        exact = torch.linalg.matrix_norm(w.double(), 2).to(dtype).expand_as(value)
        torch.testing.assert_close(value, exact, rtol=max(close, 1e-7), atol=0)
        assert float(residual.max()) <= 1e-4


def test_the_residual_is_that_of_the_singular_pair() -> None:
    """β |u_last| from eigenvalues alone equals what the vectors of the small matrix say."""
    torch.manual_seed(11)
    diagonal, upper = torch.rand(50, 2, 20, dtype=D) + 0.05, torch.rand(50, 2, 20, dtype=D) * 0.3
    value, residual = spectral._top(diagonal, upper)
    wanted = spectral._ritz(diagonal, upper, 1)
    torch.testing.assert_close(value, wanted[0][..., 0], rtol=1e-13, atol=0)
    torch.testing.assert_close(residual, wanted[1][..., 0], rtol=1e-6, atol=1e-6)


def test_lanczos_never_touches_the_global_random_state() -> None:
    torch.manual_seed(5)
    cell = make("lstm", 3, 30)
    x = numbers(3, 1, 3)
    states = walk(cell, x)
    before = torch.get_rng_state()
    spectral_norms(cell.block(x, states[:-1], states[1:]))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("h", [6, 60])
def test_spectral_norms_of_dead_and_broken_steps(h: int) -> None:
    torch.manual_seed(6)
    cell = RnnStep(numbers(h, 2), numbers(h, h), None, None, "relu")
    x = numbers(3, 1, 2)
    states = torch.zeros(4, 1, h, dtype=D)
    states[2] = 1.0
    states[3] = torch.nan
    block = cell.block(x, states[:-1], states[1:])
    value, _ = spectral_norms(block)
    assert float(value[0, 0]) == 0
    torch.testing.assert_close(value[1, 0], torch.linalg.matrix_norm(cell.w_hh, 2), rtol=1e-3, atol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_sweep_equals_backpropagation_through_time(family: str) -> None:
    torch.manual_seed(7)
    cell = make(family)
    x = numbers(9, 2, 3).requires_grad_()
    first = numbers(2, cell.state_size).requires_grad_()
    arriving = numbers(9, 2, cell.state_size)
    states = [first]
    for row in x:
        states.append(cell.step(row, states[-1]))
        states[-1].retain_grad()
    sum((state * a).sum() for state, a in zip(states[1:], arriving, strict=True)).backward()
    stacked = torch.stack([state.detach() for state in states])
    block = cell.block(x.detach(), stacked[:-1], stacked[1:])
    delta, to_input, to_first = sweep(block, arriving)
    torch.testing.assert_close(delta, torch.stack([state.grad for state in states[1:]]))
    torch.testing.assert_close(to_input, x.grad)
    torch.testing.assert_close(to_first, first.grad)


def test_half_precision_weights_are_computed_in_float32() -> None:
    cell = GruStep(*(t.bfloat16() for t in (numbers(6, 2), numbers(6, 2), numbers(6), numbers(6))))
    assert cell.w_hh.dtype == torch.float32


@pytest.mark.parametrize(("parts", "main"), [("hc", "h"), ("ch", "h"), ("mn", "m"), ("c", "c")])
def test_what_the_model_sees_is_h_wherever_it_lies_or_else_the_first_part(parts: str, main: str) -> None:
    places = {name: slice(2 * n, 2 * n + 2) for n, name in enumerate(parts)}
    cell = FunctionStep(lambda x, *state: state, places)
    assert cell.main == main and cell.state_size == 2 * len(parts)
