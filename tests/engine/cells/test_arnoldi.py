"""Spectral radii by Arnoldi's method against numpy's eigenvalues: what is given is right, what is doubtful is not given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from inspector.engine.cells.arnoldi import ACCEPTED, leading_moduli
from inspector.engine.cells.gru import GruStep
from inspector.engine.cells.matrix_block import MatrixBlock

Matrix = npt.NDArray[np.float64]
S = 128


class Given(MatrixBlock):
    """One step for each matrix (n, s, s)."""

    def __init__(self, matrices: Tensor) -> None:
        self._matrices, self.gates = matrices[:, None], {}
        self.cell = None  # type: ignore[assignment]
        self.x = self.previous = self.following = self._matrices[..., 0]

    @property
    def matrices(self) -> Tensor:
        return self._matrices

    def input_vjp(self, u: Tensor) -> Tensor:
        raise NotImplementedError


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def rotations(scale: float) -> Matrix:
    """Every eigenvalue has the same modulus; the planes are mixed by a random basis."""
    blocks = np.zeros((S, S))
    for i, angle in zip(range(0, S, 2), rng().uniform(0, np.pi, S // 2), strict=True):
        c, s = np.cos(angle), np.sin(angle)
        blocks[i : i + 2, i : i + 2] = scale * np.array([[c, -s], [s, c]])
    basis = np.linalg.qr(rng().standard_normal((S, S)))[0]
    return basis @ blocks @ basis.T


def of_equal_modulus() -> Matrix:
    """+0.9, −0.9 and a complex pair of modulus 0.9 above all others."""
    blocks = np.diag(rng().uniform(-0.5, 0.5, S))
    blocks[0, 0], blocks[1, 1] = 0.9, -0.9
    blocks[2:4, 2:4] = 0.9 * np.array([[0.6, -0.8], [0.8, 0.6]])
    basis = np.linalg.qr(rng().standard_normal((S, S)))[0]
    return basis @ blocks @ basis.T


def triangular(above: float, seed: int) -> Matrix:
    random = np.random.default_rng(seed)
    return np.triu(random.standard_normal((S, S)), 1) * above + np.diag(random.uniform(-1, 1, S))


def defective(size: int) -> Matrix:
    """One Jordan block of 0.9 at the top, smaller eigenvalues below."""
    found = np.diag(rng().uniform(-0.5, 0.5, S))
    found[:size, :size] = 0.9 * np.eye(size) + np.eye(size, k=1)
    return found


CONVERGES: dict[str, Matrix] = {
    "random": rng().standard_normal((S, S)) / S**0.5,
    "random, wide": rng().standard_normal((300, 300)) / 300**0.5,
    "symmetric": (lambda a: (a + a.T) / 2)(rng().standard_normal((S, S))),
    "far from normal": np.linalg.inv(3 * rng().standard_normal((S, S)))
    @ np.diag(np.r_[1, rng().uniform(-0.9, 0.9, S - 1)])
    @ (3 * rng().standard_normal((S, S))),
    "rotations": rotations(0.9),
    "equal moduli": of_equal_modulus(),
    "triangular": triangular(0.01, 0),
    "zero": np.zeros((S, S)),
    "identity": np.eye(S),
    "rank one": np.outer(rng().standard_normal(S), rng().standard_normal(S)) / S,
    "tiny": 1e-25 * rng().standard_normal((S, S)),
    "huge": 1e25 * rng().standard_normal((S, S)),
}
DOUBTFUL = {
    "defective, two": defective(2),
    "defective, three": defective(3),
    "one Jordan block": 0.5 * np.eye(S) + np.eye(S, k=1),
    "shift": np.eye(S, k=1),
    "cycle": np.roll(np.eye(S), 1, 0),
    **{f"triangular, {above}, {seed}": triangular(above, seed) for above in (0.05, 0.1, 0.2, 0.5, 1) for seed in range(3)},
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CONVERGES)
def test_the_radius_is_numpys(name: str, dtype: torch.dtype) -> None:
    found = leading_moduli(Given(torch.from_numpy(CONVERGES[name]).to(dtype)[None]))
    expected = np.abs(np.linalg.eigvals(CONVERGES[name])).max()
    assert float(found.value) == pytest.approx(expected, rel=1e-4, abs=1e-30)
    assert float(found.error) <= ACCEPTED


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", DOUBTFUL)
def test_what_is_accepted_of_a_matrix_far_from_normal_is_right(name: str, dtype: torch.dtype) -> None:
    """Small residuals alone are no proof here: 1e-7 occurs beside errors of 80 %."""
    found = leading_moduli(Given(torch.from_numpy(DOUBTFUL[name]).to(dtype)[None]))
    expected = np.abs(np.linalg.eigvals(DOUBTFUL[name])).max()
    if float(found.error) <= ACCEPTED:
        assert float(found.value) == pytest.approx(expected, rel=ACCEPTED)


def test_a_residual_alone_would_have_accepted_a_wrong_radius() -> None:
    matrix = triangular(1, 0)
    found = leading_moduli(Given(torch.from_numpy(matrix).float()[None]))
    assert float(found.residual) < 1e-5
    assert abs(float(found.value) / np.abs(np.linalg.eigvals(matrix)).max() - 1) > 0.1
    assert not float(found.error) <= ACCEPTED


def test_nan_and_infinity_stay_in_their_steps() -> None:
    matrices = torch.from_numpy(np.stack([CONVERGES["random"]] * 4))
    matrices[1, 3, 4], matrices[2, 0, 0] = torch.nan, torch.inf
    found = leading_moduli(Given(matrices))
    assert torch.isnan(found.value).tolist() == [False, True, True, False]
    assert torch.isnan(found.error).tolist() == [False, True, True, False]


def test_the_residual_is_that_of_an_eigenpair() -> None:
    """‖J x − θ x‖ / |θ| bounds the distance to an eigenvalue where J is symmetric."""
    matrix = CONVERGES["symmetric"]
    found = leading_moduli(Given(torch.from_numpy(matrix)[None]))
    distance = np.abs(np.abs(np.linalg.eigvalsh(matrix)) - float(found.value)).min() / float(found.value)
    assert distance <= float(found.residual) <= 1e-3


def test_steps_of_a_trained_recurrence() -> None:
    """A GRU that has learned to repeat what it read eight steps ago: its Jacobians are not random any more."""
    torch.manual_seed(0)
    rnn, head = nn.GRU(4, 96), nn.Linear(96, 4)
    optimiser = torch.optim.Adam([*rnn.parameters(), *head.parameters()], 3e-3)
    for _ in range(40):
        x = torch.randn(32, 16, 4)
        loss = (head(rnn(x)[0])[8:] - x[:-8]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    x = torch.randn(24, 1, 4)
    with torch.no_grad():
        states = torch.cat((torch.zeros(1, 1, 96), rnn(x)[0]))
        cell = GruStep(rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0, rnn.bias_hh_l0)
        found = leading_moduli(cell.block(x, states[:-1], states[1:]))

    def step(state: Tensor, t: int) -> Tensor:
        one = nn.GRUCell(4, 96)
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(one, name).data = getattr(rnn, f"{name}_l0").data
        return one(x[t], state[None])[0]

    for t in range(24):
        matrix = torch.autograd.functional.jacobian(lambda state, t=t: step(state, t), states[t, 0])
        expected = np.abs(np.linalg.eigvals(matrix.double().numpy())).max()
        assert float(found.value[t]) == pytest.approx(expected, rel=1e-4)
    assert bool((found.error <= ACCEPTED).all())
