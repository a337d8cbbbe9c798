"""Cures change what they say of a copy and nothing else; what is told of a trial is what plain torch gives."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import inspector
from inspector.analysis.cures import tried
from inspector.capture import Writer
from inspector.diagnosis import RULES, untried
from inspector.engine.analyses.trial.trial_training import Copy, Loop
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES
from inspector.records import Channel, Frame, Page, RunStart, RunStop


class Net(nn.Module):
    """An LSTM that reads tokens, with dropout and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(5, 4), nn.LSTM(4, 6, batch_first=True)
        self.norm, self.drop, self.out = nn.LayerNorm(6), nn.Dropout(0.2), nn.Linear(6, 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.drop(self.norm(self.rnn(self.embed(ids))[0])))
        return logits


def subject(model: nn.Module, **more: Any) -> SimpleNamespace:
    def loss(output: torch.Tensor, batch: Any) -> torch.Tensor:
        return nn.functional.cross_entropy(output.transpose(1, 2), batch.inputs, reduction="none")

    examples = {"a": "abcabc", "b": "eedcba", "c": "aabbcc"}
    return SimpleNamespace(model=model, vocabulary="abcde", loss=loss, examples=examples, **more)


def copy_of(model: nn.Module, **loop: Any) -> Copy:
    named = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
    trial: Any = SimpleNamespace(
        names=[name for name, _ in named], parameters=[one for _, one in named], subject=SimpleNamespace(model=model),
        trace=SimpleNamespace(batch=SimpleNamespace(steps=21)),
    )  # fmt: skip
    return Copy(trial, Loop(**loop))


@pytest.fixture
def model() -> Net:
    torch.manual_seed(0)
    return Net().eval()


def changed(copy: Copy) -> set[str]:
    pairs = zip(copy.held.items(), copy.trial.parameters, strict=True)
    return {name for (name, held), own in pairs if not torch.equal(held, own)}


def test_every_cure_names_rules_that_exist() -> None:
    known = {rule.id for _, rule in RULES.items()}
    for key, cure in CURES.items():
        assert isinstance(cure.rules, tuple) and cure.rules and set(cure.rules) <= known, key
        assert cure.title and cure.summary.endswith("."), key


def test_for_every_rule_a_cure_can_be_tried_or_it_says_why_none_can() -> None:
    cured = {number for _, cure in CURES.items() for number in cure.rules}
    for key, rule in RULES.items():
        said = untried(key)
        assert (rule.id in cured) != bool(said), f"{key}: a cure, or a reason, and not both"
        assert not said.endswith(".") and (not said or said[0].islower()), key


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        ("smaller_rate", {"rate": 0.5}, {"rate": 0.05}),
        ("warm_up", {}, {"warm": 0.3}),
        ("clip_gradient", {}, {"clip": 1.0}),
        ("second_moment", {}, {"betas": (0.9, 0.95)}),
    ],
)
def test_cures_of_the_loop_change_it_alone(
    model: Net, key: str, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    copy, before = copy_of(model, **given), Loop(**given)
    assert CURES[key].apply(copy)
    for name in ("optimizer", "rate", "betas", "decay", "clip", "warm", "wide", "train"):
        assert getattr(copy.loop, name) == expected.get(name, getattr(before, name)), name
    assert not changed(copy)


def test_biases_and_norms_are_left_out_of_the_decay(model: Net) -> None:
    copy = copy_of(model, optimizer="adamw", decay=0.1)
    CURES["decay_apart"].apply(copy)
    decayed, others = (
        {id(one) for one in group["params"]}
        for group in sorted(copy.stepper().param_groups, key=lambda g: -g["weight_decay"])
    )
    assert decayed == {id(one) for one in copy.held.values() if one.dim() > 1}
    assert others == {id(one) for one in copy.held.values() if one.dim() == 1} and not changed(copy)


def test_half_precision_is_stepped_in_float32(model: Net) -> None:
    copy = copy_of(model.bfloat16())
    CURES["float32_copies"].apply(copy)
    copy.widen()
    assert {one.dtype for one in copy.held.values()} == {torch.float32}
    assert {one.dtype for one in model.parameters()} == {torch.bfloat16}


def test_recurrent_blocks_become_the_nearest_orthogonal_ones(model: Net) -> None:
    copy = copy_of(model)
    CURES["orthogonal_recurrence"].apply(copy)
    assert changed(copy) == {"rnn.weight_hh_l0"}
    before = model.rnn.weight_hh_l0.detach().double().numpy().reshape(4, 6, 6)
    after = copy.held["rnn.weight_hh_l0"].detach().double().numpy().reshape(4, 6, 6)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(new @ new.T, np.eye(6), atol=1e-6)
        symmetric = new.T @ old  # the polar factor: what is left is symmetric and not negative
        np.testing.assert_allclose(symmetric, symmetric.T, atol=1e-6)
        assert np.linalg.eigvalsh(symmetric).min() > -1e-6


def test_the_largest_singular_value_of_each_block_becomes_one(model: Net) -> None:
    copy = copy_of(model)
    assert "4 recurrent blocks is 1" in CURES["unit_spectral_norm"].apply(copy)
    assert changed(copy) == {"rnn.weight_hh_l0"}
    before = model.rnn.weight_hh_l0.detach().double().numpy().reshape(4, 6, 6)
    after = copy.held["rnn.weight_hh_l0"].detach().double().numpy().reshape(4, 6, 6)
    for old, new in zip(before, after, strict=True):
        scale = math.sqrt(np.linalg.eigvalsh(old.T @ old).max())
        np.testing.assert_allclose(new * scale, old, atol=1e-6)


@pytest.mark.parametrize(("layer", "candidate"), [(nn.LSTM(3, 4), 2), (nn.GRU(3, 4), 2)])
def test_gates_get_biases_of_zero_and_the_candidate_keeps_its_own(layer: nn.Module, candidate: int) -> None:
    copy = copy_of(layer)
    CURES["neutral_gates"].apply(copy)
    for name, one in copy.held.items():
        blocks = zip(one.detach().split(4), layer.get_parameter(name).split(4), strict=True)
        for number, (new, old) in enumerate(blocks):
            kept = name.startswith("weight") or number == candidate
            assert torch.equal(new, old if kept else torch.zeros(4))


@pytest.mark.parametrize(
    ("layer", "rows"), [(nn.LSTM(3, 4, 2, bidirectional=True), slice(4, 8)), (nn.GRU(3, 4), slice(4, 8))]
)
def test_gates_that_keep_the_state_are_opened(layer: nn.Module, rows: slice) -> None:
    copy = copy_of(layer)
    CURES["open_memory"].apply(copy)
    biases = {name for name in copy.held if name.startswith("bias")}
    assert changed(copy) == biases
    for name in {one.removeprefix("bias_ih") for one in biases if one.startswith("bias_ih")}:
        both = copy.held[f"bias_ih{name}"] + copy.held[f"bias_hh{name}"]
        np.testing.assert_allclose(both[rows].detach(), math.log(20), rtol=1e-6)
        own = getattr(layer, f"bias_ih{name}")
        others = [n for n in range(len(own)) if not rows.start <= n < rows.stop]
        assert torch.equal(copy.held[f"bias_ih{name}"][others], own[others])


@pytest.mark.parametrize(
    ("key", "loop", "reason"),
    [
        ("open_memory", {}, "no nn.LSTM and no nn.GRU"),
        ("orthogonal_recurrence", {}, "no nn.RNN, nn.GRU or nn.LSTM"),
        ("float32_copies", {}, "half precision"),
        ("unit_spectral_norm", {}, "no nn.RNN, nn.GRU or nn.LSTM"),
        ("neutral_gates", {}, "no nn.LSTM and no nn.GRU"),
        ("clip_gradient", {"clip": 0.5}, "clipped at 0.5 already"),
        ("decay_apart", {}, "give a weight decay"),
        ("second_moment", {"optimizer": "sgd"}, "no second moment"),
    ],
)
def test_what_cannot_be_tried_is_said(key: str, loop: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        CURES[key].apply(copy_of(nn.Linear(2, 2), **loop))


def line(**more: Any) -> SimpleNamespace:
    """A line through made points, of which the loss is 100 times the squared height."""
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    return SimpleNamespace(model=model, width=3, loss=lambda output, batch: 100 * output[..., 0].square(), **more)


def test_frozen_parameters_are_trained_and_stay_frozen() -> None:
    made = line(data=[torch.randn(8, 3) for _ in range(64)])
    made.model.weight.requires_grad_(False)
    asked = "trial/cure@cure=unfreeze@iterations=40@seeds=2@rate=0.05"
    with inspector.run(made, torch.randn(8, 3), only=[asked]) as capture:
        (one,) = tried(capture)
        assert one.outcome == "helped" and "1 parameter that were frozen" in one.method
    assert not made.model.weight.requires_grad and made.model.bias.requires_grad
    made.model.weight.requires_grad_(True)
    with inspector.run(made, torch.randn(8, 3), only=[asked]) as capture:
        assert "Every parameter requires a gradient" in str(capture.refusals)


def test_modules_in_evaluation_mode_are_trained_in_training_mode() -> None:
    made = line()
    made.model = nn.Sequential(nn.Dropout(0.5), made.model).eval()
    with inspector.run(made, torch.randn(8, 3), only=["trial/cure@cure=train_mode@iterations=3@seeds=1"]) as capture:
        plain, cured = capture.array("model:trial/cure/train_mode")[:, 0]
        assert plain[0] != cured[0] and "1 module with dropout" in tried(capture)[0].method
    assert not any(part.training for part in made.model.modules())


def test_the_rate_rises_in_equal_parts() -> None:
    rates = list[float]()
    made = line(train_step=lambda model, batch, optimizer: rates.append(optimizer.param_groups[0]["lr"]) or 1.0)
    with inspector.run(made, torch.randn(4, 3), only=["trial/cure@cure=warm_up@iterations=10@seeds=1@rate=3"]):
        np.testing.assert_allclose(rates, [3.0] * 10 + [1.0, 2.0] + [3.0] * 8)


def steps_of_ones_own(seen: list[Any]) -> Any:
    """A training step that counts its calls, with a loss of its own: half of what `line` has."""

    def step(model: nn.Module, batch: Any, optimizer: torch.optim.Optimizer) -> torch.Tensor:
        seen.append(([id(one) for group in optimizer.param_groups for one in group["params"]], batch.inputs.shape))
        optimizer.zero_grad()
        loss = 50 * (model(batch.inputs) + 0.0 * torch.rand(1)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def test_the_subjects_own_step_is_what_trains_and_nothing_of_it_stays() -> None:
    seen = list[Any]()
    made, x = line(train_step=steps_of_ones_own(seen)), torch.randn(4, 3)
    gradient = torch.ones(1, 3)
    made.model.weight.grad = gradient
    before, random = [one.detach().clone() for one in made.model.parameters()], torch.get_rng_state()
    asked = "trial/cure@cure=clip_gradient@iterations=4@seeds=1@optimizer=sgd@rate=0.01"
    with inspector.run(made, x, only=[asked]) as capture:
        found = capture.array("model:trial/cure/clip_gradient")[:, 0]
        after = capture.array("model:trial/cure/clip_gradient/after")[:, 0]
        assert "the subject's own train_step" in tried(capture)[0].method
    assert len(seen) == 8 and {tuple(ids) for ids, _ in seen} == {tuple(map(id, made.model.parameters()))}
    assert all(torch.equal(*pair) for pair in zip(before, made.model.parameters(), strict=True))
    assert made.model.weight.grad is gradient and made.model.bias.grad is None
    assert torch.equal(torch.get_rng_state(), random)
    for clipped in (0, 1):
        weight, bias = (one.clone() for one in before)
        for loss in found[clipped]:
            height = x @ weight.T + bias
            np.testing.assert_allclose(loss, 50 * height.square().mean().item(), rtol=1e-5)
            slopes = 100 * (height * x).mean(0)[None], 100 * height.mean(0)  # of 50 h², by hand
            size = torch.cat([one.flatten() for one in slopes]).norm().item()
            share = min(1.0, 1.0 / (size + 1e-6)) if clipped else 1.0
            weight, bias = (one - 0.01 * share * slope for one, slope in zip((weight, bias), slopes, strict=True))
        judged = 100 * (x @ weight.T + bias).square().mean().item()  # by the loss of the subject
        np.testing.assert_allclose(after[clipped], judged, rtol=1e-4)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (lambda model, batch, optimizer: None, "returned nothing; expected the mean loss"),
        (lambda model, batch, optimizer: torch.ones(2), "of shape (2,); expected the mean loss"),
        (lambda model, batch, optimizer: 1 / 0, "train_step of the subject"),
    ],
)
def test_a_step_that_cannot_be_used_is_said(step: Any, reason: str) -> None:
    with inspector.run(line(train_step=step), torch.randn(4, 3), only=["trial/cure@iterations=2@seeds=1"]) as capture:
        assert reason in str(capture.refusals) and not tried(capture)


def test_copies_learn_from_the_batches_of_the_subjects_own_training() -> None:
    drawn = list[int]()

    def draw(generator: torch.Generator) -> SimpleNamespace:
        drawn.append(generator.initial_seed())
        return SimpleNamespace(inputs=torch.randn(2, 4, 3, generator=generator), lengths=torch.tensor([4, 4]))

    training = SimpleNamespace(draw=draw, rate=0.02, clip=5.0)
    asked = "trial/cure@cure=smaller_rate@iterations=3@seeds=2"
    with inspector.run(line(training=training), torch.randn(4, 3), only=[asked]) as capture:
        found, (one,) = capture.array("model:trial/cure/smaller_rate"), tried(capture)
    assert "learning rate 0.02, gradients clipped at 5; the learning rate is 0.002; batches of its own" in one.method
    assert "learned from" not in one.sentence
    made = line()
    for seed in (0, 1):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(2, 4, 3, generator=generator)
        np.testing.assert_allclose(found[:, seed, 0], 100 * made.model(x).square().mean().item(), rtol=1e-5)
    assert drawn.count(0) == drawn.count(1) == 6 and len(set(drawn)) == 3  # the third judges the copies


@pytest.mark.parametrize("key", sorted(CURES))
def test_the_model_is_bit_for_bit_what_it_was(model: Net, key: str) -> None:
    before = {name: one.clone() for name, one in model.state_dict().items()}
    random, modes = torch.get_rng_state(), [part.training for part in model.modules()]
    with inspector.run(subject(model), "abcabc", only=[f"trial/cure@cure={key}@iterations=3@seeds=2"]) as capture:
        assert tried(capture) or capture.refusals
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())
    assert all(one.grad is None and one.requires_grad for one in model.parameters())
    assert torch.equal(torch.get_rng_state(), random) and [part.training for part in model.modules()] == modes


def test_weights_are_drawn_anew_whatever_seed_the_model_was_made_with(model: Net) -> None:
    with inspector.run(
        subject(model), "abcabc", only=["trial/cure@cure=fresh_weights@iterations=2@seeds=2"]
    ) as capture:
        losses = capture.array("model:trial/cure/fresh_weights")
    assert (losses[0, :, 0] != losses[1, :, 0]).all()


def test_the_copies_are_trained_as_plain_torch_trains_them() -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    x = torch.randn(4, 3)
    made = SimpleNamespace(model=model, width=3, loss=lambda output, batch: 100 * output[..., 0].square())
    asked = "trial/cure@cure=clip_gradient@iterations=4@seeds=1@optimizer=sgd@rate=0.01"
    with inspector.run(made, x, only=[asked]) as capture:
        found = capture.array("model:trial/cure/clip_gradient")[:, 0]
        (one,) = tried(capture)
    assert one.outcome == "one seed"
    for clipped, losses in enumerate(found):
        weight, bias = (part.detach().clone().requires_grad_() for part in (model.weight, model.bias))
        for loss in losses:
            mean = (100 * (x @ weight.T + bias).square()).mean()
            np.testing.assert_allclose(loss, mean.item(), rtol=1e-5)
            gradients = torch.autograd.grad(mean, (weight, bias))
            size = torch.cat([g.flatten() for g in gradients]).norm().item()
            share = min(1.0, 1.0 / (size + 1e-6)) if clipped else 1.0
            weight, bias = (
                (part - 0.01 * share * g).detach().requires_grad_()
                for part, g in zip((weight, bias), gradients, strict=True)
            )


@pytest.mark.parametrize(
    ("asked", "outcome", "words"),
    [
        ("critical_rate@rate=10", "helped", "the loss of 0 of 3 copies as they are and of 3 of 3 cured ones is finite"),
        ("fresh_weights@rate=0", "did harm", "higher (0 → "),
        ("clip_gradient@rate=0", "no difference", "no difference beyond the spread of the seeds"),
    ],
)
def test_help_harm_and_nothing_are_told(asked: str, outcome: str, words: str) -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    with torch.no_grad():
        for one in model.parameters():
            one.zero_()
    wanted = 1.0 if outcome == "helped" else 0.0  # else the model is at its best already
    made = SimpleNamespace(model=model, width=3, loss=lambda output, batch: (output[..., 0] - wanted).square())
    request = f"trial/cure@cure={asked}@iterations=60@optimizer=sgd"
    made.data = [torch.randn(8, 3) for _ in range(64)]  # of which each seed draws others
    with inspector.run(made, torch.randn(8, 3), only=[request]) as capture:
        (one,) = tried(capture)
    assert one.outcome == outcome and words in one.sentence


def test_seeds_that_do_not_differ_are_one_trial() -> None:
    """One sequence, nothing random: three seeds train the same copies, and agree whatever the cure does."""
    made = line()
    with inspector.run(
        made, torch.randn(8, 3), only=["trial/cure@cure=smaller_rate@iterations=20@rate=0.05"]
    ) as capture:
        losses = capture.array("model:trial/cure/smaller_rate")
        (one,) = tried(capture)
    assert losses.shape[1] == 3 and (losses == losses[:, :1]).all() and losses[0, 0, -1] != losses[1, 0, -1]
    assert one.outcome == "one seed" and math.isnan(one.spread) and "±" not in one.sentence
    assert "nothing differs from seed to seed" in one.sentence and "helped" not in one.sentence
    assert "3 seeds" not in one.sentence, "one trial is not lower in 3 of 3"
    assert "The copies were judged by what they learned from (1 sequence in 1 call), which they may" in one.sentence
    drawn = line(data=[torch.randn(8, 3) for _ in range(64)])
    with inspector.run(
        drawn, torch.randn(8, 3), only=["trial/cure@cure=smaller_rate@iterations=20@rate=0.05"]
    ) as capture:
        (one,) = tried(capture)
    assert one.outcome == "did harm" and one.spread > 0 and "±" in one.sentence


def test_data_that_can_be_read_once_are_refused_in_one_sentence(model: Net) -> None:
    once = iter([[0, 1, 2, 3], [1, 2, 3, 0]])
    with inspector.run(subject(model, data=once), [0, 1, 2, 3], only=["trial/cure@iterations=2@seeds=1"]) as capture:
        (refused,) = [one.reason for one in capture.refusals if "trial/cure" in one.channel]
    assert refused.startswith("The data of Net can be gone through once only (a list_iterator); give ")


def test_the_manual_lists_every_cure_and_what_can_be_tried_for_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    table = page.partition("<!-- what can be tried: begin -->")[2].partition("<!-- what can be tried: end -->")[0]
    for key, rule in RULES.items():
        named = [f"`{name}`" for name, cure in CURES.items() if rule.id in cure.rules]
        assert f"| {key} ({rule.id}) | {', '.join(named) or f'cannot be tried: {untried(key)}'} |" in table
    assert table.count("\n| ") == len(RULES) + 1
    assert all(f"| `{key}` | {cure.summary} |" in page for key, cure in CURES.items())


def test_a_frame_in_which_nothing_was_tried_has_no_verdicts(tmp_path: Path) -> None:
    named: dict[str, Any] = {"name": "model:trial/cure/x", "kind": "cure", "dtype": "float64", "title": "X: loss"}
    parts = (
        ("", ("version", "seed", "iteration"), np.ones((2, 3, 4))),
        ("/after", ("version", "seed"), np.ones((2, 3))),
    )
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        for index in (0, 1):
            writer.write(Frame(index=index))
        for end, dims, values in parts:
            about = {**named, "name": named["name"] + end}
            writer.write(Channel(dims=dims, shape=values.shape, **about))
            writer.write(Page(about["name"], 1, (0,) * values.ndim, values))
        writer.write(RunStop("done"))
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        assert tried(capture, 0) == [] and [one.cure for one in tried(capture)] == ["x"] == [tried(capture, 1)[0].cure]


def test_a_shorter_trial_replaces_a_longer_one_whole(model: Net, tmp_path: Path) -> None:
    """No number of the old one is left, nor counted, in the capture or in what is told."""
    path = tmp_path / "a.inspect"
    inspector.run(subject(model), "abcab", out=path).close()
    for steps, seeds in ((6, 3), (2, 2), (4, 3)):
        (one,) = inspector.try_cure(path, "smaller_rate", steps=steps, seeds=seeds, subject=subject(model)).tried
        alone = inspector.try_cure(subject(model), "smaller_rate", "abcab", steps=steps, seeds=seeds)
        assert one.sentence == alone.tried[0].sentence and one.seeds == seeds and f"After {steps} steps" in one.sentence
        with inspector.open_capture(path) as capture:
            kept = np.asarray(capture.array(one.channel))[:, :seeds, :steps]
            np.testing.assert_array_equal(kept, alone.capture.array(one.channel))
            rest = np.asarray(capture.array(one.channel)).copy()
        rest[:, :seeds, :steps] = np.nan
        assert np.isnan(rest).all()
        alone.capture.close()
