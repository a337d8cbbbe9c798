"""Copies of a model are trained by the optimizer of its training: its kind, groups, settings, moments and clipping."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

import inspector
from inspector.capture import Capture, CaptureError
from inspector.diagnosis.own_training import recorded_training
from inspector.engine.analyses.trial.loop_of_training import loop_of
from inspector.engine.analyses.trial.trial_training import Copy, Loop
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES


class Net(nn.Module):
    def __init__(self, width: int = 6, kind: type[nn.Module] = nn.GRU) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn = nn.Embedding(5, 4), kind(4, width, batch_first=True)
        self.out = nn.Linear(width, 5)

    def forward(self, ids: Tensor) -> Tensor:
        found: Tensor = self.out(self.rnn(self.embed(ids))[0])
        return found


def losses(output: Tensor, batch: Any) -> Tensor:
    return nn.functional.cross_entropy(output.transpose(1, 2), batch.inputs, reduction="none")


def subject(model: nn.Module, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(model=model, vocabulary="abcde", loss=losses, examples={"a": "abcabc"}, **more)


def trial_of(model: nn.Module, optimizer: Any = None) -> Any:
    named = dict(model.named_parameters())
    return SimpleNamespace(
        names=list(named), parameters=list(named.values()),
        subject=SimpleNamespace(model=model, training=None, optimizer=optimizer),
    )  # fmt: skip


def stepped(model: nn.Module, optimizer: Optimizer, times: int) -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(times):
        for one in model.parameters():
            one.grad = torch.randn(one.shape, generator=generator)
        optimizer.step()


OPTIMIZERS = {
    "momentum": lambda m: SGD(m.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "groups": lambda m: AdamW(
        [
            {"params": m.embed.parameters(), "lr": 1e-3, "weight_decay": 0.0},
            {"params": [*m.rnn.parameters(), *m.out.parameters()]},
        ],
        lr=5e-3,
        betas=(0.8, 0.95),
    ),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_copies_go_on_as_the_training_would(kind: str) -> None:
    """With the moments that were built up, step for step; the optimizer that was given stays as it was."""
    model = Net()
    optimizer = OPTIMIZERS[kind](model)
    stepped(model, optimizer, 3)
    state = copy.deepcopy(optimizer.state_dict())
    loop = loop_of(trial_of(model, optimizer), "own", None, None, "")
    held = Copy(trial_of(model), loop)
    generator, stepper = torch.Generator().manual_seed(2), held.stepper()
    truth = copy.deepcopy((model, optimizer))
    for _ in range(3):
        for own, other in zip(truth[0].parameters(), held.held.values(), strict=True):
            own.grad = torch.randn(own.shape, generator=generator)
            other.grad = own.grad.clone()
        truth[1].step()
        stepper.step()
    for own, other in zip(truth[0].parameters(), held.held.values(), strict=True):
        torch.testing.assert_close(own, other)
    assert "moments as they are" in loop.words and type(optimizer).__name__ in loop.words
    after = optimizer.state_dict()
    assert str(after["param_groups"]) == str(state["param_groups"])
    for number, kept in state["state"].items():
        assert all(
            torch.equal(torch.as_tensor(kept[key]), torch.as_tensor(after["state"][number][key])) for key in kept
        )


def test_cures_change_the_own_optimizer_alone_where_they_say() -> None:
    model = Net()
    held = Copy(trial_of(model), loop_of(trial_of(model, OPTIMIZERS["groups"](model)), "own", None, None, ""))
    for key in ("smaller_rate", "second_moment", "decay_apart"):
        CURES[key].apply(held)
    groups = held.stepper().param_groups
    assert {round(group["lr"], 9) for group in groups} == {1e-4, 5e-4}
    assert {group["betas"] for group in groups} == {(0.8, 0.95)}
    decayed = {id(one) for group in groups if group["weight_decay"] for one in group["params"]}
    assert decayed == {id(one) for name, one in held.held.items() if one.dim() > 1 and "embed" not in name}
    plain = Copy(trial_of(model), loop_of(trial_of(model, SGD(model.parameters(), 0.1)), "own", None, None, ""))
    with pytest.raises(Unsupported, match="SGD has no second moment"):
        CURES["second_moment"].apply(plain)


def test_parameters_that_the_optimizer_lacks_stay_until_they_are_cured() -> None:
    model = Net()
    trial = trial_of(model, SGD([*model.rnn.parameters(), *model.out.parameters()], 0.1))
    held = Copy(trial, loop_of(trial, "own", None, None, ""))
    missing = held.held["embed.weight"]
    assert not any(one is missing for group in held.stepper().param_groups for one in group["params"])
    held.loop.everything = True
    assert any(one is missing for group in held.stepper().param_groups for one in group["params"])


class Signs(Optimizer):
    """Not one of torch's."""

    def __init__(self, params: Any, lr: float = 0.1) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for one in group["params"]:
                if one.grad is not None:
                    one -= group["lr"] * one.grad.sign()


def watched(path: Path, make: Any, model: nn.Module | None = None, clip: float = 0.0) -> str:
    model = model or Net()
    optimizer = make(model)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.2, 1.0, 4)
    with inspector.watch(model, optimizer, path, every=1):
        for _ in range(9):
            optimizer.zero_grad()
            losses(
                model(torch.randint(0, 5, (4, 6))), SimpleNamespace(inputs=torch.randint(0, 5, (4, 6)))
            ).mean().backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            schedule.step()
    with inspector.open_capture(path) as capture:
        assert isinstance(capture, Capture)
        return recorded_training(capture)


def test_what_a_capture_knows_is_taken_over(tmp_path: Path) -> None:
    model = Net()
    told = watched(tmp_path / "a.inspect", OPTIMIZERS["groups"], clip=0.05)
    assert "@" not in told and "," not in told
    loop = loop_of(trial_of(model), "own", None, None, told)
    assert loop.own is not None and loop.own.kind is AdamW and loop.clip == pytest.approx(0.05, rel=0.01)
    # rates 0.2, 0.4, 0.6, 0.8, 1, 1 … of the last: their median
    assert [group.settings["lr"] for group in loop.own.groups] == pytest.approx([1e-3, 5e-3])
    assert loop.betas == (0.8, 0.95) and loop.decay == 0.01 and loop.rate == pytest.approx(5e-3)
    assert "AdamW of the training, at the middle one of its rates (betas 0.8 and 0.95, 2 groups" in loop.words
    free = loop_of(trial_of(model), "own", None, None, watched(tmp_path / "b.inspect", OPTIMIZERS["momentum"]))
    assert free.clip == float("inf") and free.own is not None and free.own.groups[0].settings["momentum"] == 0.9
    asked = loop_of(trial_of(model), "own", 0.5, None, told)
    held = Copy(trial_of(model), asked)
    assert [group["lr"] for group in held.stepper().param_groups] == pytest.approx([0.1, 0.5])
    assert loop_of(trial_of(model), "sgd", 0.5, None, told).own is None


def test_another_optimizer_is_told_with_the_reason(tmp_path: Path) -> None:
    model = Net()
    told = watched(tmp_path / "a.inspect", lambda m: Signs(m.parameters()))
    found = loop_of(trial_of(model), "own", None, None, told)
    assert found.own is None and "adam (in the place of the training's own: Signs is none of torch's" in found.words
    own = loop_of(trial_of(model, Signs(model.parameters())), "own", None, None, "")
    assert own.own is not None and own.words.startswith("Signs of the subject")
    assert loop_of(trial_of(model), "own", None, None, "") == Loop()
    two = [SGD(model.rnn.parameters(), 0.1), AdamW(model.out.parameters())]
    assert "SGD, AdamW are not put together" in loop_of(trial_of(model, two), "own", None, None, "").words
    for broken in ("{", "[]"):
        with pytest.raises(Unsupported, match="no JSON object"):
            loop_of(trial_of(model), "own", None, None, broken)
    assert (
        "is damaged"
        in loop_of(trial_of(model), "own", None, None, '{"optimizers": [{"class": "torch.optim.SGD"}]}').note
    )


def test_a_trial_of_a_watched_training_is_by_its_optimizer_and_of_its_model_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    watched(path, OPTIMIZERS["momentum"])
    (one,) = inspector.try_cure(path, "smaller_rate", steps=2, seeds=1, subject=subject(Net())).tried
    assert one.method.startswith(
        "SGD of the training, at the middle one of its rates (momentum 0.9, nesterov on, moments"
    )
    for other, said in (
        (Net(kind=nn.RNN), "'rnn' is GRU of 216 own parameters in the capture, and RNN of 72 own"),
        (Net(7), "'rnn' is GRU of 216 own parameters in the capture, and GRU of 273"),
    ):
        with pytest.raises(CaptureError, match=said):
            inspector.try_cure(path, "smaller_rate", steps=1, seeds=1, subject=subject(other))
    turned = Net()
    turned.embed = nn.Embedding(4, 5)  # as many parameters
    turned.forward = lambda ids: turned.out(turned.rnn(turned.embed(ids % 4)[..., :4])[0])  # type: ignore[method-assign]
    with pytest.raises(CaptureError, match="other names or shapes"):
        inspector.try_cure(path, "smaller_rate", steps=1, seeds=1, subject=subject(turned))
