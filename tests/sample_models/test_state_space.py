"""State-space samples: the log-likelihood is that of the whole joint distribution, and training found what is known."""

from __future__ import annotations

import importlib
import itertools
import math
from typing import Any

import torch

from sample_models.base import Plain, Sample, checkpoints, load, run
from sample_models.state_space import DeepStateSpace, HiddenMarkov, LinearGaussian, bound_loss, filter_loss


def trained(stem: str) -> Sample:
    sample: Sample = importlib.import_module(f"sample_models.{stem}").build()
    load(sample.model, checkpoints(stem)[-1])
    return sample


def test_hidden_markov_sums_over_every_path() -> None:
    torch.manual_seed(1)
    model = HiddenMarkov(3, 4).double()
    ids = torch.tensor([2, 0, 3, 1])
    first, moves, seen = (one.detach().softmax(-1) for one in (model.initial, model.transition, model.emission))

    def joint(tokens: list[int]) -> float:
        every = itertools.product(range(3), repeat=len(tokens))
        return sum(
            float(first[path[0]])
            * math.prod(float(moves[a, b]) for a, b in itertools.pairwise(path))
            * math.prod(float(seen[z, x]) for z, x in zip(path, tokens, strict=True))
            for path in every
        )

    with torch.no_grad():
        found = model(ids[None])[0].exp()
    for step in range(1, 4):
        known = ids[:step].tolist()
        wanted = [joint([*known, token]) / joint(known) for token in range(4)]
        torch.testing.assert_close(found[step - 1], torch.tensor(wanted, dtype=torch.float64))


def test_kalman_filter_is_the_joint_gaussian() -> None:
    """−ln p(x_1 … x_t) of the filter against one multivariate normal of the stacked measurements."""
    torch.manual_seed(2)
    start = {
        "A": torch.tensor([[0.8, 0.3], [-0.2, 0.7]]), "B": torch.randn(2, 2), "C": torch.randn(1, 2),
        "d": torch.tensor([0.4]), "D": torch.tensor([[0.6]]), "m": torch.randn(2), "P": 2 * torch.eye(2),
    }  # fmt: skip
    model = LinearGaussian(start).double()
    x, parts = torch.randn(1, 5, 1, dtype=torch.float64), model.linear_gaussian()
    means, covariance = [parts["initial_mean"]], [parts["initial_covariance"]]
    for _ in range(4):
        means.append(parts["A"] @ means[-1])
        covariance.append(parts["A"] @ covariance[-1] @ parts["A"].T + parts["Q"])
    between = torch.zeros(5, 5, dtype=torch.float64)
    for t, s in itertools.product(range(5), repeat=2):
        early, late = min(t, s), max(t, s)
        crossed = torch.linalg.matrix_power(parts["A"], late - early) @ covariance[early]
        between[t, s] = (parts["C"] @ crossed @ parts["C"].T)[0, 0]
    between += parts["R"][0, 0] * torch.eye(5)
    expected = torch.stack([(parts["C"] @ mean + parts["d"])[0] for mean in means])
    joint = torch.distributions.MultivariateNormal(expected, between)
    found = filter_loss(model(x), Plain(x, torch.tensor([5])))
    torch.testing.assert_close(-found.sum(), joint.log_prob(x[0, :, 0]))


def test_the_nile_has_the_variances_that_are_known() -> None:
    """Durbin & Koopman 2012, section 2.2.2: σ²_η = 1,469.1 and σ²_ε = 15,099, in (10⁸ m³)²."""
    model: Any = trained("nile_kalman").model
    assert abs(1e4 * model.B.item() ** 2 / 1469.1 - 1) < 0.01
    assert abs(1e4 * model.D.item() ** 2 / 15099 - 1) < 0.01


def test_the_sunspots_turn_in_eleven_years() -> None:
    first, second = torch.linalg.eigvals(trained("sunspots_kalman").model.get_parameter("A").detach()).tolist()
    assert first == second.conjugate() and 0.8 < abs(first) < 1
    assert 10 < 2 * math.pi / abs(math.atan2(first.imag, first.real)) < 12


def test_the_bound_is_below_the_likelihood() -> None:
    """Of one step: ln p(x) by summing over a fine grid of the hidden number, against the mean of many bounds."""
    torch.manual_seed(3)
    model = DeepStateSpace(observed=1, latent=1, hidden=4, least=0.3).double()
    x = torch.full((4000, 1, 1), 0.7, dtype=torch.float64)
    with torch.no_grad():
        bound = -bound_loss(model(x), Plain(x, torch.ones(4000, dtype=torch.long))).mean()
        grid = torch.linspace(-12, 12, 4801, dtype=torch.float64)[:, None]
        mean, spread = model.prior(model.dynamics(torch.zeros(1, 1, 1, dtype=torch.float64))[0])[0, 0]
        prior = torch.distributions.Normal(mean, torch.nn.functional.softplus(spread) + 1e-3)
        middle, wide = model.decoder(grid).chunk(2, -1)
        seen = torch.distributions.Normal(middle, torch.nn.functional.softplus(wide) + 0.3)
        exact = ((prior.log_prob(grid) + seen.log_prob(x[:1, 0])).exp().sum() * 24 / 4800).log()
    assert bound < exact and exact - bound < 3


def test_a_sampled_path_costs_nothing_on_padding() -> None:
    sample = trained("sunspots_deep")
    assert sample.training is not None and sample.loss is not None
    batch = sample.training.draw(torch.Generator().manual_seed(4))
    batch.lengths[0] = 10
    torch.manual_seed(5)
    found = sample.loss(run(sample, batch), batch)
    assert bool(found[0, 10:].isnan().all()) and not found[0, :10].isnan().any() and not found[1:].isnan().any()
    (gradient,) = torch.autograd.grad(found.nansum(), [sample.model.get_parameter("prior.bias")])
    assert bool(gradient.isfinite().all())
