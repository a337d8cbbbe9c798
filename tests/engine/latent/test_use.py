"""How much of z is used, against plain sums in float64, autograd over two separate inputs, and step-by-step decoding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

import inspector
from inspector.engine.analyses.latent import information
from inspector.engine.latent.replaced import Replacing
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Refusal

V, T, H, U = 5, 6, 7, 2
END = 4
DATA = [[0, 1, 2, 4], [3, 3, 0, 1, 2, 4], [1, 0, 4]]


def by_hand(mu: Tensor, std: Tensor) -> Tensor:
    return mu + std * torch.randn_like(std)


def by_distribution(mu: Tensor, std: Tensor) -> Tensor:
    z: Tensor = Normal(mu, std).rsample()
    return z


class Small(nn.Module):
    """An untrained sequence VAE, in float64 so that sums can be compared."""

    def __init__(self, draw: Callable[[Tensor, Tensor], Tensor] = by_hand) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding, self.encoder = nn.Embedding(V, 3), nn.GRU(3, H, batch_first=True)
        self.heads, self.begin = nn.Linear(H, 2 * U), nn.Linear(U, H)
        self.decoder, self.read, self.draw = nn.GRU(3, H, batch_first=True), nn.Linear(H, V), draw
        self.calls: list[Tensor] = []
        with torch.no_grad():
            self.heads.weight *= 4
            self.begin.weight *= 4
            self.read.weight *= 4
        self.double()

    def encode(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        states = self.encoder(embedded)[0][torch.arange(len(embedded)), lengths - 1]
        mu, log_variance = self.heads(states).chunk(2, -1)
        return mu, torch.exp(0.5 * log_variance)

    def decode(self, z: Tensor, embedded: Tensor) -> Tensor:
        scores: Tensor = self.read(self.decoder(embedded, torch.tanh(self.begin(z))[None])[0])
        return scores

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mu, std = self.encode(self.embedding(ids), lengths)
        z = self.draw(mu, std)
        self.calls.append(z.detach().clone())
        return self.decode(z, self.embedding(shifted(ids))), mu, std


def shifted(ids: Tensor) -> Tensor:
    return torch.cat((torch.full_like(ids[:, :1], END), ids[:, :-1]), 1)


def bound(output: Any, batch: Batch) -> Tensor:
    scores, mu, std = output
    steps = torch.arange(scores.shape[1])
    missed = nn.functional.cross_entropy(scores.transpose(1, 2), batch.inputs, reduction="none")
    kl = (mu**2 + std**2 - 1 - 2 * std.log()).sum(-1) / 2
    return (missed + (kl / batch.lengths)[:, None]).masked_fill(steps >= batch.lengths[:, None], torch.nan)


def subject_of(model: nn.Module, **more: Any) -> Subject:
    given: dict[str, Any] = {
        "kind": "tokens", "vocabulary": list("abcd."), "loss": bound, "data": [torch.tensor(row) for row in DATA],
        "forward": lambda model, ids, lengths: model(ids, lengths), "logits": lambda out: out[0], "end_token": END,
    }  # fmt: skip
    return Subject(model=model.eval(), **{**given, **more})


def observed(model: nn.Module, **more: Any) -> Kept:
    sink = Kept()
    batch = Batch(torch.tensor([DATA[0]]), torch.tensor([len(DATA[0])]))
    perform(subject_of(model, **more), batch, sink, RunOptions(only=("latent/distributions", "latent/use")))
    return sink


@pytest.fixture(scope="module")
def seen() -> tuple[Small, Kept]:
    model = Small()
    return model, observed(model)


def posteriors(model: Small) -> tuple[Tensor, Tensor]:
    """(n, u) mean and deviation of every sequence alone."""
    parts = [model.encode(model.embedding(torch.tensor([row])), torch.tensor([len(row)])) for row in DATA]
    return torch.cat([mu for mu, _ in parts]).detach(), torch.cat([std for _, std in parts]).detach()


BASE = "model:latent/z/use"


def test_divergence_and_active_units_are_those_of_plain_sums(seen: tuple[Small, Kept]) -> None:
    model, sink = seen
    mu, std = (one.numpy() for one in posteriors(model))
    kl = [
        sum((m**2 + s**2 - 1) / 2 - math.log(s) for m, s in zip(mu[:, u], std[:, u], strict=True)) / 3 for u in range(U)
    ]
    variance = [sum((m - mu[:, u].mean()) ** 2 for m in mu[:, u]) / 2 for u in range(U)]
    np.testing.assert_allclose(sink.array(f"{BASE}/units"), np.stack((kl, variance), 1), rtol=1e-9)
    assert sink.scalar(f"{BASE}/kl") == pytest.approx(sum(kl), rel=1e-9)
    assert sink.scalar(f"{BASE}/active_units") == sum(one > 0.01 for one in variance)
    assert sink.scalar(f"{BASE}/sequences") == 3 and sink.scalar(f"{BASE}/most_information") == pytest.approx(
        math.log(3)
    )


def test_losses_with_other_z_are_those_of_the_decoder(seen: tuple[Small, Kept]) -> None:
    model, sink = seen
    drawn = next(z for z in model.calls if len(z) == 3)  # the sequence that is shown and two others
    ids = torch.tensor([DATA[0]])
    with torch.no_grad():
        told = [model.decode(z[None], model.embedding(shifted(ids)))[0].log_softmax(-1) for z in drawn]
    losses = np.array([[-float(one[t, DATA[0][t]]) for t in range(4)] for one in told])
    found = sink.array(f"{BASE}/loss")
    np.testing.assert_allclose(found[:, 0], losses[0], rtol=1e-9)
    np.testing.assert_allclose(found[:, 1], losses[1:].mean(0), rtol=1e-9)
    assert found.shape == (4, 3) and sink.channel(f"{BASE}/loss").unit == "nat"
    with torch.no_grad():
        sums = [
            -sum(float(model.decode(z[None], model.embedding(shifted(torch.tensor([row]))))[0].log_softmax(-1)[t, i])
                 for t, i in enumerate(row))
            for z, row in zip(drawn, DATA, strict=True)
        ]  # fmt: skip
    terms = dict(zip(sink.channel(f"{BASE}/terms").labels["statistic"], sink.array(f"{BASE}/terms"), strict=True))
    assert terms["loss, its own z"] == pytest.approx(sum(sums) / 3) and terms["KL"] == sink.scalar(f"{BASE}/kl")
    assert sink.scalar(f"{BASE}/loss/own") == pytest.approx(sum(sums) / sum(map(len, DATA)))
    assert sink.scalar(f"{BASE}/loss/others") != pytest.approx(sink.scalar(f"{BASE}/loss/own"), rel=1e-3)


def test_the_ways_of_the_gradient_are_those_of_two_separate_inputs(seen: tuple[Small, Kept]) -> None:
    model, sink = seen
    ids = torch.tensor([DATA[0]])
    read = model.embedding(ids).detach().requires_grad_()
    told = model.embedding(shifted(ids)).detach().requires_grad_()
    mu, std = model.encode(read, torch.tensor([4]))
    drawn = torch.tensor(sink.array("model:latent/z/sample"))
    noise = ((drawn - mu) / std).detach()
    scores = model.decode(mu + std * noise, told)[0].log_softmax(-1)
    rows = [torch.autograd.grad(-scores[t, DATA[0][t]], (read, told), retain_graph=True) for t in range(4)]
    wanted = np.array([[float(one.norm()) for one in row] for row in rows])
    np.testing.assert_allclose(sink.array(f"{BASE}/gradient"), wanted, rtol=1e-6)
    np.testing.assert_allclose(sink.array(f"{BASE}/share"), wanted[:, 0] / wanted.sum(1), rtol=1e-6)


def test_texts_are_written_one_token_after_the_other(seen: tuple[Small, Kept]) -> None:
    model, sink = seen
    channel, rows = sink.channel(f"{BASE}/texts"), sink.array(f"{BASE}/texts").astype(int)
    mu = posteriors(model)[0]
    other = int((mu - mu[0]).square().sum(-1).argmax())
    names = channel.labels["number"]
    for name, part in (("μ(x)", 0.0), ("25 % of the way", 0.25), ("μ(x′)", 1.0)):
        z, ids = (1 - part) * mu[0] + part * mu[other], [END]
        for _ in range(T):
            with torch.no_grad():
                ids.append(int(model.decode(z[None], model.embedding(torch.tensor([ids])))[0, -1].argmax()))
            if ids[-1] == END:
                break
        assert [i for i in rows[names.index(name)].tolist() if i >= 0] == ids[1:], name
    assert [i for i in rows[names.index("read: x′")] if i >= 0] == DATA[other]
    assert channel.value_domain == "vocabulary"


def test_a_sample_of_a_distribution_is_found_as_one_drawn_by_hand(seen: tuple[Small, Kept]) -> None:
    sink = observed(Small(by_distribution))
    own = {name.rpartition("/use/")[2]: sink.array(name) for name in sink.names() if "/use/" in name}
    assert own.keys() == {"units", "loss", "gradient", "share", "texts", "terms"}
    for name, values in own.items():
        np.testing.assert_array_equal(values, seen[1].array(f"{BASE}/{name}"), err_msg=name)


@pytest.mark.parametrize(
    "draw",
    [
        by_hand, by_distribution, torch.normal,
        lambda mu, std: torch.addcmul(mu, torch.randn(mu.shape, dtype=mu.dtype), std),
        lambda mu, std: torch.empty_like(std).normal_().mul_(std).add_(mu),
    ],
    ids=["by hand", "rsample", "torch.normal", "addcmul", "in place"],
)  # fmt: skip
def test_another_sample_takes_its_place(draw: Callable[[Tensor, Tensor], Tensor]) -> None:
    mu, std, other = torch.randn(3, U), torch.rand(3, U) + 0.1, torch.full((3, U), 7.0)
    found: list[Any] = []

    def choose(number: int, drawn: Any) -> Tensor:
        found.append((number, drawn))
        return other

    state = torch.random.get_rng_state()
    with Replacing(choose):
        z = draw(mu, std)
        noise = mu + 0.1  # no sample
    torch.random.set_rng_state(state)
    assert torch.equal(z, other) and torch.equal(noise, mu + 0.1)
    ((number, drawn),) = found
    assert number == 0 and torch.equal(drawn.mean, mu) and torch.equal(drawn.deviation, std)
    torch.testing.assert_close(drawn.sample, draw(mu, std))
    torch.random.set_rng_state(state)


def test_mutual_information_of_known_mixtures() -> None:
    far = torch.tensor([[-40.0], [40.0]], dtype=torch.float64)
    one = torch.ones_like(far)
    assert information.mutual_information(far, one) == pytest.approx(math.log(2), abs=1e-9)
    assert information.mutual_information(0 * far, one) == pytest.approx(0, abs=1e-9)
    near = far / 40  # two normals, 2 σ apart: by the trapezoidal rule
    x = np.linspace(-12, 12, 4001)
    p = [np.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi) for m in (-1, 1)]
    mixed = (p[0] + p[1]) / 2
    wanted = float(np.trapezoid(sum(one / 2 * np.log(one / mixed) for one in p), x))
    assert information.mutual_information(near, one, draws=40_000) == pytest.approx(wanted, abs=0.01)


class BySteps(Small):
    """z anew at every step."""

    def forward(self, ids: Tensor, lengths: Tensor) -> Any:
        z = by_hand(states := self.encoder(self.embedding(ids))[0], states.abs() + 0.1)
        return self.read(z), z, z.abs()


class OwnPrior(Small):
    """q against a prior that is not N(0, 1)."""

    def forward(self, ids: Tensor, lengths: Tensor) -> Any:
        mu, std = self.encode(self.embedding(ids), lengths)
        posterior, prior = Normal(mu, std), Normal(torch.ones_like(mu), torch.ones_like(mu))
        z = posterior.rsample() + 0 * kl_divergence(posterior, prior)
        return self.decode(z, self.embedding(shifted(ids))), mu, std


def squares(output: Any, batch: Batch) -> Tensor:
    return output[0].square().sum(-1)


@pytest.mark.parametrize(
    ("model", "more", "reason"),
    [
        (Small, {"data": None}, "this run has one sequence"),
        (BySteps, {"loss": squares}, "drawn at every step"),
        (OwnPrior, {}, "a prior of the model's own"),
        (Small, {"loss": squares}, "does not change as the cross entropy"),
        (Small, {"data": lambda: 1 / 0}, "ZeroDivisionError"),
    ],
)
def test_what_cannot_be_measured_is_refused(model: type[Small], more: dict[str, Any], reason: str) -> None:
    sink = observed(model(), **more)
    said = [one.reason for one in sink.of(Refusal) if "/use" in one.channel]
    assert said and all(reason in one for one in said), said
    assert not [name for name in sink.names() if name.endswith(("/texts", "/gradient"))]
    assert (f"{BASE}/loss" in sink.names()) == (more.get("loss") is squares and model is Small)


def test_numbers_that_are_not_finite_are_refused() -> None:
    model = Small()
    with torch.no_grad():
        model.heads.bias[0] = torch.nan
    said = [one.reason for one in observed(model).of(Refusal) if "/use" in one.channel]
    assert any("NaN" in one for one in said), said


def test_a_model_that_draws_nothing_is_told() -> None:
    with inspector.run("nile-kalman", only=("latent/use",)) as capture:
        (refusal,) = [one for one in capture.refusals if one.channel == "model:latent/use"]
        assert "draws no hidden variable from a normal distribution" in refusal.reason
