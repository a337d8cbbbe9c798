"""The step of the training's own optimizer against a parabola and against the optimizer itself, and the rule on it."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.capture import Writer, open_capture
from inspector.diagnosis import Diagnosis, diagnose
from inspector.engine.model.subject import Subject
from inspector.records import Channel, Frame, Page, RunStart, RunStop, Scalar
from tests.support.border_series import RISEN, levels, rising
from tests.support.training_series import Floats

X = np.linspace(1, 2, 5)[:, None].astype(np.float32)
A = float((X**2).mean())
"""The loss is A w² / 2."""
WIDTH = 3 ** (1 / 2**5) - 1
"""The relative width of the bracket after five halvings, on a logarithmic scale."""
CHANNEL = "model:trial/learning_rate/own"


class Line(nn.Module):
    """y = w x."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.line.weight, 3.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(x)  # type: ignore[no-any-return]


def numbers(model: nn.Module, optimizer: object) -> tuple[dict[str, float], list[str], list[str]]:
    """(scalars of the trial, why there is none, the ids of rules that found something)."""
    subject = Subject(model=model, kind="vectors", loss=lambda y, _batch: y[..., 0] ** 2 / 2, optimizer=optimizer)
    with inspector.run(subject, X, only=["trial/learning_rate"]) as capture:
        values = {one.name.removeprefix("trial/learning_rate/"): one.value for one in capture.scalars}
        reasons = [one.reason for one in capture.refusals if one.channel == CHANNEL]
        return values, reasons, [f"{one.id} {one.severity}" for one in diagnose(capture, capture.frames).findings]


@pytest.mark.parametrize(
    ("share", "said"), [(0.9, []), (1.2, ["IN207 warning"]), (0.0095, ["IN207 info"]), (0.0105, [])]
)
def test_the_critical_rate_of_a_parabola_on_both_sides(share: float, said: list[str]) -> None:
    model = Line()
    values, _, found = numbers(model, torch.optim.SGD(model.parameters(), share * 2 / A))
    assert values["own"] == pytest.approx(2 / A, rel=WIDTH) and values["rate"] == pytest.approx(share * 2 / A)
    assert found == said


def test_moments_and_decay_are_in_the_step_and_the_optimizer_stays_as_it_is() -> None:
    model = Line()
    optimizer = torch.optim.Adam(model.parameters(), 0.1, weight_decay=0.3)
    for _ in range(5):
        optimizer.zero_grad()
        (A * model.line.weight**2 / 2).sum().backward()
        optimizer.step()
    model.line.weight.data.fill_(0.05)  # the moments lead beyond the minimum
    before = copy.deepcopy(optimizer.state_dict())
    values, _, _ = numbers(model, optimizer)
    twin, stepper = copy.deepcopy((model, optimizer))
    stepper.zero_grad()
    (A * twin.line.weight**2 / 2).sum().backward()
    stepper.step()
    moved = 0.05 - float(twin.line.weight.detach())
    assert values["own"] == pytest.approx(0.1 * 2 * 0.05 / moved, rel=WIDTH)  # twice the way to the minimum
    after = optimizer.state_dict()
    assert before["param_groups"] == after["param_groups"] and float(model.line.weight.detach()) == pytest.approx(0.05)
    assert all(torch.equal(before["state"][0][key], after["state"][0][key]) for key in before["state"][0])


def test_what_cannot_be_stepped_is_refused_with_the_reason() -> None:
    model, other = Line(), nn.Linear(1, 1)
    for optimizer, reason in (
        ("adam", "The subject's optimizer is str; expected a torch.optim.Optimizer, or several."),
        (torch.optim.SGD(other.parameters(), 1.0), "No optimizer that was given has a parameter of the model."),
        (torch.optim.SGD(model.parameters(), 0.0), "The learning rate of the training's optimizer is 0"),
        (torch.optim.LBFGS(model.parameters()), "LBFGS could not make a step in a copy: TypeError"),
    ):
        values, reasons, found = numbers(model, optimizer)
        assert reasons and reasons[0].startswith(reason) and "own" not in values and not found
        assert math.isfinite(values["sgd"])


def judged(
    path: Path, steps: list[tuple[float, float]], loss: list[float] | None = None, stop: bool = True
) -> Diagnosis:
    """What the rules find in frames with these (rate, critical rate), beside a loss."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        about = Channel(
            name=CHANNEL, kind="trial", dims=("statistic", "point"), shape=(2, 1), dtype="float64", title="t"
        )
        writer.write(about)
        for n, (rate, critical) in enumerate(steps):
            writer.write(Frame(index=n, label=str(n), step=n))
            writer.write(Page(CHANNEL, n, (0, 0), np.ones((2, 1))))
            writer.write(Scalar("trial/learning_rate/rate", n, rate))
            writer.write(Scalar("trial/learning_rate/own", n, critical))
        if loss is not None:
            one = Channel(
                name="training:loss", kind="series", dims=("iteration",), shape=(None,), dtype="float64", title="loss"
            )
            writer.write(one)
            writer.write(Page("training:loss", 0, (0,), np.array(loss)))
        if stop:
            writer.write(RunStop("done"))
    with open_capture(path) as capture:
        return diagnose(capture, capture.frames)


FALLS, RISES = list(np.linspace(2, 0.1, 200)), [2.0, *np.linspace(40, 60, 199)]


def jump_down(to: float) -> Floats:
    """A loss that begins at 1, and ends a little below."""
    return levels(*[1.0] * 10, *[to] * 10)


OK, LONG, SHORT = (1.0, 3.0), (1.0, 0.5), (1.0, 200.0)


@pytest.mark.parametrize(
    ("steps", "loss", "said"),
    [([LONG], None, "warning"), ([OK], None, ""), ([OK, LONG, LONG], RISES, "warning"), ([OK, LONG, LONG], FALLS, "info"),
     ([OK, LONG], RISES, ""), ([LONG, OK, OK], RISES, "warning"), ([SHORT] * 3, FALLS, "info"), ([SHORT, OK], FALLS, ""),
     ([(1.0, math.nan)], None, "warning"), ([(1.0, math.inf)], None, ""), ([(math.nan, 1.0)], None, ""),
     ([LONG], RISES[:5], "warning"), ([OK, OK, LONG, LONG, LONG], RISES, "warning"), ([OK, LONG] * 2, RISES, ""),
     ([LONG], list(jump_down(0.981)), "warning"), ([LONG], list(jump_down(0.979)), "info"),
     ([LONG], list(rising(RISEN)), "warning"), ([LONG], list(rising(RISEN + 1)), "info")],
)  # fmt: skip
def test_the_rule(tmp_path: Path, steps: list[tuple[float, float]], loss: list[float] | None, said: str) -> None:
    found = [
        one for one in judged(tmp_path / "a.inspect", steps, loss, stop=loss is None).findings if one.id == "IN207"
    ]
    assert [one.severity for one in found] == ([said] if said else [])
    for one in found:
        assert one.remedy and one.sure and one.unless and one.evidence[0] == CHANNEL


def test_a_watched_training_probes_the_step_of_its_own_optimizer(tmp_path: Path) -> None:
    model = Line()
    optimizer = torch.optim.SGD(model.parameters(), 3 / A)  # beyond the critical 2 / A: every step raises the loss
    x, subject = torch.tensor(X), Subject(model=model, kind="vectors", loss=lambda y, _batch: y[..., 0] ** 2 / 2)
    with inspector.watch(
        model, optimizer, tmp_path / "w.inspect", every=1, probe=x[None], probe_subject=subject, probe_every=2,
        quantities=["trial/learning_rate"],
    ):  # fmt: skip
        for _ in range(4):
            optimizer.zero_grad()
            (model(x) ** 2 / 2).mean().backward()
            optimizer.step()
    with open_capture(tmp_path / "w.inspect") as capture:
        values = [one.value for one in capture.scalars if one.name == "trial/learning_rate/own"]
        (finding,) = [one for one in diagnose(capture, capture.frames).findings if one.id == "IN207"]
    assert values == pytest.approx([2 / A] * 3, rel=WIDTH)
    assert "3 of 3 steps that were tried are too long" in finding.message and finding.severity == "warning"


@pytest.mark.parametrize(
    ("settings", "grows"),
    [
        ({"momentum": 0.9}, 10.0),
        ({"momentum": 0.9, "dampening": 0.5}, 5.0),
        ({"momentum": 0.9, "nesterov": True}, 10 / 1.9),
        ({}, 1.0),
    ],
)
def test_the_code_of_the_remedy_counts_what_momentum_adds(settings: dict[str, float], grows: float) -> None:
    model = Line()
    optimizer = torch.optim.SGD(model.parameters(), 2.4 / A, **settings)  # type: ignore[arg-type]
    weight = nn.Parameter(torch.zeros(1))
    other = torch.optim.SGD([weight], 1.0, **settings)  # type: ignore[arg-type]
    lengths = []
    for _ in range(300):  # a gradient that stays as it is
        weight.grad, before = torch.ones(1), weight.item()
        other.step()
        lengths.append(before - weight.item())
    assert lengths[-1] / lengths[0] == pytest.approx(grows, rel=1e-3)
    subject = Subject(model=model, kind="vectors", loss=lambda y, _batch: y[..., 0] ** 2 / 2, optimizer=optimizer)
    with inspector.run(subject, X, only=["trial/learning_rate"]) as capture:
        values = {one.name.removeprefix("trial/learning_rate/"): one.value for one in capture.scalars}
        (found,) = diagnose(capture, capture.frames).findings
    assert values["grows"] == pytest.approx(grows)
    rate = float(found.code.rpartition("= ")[2])
    assert rate == pytest.approx(values["own"] / 3 / grows, rel=0.05)
    assert ("1/" in found.remedy) == (grows > 1)
