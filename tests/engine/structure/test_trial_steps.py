"""Trial steps against what is written out here, and the model as it was afterwards."""

from __future__ import annotations

import copy
import math
from importlib import import_module

import numpy as np
import pytest
import torch
from structures import Attending, Recurrent, V
from torch import Tensor, nn

import inspector
from inspector.analysis.before_training.trial import trials
from inspector.analysis.before_training.verdicts import Verdict
from inspector.capture import Capture
from inspector.diagnosis import diagnose
from inspector.engine.model.subject import Batch, Subject

IDS = [1, 2, 3, 4, 5, 6, 7, 8, 9]


def cross_entropy(output: Tensor | tuple[Tensor, ...], batch: Batch) -> Tensor:
    """(b, t) of the next id; none for the last one."""
    scores = output[0] if isinstance(output, tuple) else output
    found = nn.functional.cross_entropy(scores[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return torch.cat([found, found.new_full((len(found), 1), torch.nan)], 1)


def language(model: nn.Module) -> Subject:
    return Subject(model=model, loss=cross_entropy, vocabulary=list("abcdefghijk"))


def told(subject: Subject) -> dict[str, Verdict]:
    return {one.test: one for one in inspector.preflight(subject, IDS)}


class Square(nn.Module):
    """y = w x: its mean squared loss is a parabola in w."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.line.weight, 3.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(x)  # type: ignore[no-any-return]


def test_the_critical_rate_of_a_parabola() -> None:
    """L = w² a / 2: the loss after a step is (1 − η a)² L, which is L again at η = 2 / a. Adam's first step is ±η."""
    x = np.linspace(1, 2, 5)[:, None].astype(np.float32)
    a = float((x**2).mean())
    subject = Subject(model=Square(), kind="vectors", loss=lambda y, _batch: y[..., 0] ** 2 / 2)
    with inspector.run(subject, x, only=["trial/learning_rate"]) as capture:
        values = {one.name: one.value for one in capture.scalars}
        rates, losses = np.asarray(capture.array("model:trial/learning_rate/sgd"))
    width = 3 ** (1 / 2**5)  # the bracket after five halvings, on a logarithmic scale
    assert values["trial/learning_rate/sgd"] == pytest.approx(2 / a, rel=width - 1)
    assert values["trial/learning_rate/adam"] == pytest.approx(6.0, rel=width - 1)
    assert losses == pytest.approx((1 - rates * a) ** 2 * 9 * a / 2, rel=1e-4)


def by_hand(model: nn.Module, steps: int, rate: float) -> list[float]:
    """Adam as Kingma & Ba write it, in float64."""
    model = copy.deepcopy(model).double()
    ids, parameters = torch.tensor([IDS]), list(model.parameters())
    m, v, losses = [0.0] * len(parameters), [0.0] * len(parameters), []
    for t in range(1, steps + 1):
        loss = nn.functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[0, 1:])
        losses.append(float(loss.detach()))
        for n, (one, g) in enumerate(zip(parameters, torch.autograd.grad(loss, parameters), strict=True)):
            m[n], v[n] = 0.9 * m[n] + 0.1 * g, 0.999 * v[n] + 0.001 * g * g
            step = rate * (m[n] / (1 - 0.9**t)) / ((v[n] / (1 - 0.999**t)).sqrt() + 1e-8)
            one.data = one.data - step
    return losses


def test_one_batch_is_learned_as_a_training_would() -> None:
    torch.manual_seed(0)
    model = Attending()
    before = {name: one.clone() for name, one in model.state_dict().items()}
    with inspector.run(language(model), IDS, only=["trial/one_batch@iterations=12"]) as capture:
        losses = np.asarray(capture.array("model:trial/one_batch"))
    assert losses == pytest.approx(by_hand(model, 13, 0.01), rel=2e-3)  # before the first step, and after each of 12
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())


class Breaking(nn.Module):
    """w x, and infinite where w is not above `least`; Adam with rate 0.01 takes w from 1 down by 0.01 a step."""

    def __init__(self, least: float) -> None:
        super().__init__()
        self.line, self.least = nn.Linear(1, 1, bias=False), least
        nn.init.ones_(self.line.weight)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.line(x)
        return scores if float(self.line.weight.detach()) > self.least else scores * math.inf


@pytest.mark.parametrize(("steps", "said"), [(0, "before any step"), (1, "NaN after 1 step."), (3, "after 3 steps.")])
def test_steps_are_counted_up_to_the_one_that_breaks_the_loss(steps: int, said: str) -> None:
    subject = Subject(model=Breaking(1.005 - 0.01 * steps), kind="vectors", loss=lambda y, _batch: y[..., 0] ** 2)
    only = ["trial/one_batch@iterations=5"]
    with inspector.run(subject, np.ones((4, 1), np.float32), only=only) as capture:
        (found,) = [one for one in diagnose(capture, capture.frames).findings if one.id == "IN203"]
        assert capture.array("model:trial/one_batch").shape == (steps + 1,)
    assert said in found.message and not found.unless
    assert ("IN101" if not steps else "Clip the gradient") in found.remedy


def first_step(model: nn.Module, *more: str) -> Capture:
    return inspector.run(language(model), IDS, only=["@".join(["trial/first_step", *more])])


def test_a_first_step_is_that_of_the_optimizer() -> None:
    torch.manual_seed(0)
    model = Attending()
    with first_step(model, "optimizer=sgd", "rate=0.1") as capture:
        gradient, ratio, lost = np.asarray(capture.array("model:trial/first_step"))
        names = capture.labels("trial parameter")
    twin = copy.deepcopy(model).double()
    loss = nn.functional.cross_entropy(twin(torch.tensor([IDS]))[:, :-1].flatten(0, 1), torch.tensor(IDS[1:]))
    grads = torch.autograd.grad(loss, list(twin.parameters()))
    pairs = [(name, one.detach(), g) for (name, one), g in zip(twin.named_parameters(), grads, strict=True)]
    for n, (name, one, g) in enumerate(pairs):
        assert names[n] == name
        if float(g.norm()) > 1e-6:  # the bias of the keys has none but rounding
            assert gradient[n] == pytest.approx(float(g.norm()), rel=1e-4)
            assert ratio[n] == pytest.approx(float(0.1 * g.norm() / one.norm()), rel=1e-3)
            assert lost[n] <= 0.05


def test_updates_that_half_precision_loses_are_counted() -> None:
    torch.manual_seed(0)
    model = Attending().bfloat16()
    with first_step(model, "optimizer=sgd", "rate=1e-5") as capture:
        lost = np.asarray(capture.array("model:trial/first_step"))[2]
        found = diagnose(capture, capture.frames)
    assert lost[0] > 0.9
    assert "Rounding takes more than half" in next(one.message for one in found.findings if one.id == "IN118")


class Unused(Attending):
    """A layer that the output does not read."""

    def __init__(self) -> None:
        super().__init__()
        self.extra = nn.Linear(3, 3)


@pytest.mark.parametrize(("make", "test", "rule"), [
    (Unused, "first step", "IN118"),
    (lambda: scaled(Attending(), 60.0), "initial loss", "IN202"),
    (lambda: deaf(Attending()), "one batch", "IN203"),
])  # fmt: skip
def test_each_fault_is_told_and_has_its_rule(make: object, test: str, rule: str) -> None:
    torch.manual_seed(0)
    subject = language(make())  # type: ignore[operator]
    only = ["trial/initial_loss", "trial/first_step", "trial/one_batch@iterations=40"]
    with inspector.run(subject, IDS, only=only) as capture:
        found = [one.id for one in diagnose(capture, capture.frames).findings]
    assert rule in found, test
    with inspector.run(language(Attending()), IDS, only=only) as capture:
        assert [one.id for one in diagnose(capture, capture.frames).findings] == []


def test_weights_that_are_trained_already_are_no_fault_of_the_first_loss() -> None:
    """Whoever builds a trained model without a checkpoint is told that, and not that targets are among the inputs."""
    torch.manual_seed(0)
    model = Attending()
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.tensor([IDS]))[:, :-1].flatten(0, 1), torch.tensor(IDS[1:]))
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.1
    with inspector.run(language(model), IDS, only=["trial/initial_loss"]) as capture:
        assert [one.id for one in diagnose(capture, capture.frames).findings if one.id == "IN202"] == []
        (said,) = trials(capture, only="initial loss")
    assert said.word == "fact" and "weights that are trained have that" in said.sentence


class Routed(Attending):
    """Each step goes through one of eight layers, which its id chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(V, V) for _ in range(V))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        first, out = super().forward(ids), []
        for t in range(ids.shape[1]):
            out.append(
                torch.stack([self.experts[int(one)](row) for one, row in zip(ids[:, t], first[:, t], strict=True)])
            )
        return torch.stack(out, 1)


class Rank(Attending):
    """A low-rank addition to the head, of which one factor begins at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(V, 2, bias=False), nn.Linear(2, V, bias=False)
        nn.init.zeros_(self.b.weight)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        first = super().forward(ids)
        return first + self.b(self.a(first))


class Listed(Attending):
    """Two layers in a plain list, of which the loss reads one; the other is a teacher's."""

    def __init__(self) -> None:
        super().__init__()
        self.more = [nn.Linear(V, V), nn.Linear(V, V)]
        self.idle = nn.Linear(V, V)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        scores = super().forward(ids)
        with torch.no_grad():
            self.more[1](scores)
        return torch.as_tensor(self.more[0](scores))


def test_layers_in_a_plain_list_are_told_before_any_training() -> None:
    torch.manual_seed(0)
    with inspector.run(language(Listed()), IDS, only=["trial/first_step"]) as capture:
        told = trials(capture, only="first step")
        (listed,) = [one for one in diagnose(capture, capture.frames).findings if "plain list" in one.message]
    assert "2 parameters in a plain list" in told[0].sentence and told[0].word == "fault"
    assert "more[0].weight, more[0].bias" in told[0].sentence and "more[1]" not in told[0].sentence
    assert listed.id == "IN118" and "nn.ModuleList" in listed.remedy
    # what has no gradient is not counted among what the step moves
    (moves,) = [one for one in told if one.word == "holds"]
    assert "moves the other parameters by" in moves.sentence and "by 0.0" not in moves.sentence


@pytest.mark.parametrize(("make", "names", "more"), [
    (Routed, ("experts.0.weight", "experts.0.bias"), "on other inputs"), (Rank, ("a.weight",), "in the second one"),
])  # fmt: skip
def test_parameters_that_move_later_or_on_other_inputs_are_no_fault(
    make: type[nn.Module], names: tuple[str, ...], more: str
) -> None:
    torch.manual_seed(0)
    with inspector.run(language(make()), IDS, only=["trial/first_step"]) as capture:
        idle = [one for one in trials(capture, only="first step") if "would not move" in one.sentence]
        found = [one.id for one in diagnose(capture, capture.frames).findings]
    assert [one.word for one in idle] == ["fact"]
    assert more in idle[0].sentence
    assert all(name in idle[0].sentence for name in names)
    assert "IN118" not in found


def scaled(model: Attending, factor: float) -> Attending:
    """Confident at once."""
    model.head.weight.data *= factor
    return model


def deaf(model: Attending) -> Attending:
    """The same output whatever the input, of which only the bias learns."""
    for one in (model.embed, model.places):
        one.weight.data.zero_()
        one.requires_grad_(False)
    model.head.weight.data.zero_()
    model.v.bias.data.zero_()
    return model


def test_what_has_no_loss_is_not_tried() -> None:
    verdicts = {one.test: one for one in inspector.preflight(Recurrent(), IDS)}
    for test in ("one batch", "learning rate", "first step"):
        assert verdicts[test].word == "not tested"
        assert "gives no loss" in verdicts[test].sentence
    quick = {one.test for one in inspector.preflight(Recurrent(), IDS, quick=True)}
    assert quick == set(verdicts) - {"one batch", "learning rate", "first step", "reach", "other lengths"}


def test_the_learning_rate_is_told_in_words() -> None:
    torch.manual_seed(0)
    found = [one for one in inspector.preflight(language(Attending()), IDS) if one.test == "learning rate"]
    assert [one.sentence.split()[3] for one in found] == ["SGD", "Adam"]
    assert all(math.isfinite(one.number) and one.number > 0 for one in found)


class Dropping(nn.Module):
    """Dropout in training mode, an embedding whose gradient may be sparse, complex weights, half precision."""

    def __init__(self, *, sparse: bool = False, complex_weights: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8, sparse=sparse)
        self.mix = nn.Parameter(torch.randn(8, 8, dtype=torch.complex64 if complex_weights else torch.float32))
        self.drop, self.head = nn.Dropout(dropout), nn.Linear(8, 11)

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.embedding(ids).to(self.mix.dtype) @ self.mix
        found: Tensor = self.head(self.drop(hidden.real if hidden.is_complex() else hidden))
        return found


def rates_of(model: nn.Module, **given: object) -> tuple[dict[str, float], Capture]:
    subject = Subject(model=model, loss=cross_entropy, vocabulary=list("abcdefghijk"))
    capture = inspector.run(subject, IDS, only=["trial/learning_rate", "trial/first_step"])
    scalars = [one for one in capture.scalars if one.name.startswith("trial")]
    return {one.name.removeprefix("trial/learning_rate/"): one.value for one in scalars}, capture


def test_dropout_is_the_same_at_every_rate() -> None:
    """Else the losses of the smallest steps are noise, and the loss seems to rise with any of them."""
    torch.manual_seed(0)
    values, capture = rates_of(Dropping(dropout=0.5).train())
    with capture:
        rates, losses = np.asarray(capture.array("model:trial/learning_rate/sgd"))
    assert math.isfinite(values["sgd"]) and math.isfinite(values["adam"])
    assert losses[0] == pytest.approx(values["loss"], rel=1e-3) and rates[0] > 0


def test_a_sparse_gradient_is_that_of_a_dense_one() -> None:
    found = []
    for sparse in (False, True):
        torch.manual_seed(0)
        values, capture = rates_of(Dropping(sparse=sparse))
        with capture:
            found.append((values, capture.array("model:trial/first_step").tolist()))
    assert found[0] == found[1]


def test_both_parts_of_complex_parameters_count() -> None:
    torch.manual_seed(0)
    model = Dropping(complex_weights=True)
    ids = torch.tensor([IDS])
    nn.functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[0, 1:]).backward()
    _, capture = rates_of(model)
    with capture:
        names = capture.labels("trial parameter")
        gradient, ratio, _ = np.asarray(capture.array("model:trial/first_step"))
    assert model.mix.grad is not None
    at = names.index("mix")
    assert gradient[at] == pytest.approx(float(model.mix.grad.norm()), rel=1e-5)
    optimizer = torch.optim.Adam([twin := nn.Parameter(model.mix.detach().clone())], lr=0.001)
    twin.grad = model.mix.grad
    optimizer.step()
    moved = float((twin - model.mix).detach().norm() / model.mix.detach().norm())
    assert ratio[at] == pytest.approx(moved, rel=1e-4)


def test_half_precision_has_rates_and_says_what_adam_breaks() -> None:
    """1e-8 is 0 in float16: an entry without a gradient becomes 0 / 0 in torch's Adam, in a training too."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 11)).half()
    values, capture = rates_of(model)
    capture.close()
    assert math.isfinite(values["sgd"]) and math.isfinite(values["adam"])
    found = [one for one in inspector.preflight(language(model), IDS) if one.test == "first step"]
    assert any("makes entries of 0.weight" in one.sentence and one.word == "fault" for one in found)


def test_two_parameters_in_one_memory_are_not_parted() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 11))
    model[1].weight = nn.Parameter(model[0].weight.data)  # type: ignore[union-attr]
    found = {one.test: one for one in inspector.preflight(language(model), IDS)}
    for test in ("first step", "learning rate", "one batch"):
        assert found[test].word == "not tested" and "0.weight and 1.weight" in found[test].sentence


def test_a_backward_pass_that_raises_is_told() -> None:
    seen = []

    def refuse(_gradient: Tensor) -> None:
        seen.append(1)
        if len(seen) > 1:  # the first one is of the run itself
            raise RuntimeError("not today")

    model = nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 11))
    model[1].register_forward_hook(
        lambda _part, _given, out: (out.requires_grad and out.register_hook(refuse)) and None
    )
    found = {one.test: one for one in inspector.preflight(language(model), IDS)}
    for test in ("first step", "learning rate", "one batch"):
        assert found[test].word == "not tested" and "not today" in found[test].sentence
    assert all(one.grad is None for one in model.parameters())


def test_a_test_that_fails_in_this_program_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is passed over in silence, whoever made the mistake."""

    def broken(*_given: object) -> None:
        raise ZeroDivisionError

    for place, name in (
        ("trial.first_step", "stand_ins"),
        ("trial.initial_loss", "IN_NATS"),
        ("structure.batch", "selected"),
    ):
        monkeypatch.setattr(import_module(f"inspector.engine.quantities.{place}"), name, broken)
    found = told(language(nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 11))))
    for test in ("first step", "batch", "initial loss"):
        assert found[test].word == "not tested" and "failed with" in found[test].sentence


def test_a_rule_whose_trial_was_not_made_has_not_judged() -> None:
    torch.manual_seed(0)
    with first_step(Attending()) as capture:
        told = diagnose(capture, capture.frames)
    assert "would-not-move" in told.asked
    assert {"one-batch", "initial-loss"} <= set(told.silent)
