"""Spectra, Lyapunov exponents, trajectories and fixed points, against autograd, numpy and the textbook, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from models import Squash
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from inspector.engine.analyses import spaced_steps
from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.cells.lyapunov import Directions
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.dynamics import lyapunov as lyapunov_file
from inspector.engine.quantities.jacobian import jacobian_singular
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Quantity
from inspector.engine.trace.trace import Recurrence, Trace

D = torch.float64
KEYS = (
    "jacobian/singular_values", "jacobian/isometry", "jacobian/eigenvalues", "weight/spectrum", "lyapunov",
    "trajectory", "fixed_points",
)  # fmt: skip
LENGTHS = (30, 17)
KINDS = ["rnn", "relu", "gru", "lstm"]


class Net(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        options = {"num_layers": 2, "bidirectional": True, "batch_first": True}
        self.rnn: nn.RNNBase = {
            "rnn": lambda: nn.RNN(3, 4, **options), "gru": lambda: nn.GRU(3, 4, **options),
            "lstm": lambda: nn.LSTM(3, 4, **options), "relu": lambda: nn.RNN(3, 4, nonlinearity="relu", **options),
        }[kind]()  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.rnn(x)[0]
        return out


def packed(model: Net, x: Tensor, lengths: Tensor) -> Tensor:
    """Each sample as long as it is, in both directions."""
    sequence = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(model.rnn(sequence)[0], batch_first=True)[0]


def observe(
    model: nn.Module, x: Tensor, lengths: tuple[int, ...], keys: tuple[str, ...], look_at: int = 0
) -> tuple[Trace, Kept]:
    kept = Kept()
    subject = Subject(
        model=model, kind="vectors", width=x.shape[-1], forward=packed if isinstance(model, Net) else None
    )
    return perform(subject, Batch(x, torch.tensor(lengths), look_at=look_at), kept, RunOptions(only=tuple(keys))), kept


def run(kind: str, look_at: int = 1) -> tuple[Net, Trace, Kept]:
    torch.manual_seed(0)
    net = Net(kind).double().eval()
    return (net, *observe(net, torch.randn(2, 30, 3, dtype=D), LENGTHS, KEYS, look_at))


def cell_of(net: Net, place: str) -> nn.RNNCellBase:
    """torch's own cell with the weights of one layer and direction."""
    layer = int(place.split(".l")[1][0])
    suffix = f"_l{layer}" + ("_reverse" if "reverse" in place else "")
    kind = {nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell}.get(type(net.rnn))
    size = 3 if layer == 0 else 8
    cell = kind(size, 4) if kind else nn.RNNCell(size, 4, nonlinearity=net.rnn.nonlinearity)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).data = getattr(net.rnn, name + suffix).data
    return cell


def take_step(cell: nn.RNNCellBase, x: Tensor, state: Tensor) -> Tensor:
    if isinstance(cell, nn.LSTMCell):
        return torch.cat(cell(x[None], (state[None, :4], state[None, 4:])), 1)[0]
    after: Tensor = cell(x[None], state[None])[0]
    return after


def jacobians(net: Net, recurrence: Recurrence, sample: int) -> Tensor:
    """∂s_t/∂s_{t−1} by autograd through torch's own cell, one step at a time, in processing order."""
    cell = cell_of(net, recurrence.place)
    return torch.stack([
        torch.autograd.functional.jacobian(lambda s, t=t: take_step(cell, recurrence.x[t, sample], s), recurrence.states[t, sample])
        for t in range(recurrence.length(sample))
    ])  # fmt: skip


def in_order(recurrence: Recurrence, values: np.ndarray) -> np.ndarray:
    return values[::-1] if recurrence.reverse else values


@pytest.mark.parametrize("kind", KINDS)
def test_spectra_of_jacobians_equal_numpys_of_autograds(kind: str) -> None:
    net, trace, kept = run(kind)
    assert len(trace.recurrences) == 4
    for item in trace.recurrences:
        matrices = jacobians(net, item, 1).numpy()
        singular = np.linalg.svd(matrices, compute_uv=False)
        shown = kept.array(f"{item.place}:jacobian/singular_values")
        np.testing.assert_allclose(shown, in_order(item, singular), rtol=1e-9, atol=1e-12)
        isometry = kept.array(f"{item.place}:jacobian/isometry")
        np.testing.assert_allclose(isometry, (shown**2).mean(1), rtol=1e-9)
        parts = kept.array(f"{item.place}:jacobian/eigenvalues")
        found = parts[..., 0] + 1j * parts[..., 1]
        for ours, matrix in zip(found, in_order(item, matrices), strict=True):
            expected = list(np.linalg.eigvals(matrix))
            for value in ours:
                nearest = min(expected, key=lambda other: abs(other - value))
                assert abs(nearest - value) < 1e-7
                expected.remove(nearest)
            assert (np.diff(np.abs(ours)) <= 1e-9).all()
    assert not kept.reasons()


def test_the_lstms_spectrum_is_that_of_h_and_c_together() -> None:
    """Trap 2: ∂h/∂h alone has half as many singular values, and misses the carousel."""
    net, _trace, kept = run("lstm")
    del net
    assert kept.array("rnn.l0:jacobian/singular_values").shape == (17, 8)


@pytest.mark.parametrize("kind", KINDS)
def test_lyapunov_exponents_equal_the_naive_loop(kind: str) -> None:
    """QR at every step of autograd's Jacobians, from the same random basis; warm-up left out of the mean."""
    net, trace, kept = run(kind, look_at=0)
    for item in trace.recurrences:
        matrices = jacobians(net, item, 0)
        warm = int(kept.scalar(f"{item.place}:lyapunov/warm_up"))
        assert warm == 3
        basis = Directions(item.cell.state_size, item.cell.state_size).basis
        total, rows = torch.zeros(item.cell.state_size, dtype=D), []
        dead = False
        for t, matrix in enumerate(matrices):
            basis, triangle = torch.linalg.qr(matrix @ basis)
            if t >= warm:
                total = total + triangle.diagonal().abs().log()
                dead = dead or int(torch.linalg.matrix_rank(matrix)) < len(matrix)
                rows.append(total / (t - warm + 1))
        shown = np.sort(kept.array(f"{item.place}:lyapunov/exponents"))[::-1]
        living = np.isfinite(shown)
        assert dead == (not living.all())
        np.testing.assert_allclose(shown[living], np.sort(rows[-1].numpy())[::-1][: living.sum()], rtol=1e-7, atol=1e-8)
        assert kept.scalar(f"{item.place}:lyapunov/largest") == shown[0]
        running = in_order(item, kept.array(f"{item.place}:lyapunov/running"))
        assert np.isnan(running[:warm]).all()
        np.testing.assert_allclose(np.sort(running[-1])[::-1], shown)
        for t in range(warm, 30):  # every row is the naive loop's at this or an earlier step
            earlier = [row.numpy() for row in rows[: t - warm + 1]]
            if np.isfinite(running[t]).all():
                assert min(np.abs(row - running[t]).max() for row in earlier) < 1e-7
        if living.all():
            mean = float(torch.linalg.slogdet(matrices[warm:]).logabsdet.mean())
            assert shown.sum() == pytest.approx(mean, rel=1e-9)
            assert kept.scalar(f"{item.place}:lyapunov/determinant_error") < 1e-9 * (1 + abs(mean))


def generic(step: Any, s: int, x: Tensor) -> Recurrence:
    """A Recurrence of a pure function, walked from a random state."""
    cell = FunctionStep(step, {"h": slice(0, s)})
    states = [torch.randn(1, s, generator=torch.Generator().manual_seed(1), dtype=D)]
    for row in x:
        states.append(cell.step(row, states[-1]))
    return Recurrence("mine", "Mine", cell, x, torch.stack(states), torch.tensor([len(x)]))


def compute(key: str, recurrence: Recurrence) -> Kept:
    """The quantity of this one recurrence, the model's input being the recurrence's own."""
    kept = Kept()
    batch = Batch(recurrence.x.transpose(0, 1), recurrence.lengths)
    entry: Quantity = QUANTITIES[key]
    entry.run(Trace(Subject(model=nn.Identity(), kind="vectors"), batch, [recurrence]), Emitter(kept))
    assert not kept.reasons()
    return kept


def test_a_chaotic_map_of_known_exponents() -> None:
    """The Hénon map (a = 1.4, b = 0.3): λ₁ ≈ 0.419, λ₁ + λ₂ = ln 0.3 exactly, Kaplan–Yorke dimension ≈ 1.258."""

    def henon(_x: Tensor, state: Tensor) -> Tensor:
        return torch.stack((1 - 1.4 * state[..., 0] ** 2 + state[..., 1], 0.3 * state[..., 0]), -1)

    item = generic(henon, 2, torch.zeros(4000, 1, 1, dtype=D))
    if not bool(torch.isfinite(item.states).all()):
        item.states[0] = 0.1
        for t in range(4000):
            item.states[t + 1] = item.cell.step(item.x[t], item.states[t])
    kept = compute("lyapunov", item)
    exponents = kept.array("mine:lyapunov/exponents")
    assert exponents.sum() == pytest.approx(math.log(0.3), abs=1e-9)
    assert exponents[0] == pytest.approx(0.419, abs=0.02)
    assert kept.scalar("mine:lyapunov/kaplan_yorke") == pytest.approx(1.258, abs=0.02)
    assert kept.scalar("mine:lyapunov/entropy_rate") == exponents[0]


def test_every_quantity_of_a_function_of_the_users_own() -> None:
    weight = torch.randn(5, 5, generator=torch.Generator().manual_seed(2), dtype=D) * 0.5
    item = generic(lambda x, s: torch.tanh(s @ weight.T + x), 5, 0.3 * torch.randn(40, 1, 5, dtype=D))
    slopes = 1 - item.states[1:, 0] ** 2
    matrices = slopes[:, :, None] * weight
    singular = compute("jacobian/singular_values", item).array("mine:jacobian/singular_values")
    np.testing.assert_allclose(singular, np.linalg.svd(matrices.numpy(), compute_uv=False), rtol=1e-9)
    exponents = compute("lyapunov", item).array("mine:lyapunov/exponents")
    assert exponents.sum() == pytest.approx(float(torch.linalg.slogdet(matrices[4:]).logabsdet.mean()), rel=1e-9)
    assert compute("fixed_points", item).array("mine:fixed_points/states").shape[1] == 5


def test_weights_of_every_gate_equal_numpy() -> None:
    names = {
        "gru": ("reset", "update", "candidate"),
        "lstm": ("input", "forget", "candidate", "output"),
        "rnn": ("hidden",),
    }
    for kind, gates in names.items():
        net, _, kept = run(kind)
        for gate, block in zip(gates, net.rnn.weight_hh_l1_reverse.detach().chunk(len(gates)), strict=True):
            w, place = block.numpy(), f"rnn.l1.reverse:weight/{gate}"
            sigma, moduli = np.linalg.svd(w, compute_uv=False), np.sort(np.abs(np.linalg.eigvals(w)))[::-1]
            np.testing.assert_allclose(kept.array(f"{place}/singular_values"), sigma, rtol=1e-9)
            parts = kept.array(f"{place}/eigenvalues")
            np.testing.assert_allclose(np.hypot(*parts.T), moduli, rtol=1e-9)
            assert kept.scalar(f"{place}/spectral_radius") == pytest.approx(moduli[0])
            assert kept.scalar(f"{place}/spectral_norm") == pytest.approx(sigma[0])
            henrici = math.sqrt((w**2).sum() - (moduli**2).sum())
            assert kept.scalar(f"{place}/non_normality") == pytest.approx(henrici, rel=1e-6)
            assert kept.scalar(f"{place}/orthogonality_defect") == pytest.approx(np.linalg.norm(w.T @ w - np.eye(4)))
        if kind == "rnn":
            assert kept.scalar("rnn.l0:weight/hidden/bound") == pytest.approx(
                kept.scalar("rnn.l0:weight/hidden/spectral_norm")
            )


def test_an_orthogonal_parametrisation_is_seen_as_orthogonal() -> None:
    """S6: the effective weight counts, not the tensor behind the parametrisation."""
    torch.manual_seed(0)
    net = nn.RNN(3, 6, batch_first=True).double()
    parametrizations.orthogonal(net, "weight_hh_l0")
    wrapped = nn.Sequential()
    wrapped.rnn = net
    wrapped.forward = lambda x: net(x)[0]  # type: ignore[method-assign]
    _, kept = observe(wrapped.eval(), torch.randn(1, 9, 3, dtype=D), (9,), ("weight/spectrum",))
    place = "rnn.l0:weight/hidden"
    np.testing.assert_allclose(kept.array(f"{place}/singular_values"), 1.0, rtol=1e-9)
    assert kept.scalar(f"{place}/orthogonality_defect") < 1e-9 and kept.scalar(f"{place}/non_normality") < 1e-6
    assert kept.scalar(f"{place}/spectral_radius") == pytest.approx(1.0)


def test_a_projected_lstm_feeds_back_through_its_projection() -> None:
    torch.manual_seed(0)
    net = nn.LSTM(3, 6, proj_size=2, batch_first=True).double().eval()
    wrapped = nn.Sequential()
    wrapped.rnn = net
    wrapped.forward = lambda x: net(x)[0]  # type: ignore[method-assign]
    _, kept = observe(wrapped, torch.randn(1, 9, 3, dtype=D), (9,), ("weight/spectrum",))
    product = (net.weight_hh_l0[6:12] @ net.weight_hr_l0).detach().numpy()
    found = kept.array("rnn.l0:weight/forget/singular_values")
    np.testing.assert_allclose(found, np.linalg.svd(product, compute_uv=False), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_trajectories_are_principal_components_in_sequence_order(kind: str) -> None:
    _, trace, kept = run(kind)
    for item in trace.recurrences:
        assert item.length(1) == 17
        states = item.states[1:18, 1].numpy()
        centred = states - states.mean(0)
        values, vectors = np.linalg.eigh(centred.T @ centred)
        order = values.argsort()[::-1][:6]
        expected = in_order(item, centred @ vectors[:, order])
        shown = kept.array(f"{item.place}:trajectory")
        np.testing.assert_allclose(np.abs(shown[:, :3]), np.abs(expected[:, :3]), atol=1e-7)
        share = kept.array(f"{item.place}:trajectory/share")
        np.testing.assert_allclose(share, values[order][: len(share)] / values.sum(), atol=1e-9)
        before = item.states[:17, 1].numpy()
        speed = in_order(item, np.linalg.norm(states - before, axis=1))
        np.testing.assert_allclose(kept.array(f"{item.place}:trajectory/speed"), speed, rtol=1e-9)


def test_one_step_and_nan_are_refused_in_words() -> None:
    torch.manual_seed(0)
    net = Net("gru").double().eval()
    _, kept = observe(net, torch.randn(1, 1, 3, dtype=D), (1,), KEYS)
    assert any("at least two steps" in reason for reason in kept.reasons())
    assert any("two finite states" in reason for reason in kept.reasons())
    assert kept.array("rnn.l0:jacobian/singular_values").shape == (1, 4)
    x = torch.randn(1, 12, 3, dtype=D)
    x[0, 7] = torch.nan
    _, kept = observe(net, x, (12,), KEYS)
    assert any("step 8 " in reason and "not finite" in reason for reason in kept.reasons())
    for name in ("jacobian/singular_values", "jacobian/eigenvalues", "trajectory"):
        values = kept.array(f"rnn.l0:{name}").reshape(12, -1)
        assert np.isfinite(values[:7]).all() and np.isnan(values[7:]).all(), name


def test_what_does_not_fit_the_budget_is_thinned_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spaced_steps, "EIGENVALUE_BUDGET", 6 * 4**3)
    monkeypatch.setattr(spaced_steps, "SINGULAR_BUDGET", 10 * 4**3)
    monkeypatch.setattr(lyapunov_file, "BUDGET", 0)
    monkeypatch.setattr(lyapunov_file, "FEWEST", 2)
    net, trace, kept = run("gru", look_at=0)
    for item in trace.recurrences:
        matrices = in_order(item, jacobians(net, item, 0).numpy())
        eigen = kept.array(f"{item.place}:jacobian/eigenvalues")
        assert kept.scalar(f"{item.place}:jacobian/eigenvalues_every") == 6
        assert np.flatnonzero(np.isfinite(eigen).all((1, 2))).tolist() == list(range(0, 30, 6))
        assert np.isnan(eigen[np.arange(len(eigen)) % 6 > 0]).all()
        for t in range(0, 30, 6):
            np.testing.assert_allclose(
                np.hypot(*eigen[t].T)[0], np.abs(np.linalg.eigvals(matrices[t])).max(), rtol=1e-9
            )
        singular = kept.array(f"{item.place}:jacobian/singular_values")
        assert kept.scalar(f"{item.place}:jacobian/singular_values_every") == 3
        np.testing.assert_allclose(singular[::3], np.linalg.svd(matrices[::3], compute_uv=False), rtol=1e-9)
        assert np.isnan(singular[np.arange(len(singular)) % 3 > 0]).all()
        assert kept.channel(f"{item.place}:jacobian/singular_values").method == "full SVD; every 3 steps"
        assert kept.array(f"{item.place}:lyapunov/exponents").shape == (2,)
        assert "first 2 of 4" in kept.channel(f"{item.place}:lyapunov/exponents").method


def test_of_very_large_states_the_largest_singular_values_are_iterated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jacobian_singular, "FULL", 3)
    monkeypatch.setattr(jacobian_singular, "BUDGET", 15 * 4**2)
    net, trace, kept = run("gru", look_at=0)
    for item in trace.recurrences:
        matrices = in_order(item, jacobians(net, item, 0).numpy())
        singular = kept.array(f"{item.place}:jacobian/singular_values")
        np.testing.assert_allclose(singular[::2], np.linalg.svd(matrices[::2], compute_uv=False), rtol=1e-6)
        assert np.isnan(singular[1::2]).all()
        method = kept.channel(f"{item.place}:jacobian/singular_values").method
        assert "Lanczos" in method and method.endswith("; every 2 steps")


def test_a_refusal_says_what_it_would_cost() -> None:
    with pytest.raises(NotImplementedError, match="shorter sequence"):
        lyapunov_file.ExponentBudget(10_000_000, 512)
    plan = lyapunov_file.ExponentBudget(100_000, 64)
    assert plan.count >= 8 and plan.warm_up == 500
    assert jacobian_singular.written_ranks(100)[0] == 0 and jacobian_singular.written_ranks(100)[-1] == 99


class OwnFunction(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), 4), []
        for row in x.unbind(1):
            h = Squash.apply(self.w(row) + self.u(h))
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize("steps", [6, 30])
def test_a_first_jacobian_that_is_not_known_is_left_to_the_warm_up(steps: int) -> None:
    torch.manual_seed(0)
    net = OwnFunction().double()
    kept = Kept()
    subject = Subject(model=net, kind="vectors", width=3, loss=lambda out, batch: out.square().sum(-1))
    x = torch.randn(1, steps, 3, dtype=D)
    trace = perform(subject, Batch(x, torch.tensor([steps])), kept, RunOptions(only=("lyapunov",)))
    if steps == 6:  # no warm-up: every step counts
        assert any("step 1 " in reason and "not finite" in reason for reason in kept.reasons())
        return
    (item,) = trace.recurrences
    basis, total = Directions(4, 4).basis, torch.zeros(4, dtype=D)
    warm = int(kept.scalar("model:lyapunov/warm_up"))
    for t in range(1, steps):
        slope = (1 - item.states[t + 1, 0].square())[:, None] * net.u.weight.detach()
        basis, triangle = torch.linalg.qr(slope @ basis)
        if t >= warm:
            total += triangle.diagonal().abs().log()
    expected = np.sort((total / (steps - warm)).numpy())[::-1]
    np.testing.assert_allclose(np.sort(kept.array("model:lyapunov/exponents"))[::-1], expected, rtol=1e-7)
