"""Hidden variables of models that nobody here wrote: distributions, samples and divergences as their code has them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.distributions import (
    Categorical,
    Distribution,
    Gamma,
    Independent,
    Normal,
    TanhTransform,
    TransformedDistribution,
    kl,
    kl_divergence,
)

from inspector.engine.latent.watched import METHODS
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Log, Refusal, Scalar

T, D = 7, 3
LENGTHS = torch.tensor([T, 5, 6, 2])


class Function(nn.Module):
    """A model whose forward is a function."""

    def __init__(self, forward: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.run = forward
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x * self.scale)


def observed(model: nn.Module, x: Tensor, *, look_at: int = 1, only: str = "latent/distributions") -> Kept:
    subject = Subject(
        model=model.eval(), kind="vectors", width=x.shape[-1], loss=lambda out, _batch: out.square().sum(-1)
    )
    sink = Kept()
    perform(subject, Batch(x, LENGTHS[: len(x)], look_at=look_at), sink, RunOptions(only=(only,)))
    return sink


def given(size: int = 4, steps: int = T) -> Tensor:
    return torch.randn(size, steps, D, generator=torch.Generator().manual_seed(0))


def refused(sink: Kept) -> dict[str, str]:
    """Of hidden variables."""
    return {one.channel: one.reason for one in sink.of(Refusal) if ":latent" in one.channel}


class VAE(nn.Module):
    """Of every step, as tutorials write it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.encoder = nn.LSTM(D, 5, batch_first=True)
        self.heads = nn.Linear(5, 4)
        self.decoder = nn.Linear(2, D)
        self.kept: dict[str, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        mu, spread = self.heads(self.encoder(x)[0]).chunk(2, -1)
        posterior = Normal(mu, spread.exp())
        z = posterior.rsample()
        prior = Normal(torch.zeros(2), torch.ones(2))
        likelihood = Independent(Normal(self.decoder(z), 0.5), 1)
        self.kept = {"mu": mu, "sigma": spread.exp(), "z": z, "kl": kl_divergence(posterior, prior)}
        return self.decoder(z) - likelihood.log_prob(x)[..., None]


def test_a_vae_shows_its_parts() -> None:
    model, x = VAE(), given()
    sink = observed(model, x)
    kept = {name: value.detach()[1, :5].double() for name, value in model.kept.items()}
    base = "model:latent/posterior"
    both = sink.array(f"{base}/posterior")
    np.testing.assert_array_equal(both[..., 0], kept["mu"])
    np.testing.assert_allclose(both[..., 1], kept["sigma"], rtol=1e-6)
    np.testing.assert_array_equal(sink.array(f"{base}/sample"), kept["z"])
    mu, sigma = kept["mu"].numpy(), kept["sigma"].numpy()
    wanted = [
        [(m * m + s * s - 1) / 2 - math.log(s) for m, s in zip(*row, strict=True)]
        for row in zip(mu, sigma, strict=True)
    ]
    np.testing.assert_allclose(sink.array(f"{base}/kl"), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sink.array(f"{base}/kl_total"), np.sum(wanted, 1), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(sink.array(f"{base}/prior"), np.broadcast_to([0.0, 1.0], (5, 2, 2)))
    means = model.decoder(model.kept["z"]).detach()[1, :5].double().numpy()
    away = (x[1, :5].double().numpy() - means) / 0.5
    logs = (-(away**2) / 2 - math.log(0.5) - math.log(2 * math.pi) / 2).sum(1)
    np.testing.assert_allclose(sink.array("model:latent/likelihood/log_prob"), logs, rtol=1e-5)
    np.testing.assert_allclose(sink.array("model:latent/likelihood/likelihood")[..., 0], means, rtol=1e-6)
    assert not refused(sink) and sink.channel(f"{base}/kl").unit == "nat"
    assert {name for name in sink.names() if "Normal" in name} == set(), "the part of an Independent is not shown again"


class Holds(nn.Module):
    """Its prior is made once, before any run."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.prior = Normal(0.0, 2.0)

    def forward(self, x: Tensor) -> Tensor:
        q = Normal(x * self.scale, 1.0)
        divergence = kl_divergence(q, self.prior)
        return q.rsample() + divergence


def test_what_was_made_before_the_run_has_the_name_that_holds_it() -> None:
    sink = observed(Holds(), given())
    assert sink.channel("model:latent/q/kl").title == "KL(q ‖ prior) by unit"
    np.testing.assert_array_equal(sink.array("model:latent/q/prior"), np.broadcast_to([0.0, 2.0], (5, D, 2)))
    assert {name.split("/")[1] for name in sink.names() if ":latent/" in name} == {"q"}


def test_a_class_that_says_nothing_of_itself_is_refused_and_its_samples_are_shown() -> None:
    class Silent(Distribution):
        """Without arguments, mean or variance."""

        def __init__(self, at: Tensor) -> None:
            self.at = at
            super().__init__(at.shape[:-1], at.shape[-1:], validate_args=False)

        def sample(self, sample_shape: Any = ()) -> Tensor:
            return self.at + 1

    def forward(self_x: Tensor) -> Tensor:
        own = Silent(self_x)
        return own.sample() + self_x

    x = given()
    sink = observed(Function(forward), x)
    np.testing.assert_allclose(sink.array("model:latent/own/sample"), x[1, :5] + 1)
    assert list(refused(sink)) == ["model:latent/own/own"]


def sources() -> dict[tuple[Any, str], Any]:
    classes: list[Any] = [Distribution]
    for one in classes:
        classes += one.__subclasses__()
    return {(one, name): vars(one)[name] for one in classes for name in ("__init__", *METHODS) if name in vars(one)}


def test_nothing_is_left_behind_and_nothing_changes() -> None:
    class Raises(VAE):
        def forward(self, x: Tensor) -> Tensor:
            super().forward(x)
            raise ValueError("half-way")

    before, table = sources(), kl._KL_MEMOIZE
    model, x = VAE(), given()
    observed(model, x)
    seen = model.kept["z"]
    torch.manual_seed(0)  # the seed of a run
    model(x)
    assert torch.equal(seen, model.kept["z"])
    with pytest.raises(Exception, match="half-way"):
        observed(Raises(), x)
    assert sources() == before and kl._KL_MEMOIZE is table
    assert not vars(copy.deepcopy(Normal(0.0, 1.0))).keys() & {*METHODS}


def test_a_loop_over_steps_is_stacked() -> None:
    states: list[Tensor] = []

    def forward(x: Tensor) -> Tensor:
        z = torch.zeros(len(x), 2)
        states.clear()
        for t in range(x.shape[1]):
            prior = Normal(z, 1.0)
            q = Normal(x[:, t, :2] + 0.5 * z, 0.1)
            z = q.rsample()
            states.append(torch.stack((q.mean, z, kl_divergence(q, prior))))
        return torch.stack(states, 2)[1]

    sink = observed(Function(forward), given())
    wanted = torch.stack(states, 2).detach()[:, 1, :5]
    np.testing.assert_array_equal(sink.array("model:latent/q/q")[..., 0], wanted[0])
    np.testing.assert_array_equal(sink.array("model:latent/q/sample"), wanted[1])
    np.testing.assert_array_equal(sink.array("model:latent/q/kl"), wanted[2])
    np.testing.assert_array_equal(sink.array("model:latent/q/prior")[1:, :, 0], wanted[1, :-1])


def test_one_variable_a_sequence_has_no_steps() -> None:
    def forward(x: Tensor) -> Tensor:
        q = Normal(x.mean(1), 1.0)
        z = q.rsample((3,))
        kl_divergence(q, Normal(0.0, 1.0))
        return x * z.mean(0)[:, None]

    x = given()
    sink = observed(Function(forward), x)
    assert sink.channel("model:latent/q/q").dims == ("unit", "statistic")
    np.testing.assert_allclose(sink.array("model:latent/q/q")[:, 0], x[1].mean(0), rtol=1e-6)
    assert sink.array("model:latent/q/sample").shape == (D,), "the first of three"
    total = next(one.value for one in sink.of(Scalar) if one.name == "model:latent/q/kl_total")
    assert total == pytest.approx(float(x[1].mean(0).square().sum()) / 2, rel=1e-5)


def test_categories_and_other_families() -> None:
    def forward(x: Tensor) -> Tensor:
        switch = Categorical(logits=x)
        rate = Gamma(x.exp(), 2.0)
        return rate.rsample() * switch.sample()[..., None]

    x = given()
    sink = observed(Function(forward), x)
    np.testing.assert_allclose(sink.array("model:latent/switch/switch"), x[1, :5].softmax(-1), rtol=1e-5)
    assert sink.channel("model:latent/switch/switch").kind == "occupancy"
    both = sink.array("model:latent/rate/rate")
    np.testing.assert_allclose(both[..., 0], x[1, :5].exp() / 2, rtol=1e-5)
    np.testing.assert_allclose(both[..., 1], x[1, :5].exp().sqrt() / 2, rtol=1e-5)


def test_time_before_batch_and_classes_of_ones_own() -> None:
    class Shifted(Normal):
        """Its constructor and its sampling are the user's."""

        def __init__(self, at: Tensor) -> None:
            super().__init__(at + 1, torch.ones_like(at))

        def rsample(self, shape: Any = ()) -> Tensor:
            return super().rsample(shape) + 1

    def forward(x: Tensor) -> Tensor:
        own = Shifted(x.transpose(0, 1))
        return own.rsample().transpose(0, 1)

    x = given()
    sink = observed(Function(forward), x)
    np.testing.assert_allclose(sink.array("model:latent/own/own")[..., 0], x[1, :5] + 1)
    assert sink.array("model:latent/own/sample").shape == (5, D)


@pytest.mark.parametrize(
    ("forward", "channel", "told"),
    [
        (lambda x: Normal(x.reshape(-1, D), 1.0).rsample().view_as(x), "Normal", r"has shape \(28, 3\); expected"),
        (lambda x: x + Categorical(logits=x @ torch.ones(D, 300)).sample()[..., None], "Categorical", "300 categories"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(forward: Any, channel: str, told: str) -> None:
    reasons = refused(observed(Function(forward), given()))
    assert any(channel in name for name in reasons)
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(" ".join(reasons.values()))


class ByHand(nn.Module):
    """The VAE of a well-known example: no distribution, z = μ + σ ε in a method."""

    def __init__(self, form: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.mu, self.log_variance, self.form = nn.Linear(D, 2), nn.Linear(D, 2), form
        self.kept = torch.zeros(0)

    def forward(self, x: Tensor) -> Tensor:
        mu, sigma = self.mu(x), (self.log_variance(x) / 2).exp()
        z = self.form(mu, sigma)
        self.kept = torch.stack((mu, sigma, z)).detach()
        return z + 0.1 * torch.randn_like(z)


def drawn_like(mu: Tensor, sigma: Tensor) -> Tensor:
    epsilon = torch.randn_like(sigma)
    return mu + epsilon * sigma


def drawn_at_once(mu: Tensor, sigma: Tensor) -> Tensor:
    return sigma * torch.randn(sigma.shape) + mu


def added_in_one(mu: Tensor, sigma: Tensor) -> Tensor:
    return torch.addcmul(mu, sigma, torch.randn_like(sigma))


def in_place(mu: Tensor, sigma: Tensor) -> Tensor:
    return torch.randn_like(sigma).mul(sigma).add_(mu)


def filled(mu: Tensor, sigma: Tensor) -> Tensor:
    return torch.empty_like(mu).normal_().mul(sigma).add(mu)


def by_torch(mu: Tensor, sigma: Tensor) -> Tensor:
    return torch.normal(mu, sigma)


FORMS = (drawn_like, drawn_at_once, added_in_one, in_place, filled, by_torch)


@pytest.mark.parametrize("form", FORMS)
def test_samples_that_the_code_draws_itself(form: Callable[[Tensor, Tensor], Tensor]) -> None:
    model = ByHand(form)
    sink = observed(model, given())
    assert {name.partition("/")[0] for name in sink.names() if "latent" in name} == {"model:latent"}
    mu, sigma, z = model.kept[:, 1, :5].double().numpy()
    both = sink.array("model:latent/z/z")
    np.testing.assert_allclose(both, np.stack((mu, sigma), -1), rtol=1e-6)
    np.testing.assert_allclose(sink.array("model:latent/z/sample"), z, rtol=1e-6)
    wanted = [
        sum((m * m + s * s - 1) / 2 - math.log(s) for m, s in zip(*row, strict=True))
        for row in zip(mu, sigma, strict=True)
    ]
    np.testing.assert_allclose(sink.array("model:latent/z/kl_total"), wanted, rtol=1e-4, atol=1e-6)
    assert not [
        name for name in sink.names() if name.startswith("model:latent/") and not name.startswith("model:latent/z/")
    ]


def test_what_a_distribution_draws_is_not_found_twice() -> None:
    sink = observed(VAE(), given())
    assert {name.split("/")[1] for name in sink.names() if ":latent/" in name} == {"posterior", "likelihood"}


def test_noise_that_becomes_no_sample_is_listed() -> None:
    def covariance(x: Tensor) -> Tensor:
        lower = (x[..., :, None] * x[..., None, :]).tril()
        z = x + torch.einsum("...ij,...j->...i", lower, torch.randn_like(x))
        return z

    def said(model: nn.Module) -> list[str]:
        return [one.text for one in observed(model, given()).of(Log) if one.text.startswith("Noise is drawn")]

    assert ["(model:z)" in text for text in said(Function(covariance))] == [True]
    assert ["(model:randn_like)" in text for text in said(ByHand(drawn_like))] == [True]  # 0.1 ε
    assert said(VAE()) == []
    fixed = torch.Generator()
    assert said(Function(lambda x: x @ torch.randn(D, D, generator=fixed.manual_seed(0)))) == []


def test_categories_by_gumbel_noise() -> None:
    kept: list[Tensor] = []

    def forward(x: Tensor) -> Tensor:
        choice = nn.functional.gumbel_softmax(2 * x, tau=0.5)
        kept.append(choice)
        return choice

    x = given()
    sink = observed(Function(forward), x)
    shown = [[math.exp(2 * float(v)) for v in row] for row in x[1, :5].double()]
    np.testing.assert_allclose(
        sink.array("model:latent/choice/choice"), [[v / sum(r) for v in r] for r in shown], rtol=1e-5
    )
    np.testing.assert_allclose(sink.array("model:latent/choice/sample"), kept[0][1, :5].detach(), rtol=1e-6)


def test_a_transformed_distribution_shows_what_it_transforms() -> None:
    def forward(x: Tensor) -> Tensor:
        squashed = TransformedDistribution(Normal(x, 0.5), [TanhTransform()])
        return torch.as_tensor(squashed.rsample())

    x = given()
    sink = observed(Function(forward), x)
    names = {name for name in sink.names() if ":latent/" in name}
    assert names == {"model:latent/squashed/squashed/base", "model:latent/squashed/sample"}
    both = sink.array("model:latent/squashed/squashed/base")
    np.testing.assert_allclose(both[..., 0], x[1, :5], rtol=1e-6)
    np.testing.assert_allclose(both[..., 1], 0.5, rtol=1e-6)


def test_a_distribution_in_the_call_of_a_divergence_has_not_its_name() -> None:
    def forward(x: Tensor) -> Tensor:
        kl = kl_divergence(Normal(x, 1.0), Normal(torch.ones_like(x), 2.0))
        return kl

    sink = observed(Function(forward), given())
    assert {name for name in sink.names() if ":latent/" in name} == {
        "model:latent/Normal/Normal", "model:latent/Normal/prior", "model:latent/Normal/kl", "model:latent/Normal/kl_total",
    }  # fmt: skip
    np.testing.assert_allclose(sink.array("model:latent/Normal/prior")[..., 1], 2)


@pytest.mark.parametrize(("size", "steps"), [(2, T), (T, T)])
def test_two_axes_that_may_both_be_the_batch_are_refused(size: int, steps: int) -> None:
    """(layers, batch, unit) of two layers and two sequences, say."""

    def forward(x: Tensor) -> Tensor:
        state = x[:, 0].expand(size, size, D)
        Normal(state, 1.0).rsample()
        return x

    x = torch.randn(size, steps, D, generator=torch.Generator().manual_seed(0))
    subject = Subject(model=Function(forward).eval(), kind="vectors", width=D)
    sink = Kept()
    perform(subject, Batch(x, torch.full((size,), steps)), sink, RunOptions(only=("latent/distributions",)))
    assert all("both as long as the batch" in reason for reason in refused(sink).values())
    assert len(refused(sink)) == 2
