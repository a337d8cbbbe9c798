"""Modules that say what they are: the channels are those of the filters, of the sequence that is shown, or a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import KeptTrace, RunOptions, perform
from inspector.engine.session.costs import Costs
from inspector.records import Refusal, Scalar

LENGTHS = torch.tensor([9, 6])
A, C = torch.tensor([[0.9, 0.2], [0.0, 0.7]]), torch.tensor([[1.0, 0.5]])


class Filter(nn.Module):
    """Says its matrices; what it computes itself does not matter."""

    def __init__(self, **change: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.change = change

    def linear_gaussian(self) -> dict[str, Tensor]:
        parts = {
            "A": A * self.weight, "Q": 0.3 * torch.eye(2), "C": C, "R": torch.eye(1), "initial_mean": torch.zeros(2),
            "initial_covariance": torch.eye(2),
        }  # fmt: skip
        return {**parts, **self.change}

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class Chain(nn.Module):
    """Two states of three tokens."""

    def hidden_markov(self, ids: Tensor) -> dict[str, Tensor]:
        seen = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]).log()
        return {
            "initial": torch.tensor([0.6, 0.4]).log(), "transition": torch.tensor([[0.9, 0.1], [0.2, 0.8]]).log(),
            "emission": seen.T[ids],
        }  # fmt: skip

    def forward(self, ids: Tensor) -> Tensor:
        return nn.functional.one_hot(ids, 3).float()


def observed(model: nn.Module, inputs: Tensor, key: str) -> Kept:
    kind = "vectors" if inputs.is_floating_point() else "tokens"
    subject, sink = Subject(model=model, kind=kind), Kept()
    perform(subject, Batch(inputs, LENGTHS, look_at=1), sink, RunOptions(only=(key,)))
    return sink


def test_a_filter_is_shown_for_the_selected_sequence() -> None:
    x = torch.randn(2, 9, 1, generator=torch.Generator().manual_seed(1))
    sink = observed(Filter(), x, "latent/kalman")
    own = x[1, :6, 0].double()
    states = torch.zeros(12, 12, dtype=torch.float64)
    covariance, spread = torch.eye(2).double(), []
    for _ in range(6):
        spread.append(covariance)
        covariance = A.double() @ covariance @ A.double().T + 0.3 * torch.eye(2).double()
    for t in range(6):
        for s in range(t + 1):
            block = torch.linalg.matrix_power(A.double(), t - s) @ spread[s]
            states[2 * t : 2 * t + 2, 2 * s : 2 * s + 2] = block
            states[2 * s : 2 * s + 2, 2 * t : 2 * t + 2] = block.T
    read = torch.kron(torch.eye(6), C).double()
    seen = read @ states @ read.T + torch.eye(6).double()
    weights = states @ read.T @ torch.linalg.inv(seen)
    smooth = sink.array("model:latent/z/smoothed")
    np.testing.assert_allclose(smooth[..., 0], (weights @ own).view(6, 2), atol=1e-6)
    left = torch.diagonal(states - weights @ read @ states).view(6, 2)
    np.testing.assert_allclose(smooth[..., 1], left.sqrt(), atol=1e-6)
    np.testing.assert_allclose(sink.array("model:latent/z/filtered")[-1], smooth[-1], atol=1e-12)
    whole = MultivariateNormal(torch.zeros(6).double(), seen).log_prob(own)
    assert sink.array("model:latent/z/log_likelihood").sum() == pytest.approx(float(whole), rel=1e-6)
    eigen = sink.array("model:weight/A/eigenvalues")
    np.testing.assert_allclose(eigen, [[0.9, 0], [0.7, 0]], atol=1e-6)
    assert sink.channel("model:innovation/gain").labels["component"] == ("z0 from x0", "z1 from x0")
    assert {one.name.rpartition("/")[2] for one in sink.of(Scalar)} >= {"low", "high"}


def test_a_chain_is_shown_for_the_selected_sequence() -> None:
    ids = torch.tensor([[0, 1, 2, 0, 1, 2, 0, 1, 2], [2, 2, 0, 0, 0, 1, 2, 2, 2]])
    sink = observed(Chain(), ids, "latent/hidden_markov")
    assert sink.array("model:states/viterbi").tolist() == [1, 1, 0, 0, 0, 0]
    dwell = sink.channel("model:states/dwell")
    table = dict(zip(dwell.labels["statistic"], sink.array("model:states/dwell").T, strict=True))
    assert table["visits"].tolist() == [1, 1] and table["mean dwell"].tolist() == [4, 2]
    np.testing.assert_allclose(table["expected dwell"], [10, 5], rtol=1e-5)
    np.testing.assert_allclose(table["stationary"], [2 / 3, 1 / 3], rtol=1e-5)
    smooth = sink.array("model:states/smoothed")
    np.testing.assert_allclose(table["occupancy"], smooth.mean(0))
    np.testing.assert_allclose(sink.array("model:states/transition_counts").sum(), 5)
    shares = [smooth[ids[1, :6].numpy() == token].sum(0) for token in range(3)]
    first = np.argmax(shares, 0)
    assert sink.array("model:states/tokens")[:, 0].tolist() == first.tolist()
    best = np.max(shares, 0) / np.sum(shares, 0)
    np.testing.assert_allclose(sink.array("model:states/token_shares")[:, 0], best)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Filter(R=-torch.eye(1)), "R has a negative eigenvalue, so it is no covariance."),
        (
            Filter(C=torch.ones(2, 2), R=torch.eye(2)),
            "The sequence has shape (6, 1); with C as given it has (steps, 2).",
        ),
        (Filter(A="none"), "`linear_gaussian` of model gave a dict; expected a dict of tensors by name."),
    ],
)
def test_what_is_said_wrongly_is_refused(model: nn.Module, told: str) -> None:
    sink = observed(model, torch.zeros(2, 9, 1), "latent/kalman")
    assert [one.reason for one in sink.of(Refusal)] == [told]


def test_a_method_that_raises_ends_nothing() -> None:
    class Raises(Filter):
        def linear_gaussian(self) -> dict[str, Tensor]:
            raise ZeroDivisionError("no matrices")

    sink = observed(Raises(), torch.zeros(2, 9, 1), "latent/kalman")
    (one,) = sink.of(Refusal)
    assert "no matrices" in one.reason and "\n" not in one.reason


@pytest.mark.parametrize(
    ("model", "key"), [(Filter(), "latent/kalman"), (Chain(), "latent/hidden_markov"), (nn.Identity(), "")]
)
def test_what_applies_to_no_module_is_no_work(model: nn.Module, key: str) -> None:
    """It was a twentieth of the work of a run, done in no time, after which the rest was told to take as little."""
    kept: list[KeptTrace] = []
    kind = "tokens" if key == "latent/hidden_markov" else "vectors"
    inputs = torch.randint(0, 3, (2, 9)) if kind == "tokens" else torch.randn(2, 9, 1)
    options = RunOptions(only=("states",), keep=kept.append)
    perform(Subject(model=model, kind=kind), Batch(inputs, LENGTHS, look_at=1), Kept(), options)
    told = Costs().estimate(["latent/kalman", "latent/hidden_markov"], [kept[0].trace])
    assert set(told) == ({key} if key else set())
