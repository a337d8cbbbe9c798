"""Spectral radii of step Jacobians as they are written: by which method, at which steps, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.jacobian import jacobian_radius
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence, Trace

D = torch.float64
KEY = "jacobian/spectral_radius"


def of_matrices(matrices: Sequence[Tensor]) -> Kept:
    """The quantity of the linear recurrence s' = J_t s, whose Jacobians these are."""
    stacked = torch.stack(list(matrices))
    size = stacked.shape[-1]
    cell = FunctionStep(lambda x, s: (x.view(-1, size, size) @ s[..., None])[..., 0], {"h": slice(0, size)})
    states = torch.ones(len(stacked) + 1, 1, size, dtype=stacked.dtype)
    item = Recurrence("mine", "Mine", cell, stacked.flatten(1)[:, None], states, torch.tensor([len(stacked)]))
    kept = Kept()
    batch = Batch(item.x.transpose(0, 1), item.lengths)
    QUANTITIES[KEY].run(Trace(Subject(model=nn.Identity(), kind="vectors"), batch, [item]), Emitter(kept))
    return kept


def radii(matrices: Sequence[Tensor]) -> list[float]:
    return [float(np.abs(np.linalg.eigvals(matrix.double().numpy())).max()) for matrix in matrices]


def random(count: int, size: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, size, generator=generator) / size**0.5 for _ in range(count)]


def shift(size: int) -> Tensor:
    """A delay line whose end is fed back: every eigenvalue has the modulus 1, and no few products can tell."""
    return torch.eye(size).roll(1, 0)


def test_small_states_have_all_their_eigenvalues_computed() -> None:
    matrices = [*random(5, 12), torch.zeros(12, 12), torch.full((12, 12), torch.nan), shift(12)]
    kept = of_matrices(matrices)
    shown = kept.array(f"mine:{KEY}")
    np.testing.assert_allclose(np.delete(shown, 6), radii([*matrices[:6], matrices[7]]), rtol=1e-5)
    assert np.isnan(shown[6])
    assert "Arnoldi" not in kept.channel(f"mine:{KEY}").method


def test_larger_ones_are_iterated_and_the_error_is_told() -> None:
    matrices = random(20, 96)
    kept = of_matrices(matrices)
    np.testing.assert_allclose(kept.array(f"mine:{KEY}"), radii(matrices), rtol=1e-4)
    method = kept.channel(f"mine:{KEY}").method
    assert "Arnoldi, at most 120 products a step; estimated relative error ≤ " in method
    assert "NaN" not in method


def test_steps_that_have_not_converged_are_computed_in_full_or_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 160
    lines = [shift(size) * (1 + n / 10) for n in range(4)]
    matrices = [*random(2, size), *lines[:2], torch.full((size, size), torch.nan), *lines[2:]]
    kept = of_matrices(matrices)
    shown = kept.array(f"mine:{KEY}")
    np.testing.assert_allclose(np.delete(shown, 4), radii([*matrices[:4], *matrices[5:]]), rtol=1e-4)
    assert np.isnan(shown[4])
    assert "4 of 7 steps by all eigenvalues" in kept.channel(f"mine:{KEY}").method
    monkeypatch.setattr(jacobian_radius, "AGAIN_BUDGET", 2 * size**3)
    kept = of_matrices(matrices)
    shown = kept.array(f"mine:{KEY}")
    method = kept.channel(f"mine:{KEY}").method
    assert np.flatnonzero(np.isnan(shown)).tolist() == [3, 4, 6]
    assert "2 of 7 steps by all eigenvalues; 2 of 7 steps had not converged by then, ‖Jx − λx‖/|λ| 0.0" in method
    assert method.endswith(": they are NaN")


def test_one_jacobian_for_all_steps_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jacobian_radius, "AGAIN_BUDGET", 160**3)
    kept = of_matrices([shift(160) * 0.5] * 9)
    np.testing.assert_allclose(kept.array(f"mine:{KEY}"), 0.5, rtol=1e-6)


def test_where_no_step_has_converged_the_quantity_is_refused_with_the_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jacobian_radius, "AGAIN_BUDGET", 0)
    kept = of_matrices([shift(160)] * 3)
    (reason,) = kept.reasons()
    assert "3 of 3 steps had not converged" in reason and "‖Jx − λx‖/|λ| 0.0" in reason
    assert f"mine:{KEY}" not in kept.names()


def test_too_large_a_state_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jacobian_radius, "LARGEST", 10)
    (reason,) = of_matrices(random(2, 12)).reasons()
    assert "12 × 12" in reason and "limit is 10" in reason


@pytest.mark.parametrize("small", [0, 64])
def test_beyond_the_budget_every_nth_step_of_the_sequence(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jacobian_radius, "SMALL", small)
    monkeypatch.setattr(jacobian_radius, "BUDGET", 10 * 8)
    monkeypatch.setattr(jacobian_radius, "FULL_BUDGET", 10 * 8**3)
    torch.manual_seed(0)
    rnn, x = nn.LSTM(3, 4, bidirectional=True, batch_first=True).double(), torch.randn(1, 30, 3, dtype=D)
    kept = Kept()
    subject = Subject(model=rnn, kind="vectors", width=3)
    perform(subject, Batch(x, torch.tensor([30])), kept, RunOptions(only=(KEY,)))
    for name, suffix in zip(sorted(kept.names(), key=len), ("", "_reverse"), strict=True):
        cell = nn.LSTMCell(3, 4).double()
        for weight in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(cell, weight).data = getattr(rnn, f"{weight}_l0{suffix}").data
        states, found = torch.zeros(8, dtype=D), []
        for row in x[0].flip(0) if suffix else x[0]:

            def step(s: Tensor, row: Tensor = row, cell: nn.LSTMCell = cell) -> Tensor:
                return torch.cat(cell(row[None], (s[None, :4], s[None, 4:])), 1)[0]

            found.append(torch.autograd.functional.jacobian(step, states))
            states = step(states).detach()
        expected = radii(found)[:: -1 if suffix else 1]
        shown = kept.array(name)
        np.testing.assert_allclose(shown[::3], expected[::3], rtol=1e-6)
        assert np.isnan(shown[1::3]).all() and np.isnan(shown[2::3]).all()
        assert kept.channel(name).method.endswith("; every 3 steps")
