"""Optimizers that a loop makes while it is watched, without a call of the watcher's."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, Optimizer

import inspector
from inspector.capture import Capture
from inspector.engine.watch.optimizers.new_optimizers import FOREIGN, MOST_SAID


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))


def step(one: nn.Module, optimizer: Any) -> float:
    """One iteration; the norm of the gradients that the optimizer gets."""
    optimizer.zero_grad()
    one(torch.randn(8, 4)).square().mean().backward()
    given = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    norm = float(torch.stack([g.square().sum() for g in given]).sum().sqrt())
    optimizer.step()
    return norm


def table(capture: Capture, name: str) -> dict[str, Any]:
    channel = capture.channels[name]
    names = capture.labels(channel.domain(channel.dims[1]))
    return {names[n]: values for n, values in enumerate(capture.array(name).T)}


def watched(path: Path, loop: Callable[[nn.Sequential, Any], None], given: bool = True) -> Capture:
    one = model()
    first = Adam(one.parameters(), 0.01)
    with inspector.watch(one, first if given else None, path / "run.inspect", every=1) as watcher:
        loop(one, first)
        assert watcher.error is None
    found = inspector.open_capture(path / "run.inspect")
    assert isinstance(found, Capture)
    return found


@pytest.mark.parametrize("given", [True, False])
def test_a_second_phase_goes_on_in_the_same_series(given: bool, tmp_path: Path) -> None:
    norms: list[float] = []

    def loop(one: nn.Sequential, first: Any) -> None:
        norms.extend(step(one, first) for _ in range(3))
        second = SGD(one.parameters(), 0.5)
        norms.extend(step(one, second) for _ in range(4))
        norms.append(step(one, first))  # back again

    with watched(tmp_path, loop, given) as capture:
        assert capture.array("training:iteration").tolist() == list(range(1, 9))
        assert capture.array("training:gradient_norm")[:, 0] == pytest.approx(norms, rel=1e-5)
        assert table(capture, "training:optimizer")["group 0: lr"].tolist() == pytest.approx(
            [0.01] * 3 + [0.5] * 4 + [0.01]
        )
        moved = table(capture, "parameters:update/norm")["0.weight"]
        assert np.isfinite(moved).tolist() == [True] * 3 + [False] + [True] * 4  # the first step of the new one
        assert [log.text for log in capture.logs if "made later" in log.text] == [
            "An optimizer that was made later (SGD) is followed from here on."
        ]


def test_an_optimizer_of_another_part_of_the_model_is_followed_beside_the_first(tmp_path: Path) -> None:
    """As of a generator and a discriminator in one module."""
    one = model()
    generator = SGD(one[0].parameters(), 0.1)
    with inspector.watch(one, generator, tmp_path / "run.inspect", every=1) as watcher:
        for n in range(4):
            if n == 1:
                discriminator = SGD(one[2].parameters(), 0.2)
            if n:
                one(torch.randn(8, 4)).square().mean().backward()
                discriminator.step()
            step(one, generator)
        assert watcher.error is None and watcher.iteration == 4
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert isinstance(capture, Capture)
        moved = table(capture, "parameters:update/norm")
        assert (
            np.isfinite(moved["0.weight"]).all() and np.isfinite(moved["2.weight"]).tolist() == [False] * 2 + [True] * 2
        )
        assert table(capture, "training:optimizer")["optimizer 1 group 0: lr"][-1] == pytest.approx(0.2)


@pytest.mark.parametrize("critics", [1, 3])
def test_gradients_that_another_pass_adds_after_the_step_are_no_clipping(tmp_path: Path, critics: int) -> None:
    """The generator's pass adds to the gradients of the discriminator, which has made its step (of its last pass)."""
    torch.manual_seed(0)
    both = nn.ModuleDict({"g": nn.Linear(3, 4), "d": nn.Linear(4, 1)})
    optimizers = [SGD(both["g"].parameters(), 0.1), SGD(both["d"].parameters(), 0.1)]
    wanted = []
    with inspector.watch(both, optimizers, tmp_path / "run.inspect", every=1):
        for _ in range(5):
            for _ in range(critics):
                optimizers[1].zero_grad()
                both["d"](both["g"](torch.randn(8, 3)).detach()).square().mean().backward()
                own = [float(one.grad.norm()) for one in both["d"].parameters() if one.grad is not None]
                optimizers[1].step()
            optimizers[0].zero_grad()
            both["d"](both["g"](torch.randn(8, 3))).mean().backward()
            wanted.append([*(float(one.grad.norm()) for one in both["g"].parameters() if one.grad is not None), *own])
            optimizers[0].step()
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert isinstance(capture, Capture)
        np.testing.assert_allclose(capture.array("parameters:gradient/norm"), wanted, rtol=1e-5)
        np.testing.assert_allclose(capture.array("parameters:gradient/norm_clipped"), wanted, rtol=1e-5)
        assert not capture.array("parameters:gradient/non_finite").any()
    assert not [one for one in inspector.diagnose(tmp_path / "run.inspect").findings if one.rule == "clipping-always"]


class Wrapper(Optimizer):
    """Calls another optimizer in its step, as Lookahead does."""

    def __init__(self, inner: Optimizer) -> None:
        super().__init__([p for group in inner.param_groups for p in group["params"]], {"lr": 1.0})
        self.inner = inner

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        self.inner.step()


@pytest.mark.parametrize("outer", [True, False])
def test_a_step_inside_a_step_counts_once(outer: bool, tmp_path: Path) -> None:
    """The one that was given is followed, the wrapper or what it wraps."""
    one = model()
    inner = Adam(one.parameters(), 0.01)
    wrapper = Wrapper(inner)
    with inspector.watch(one, wrapper if outer else inner, tmp_path / "run.inspect", every=1) as watcher:
        for _ in range(5):
            step(one, wrapper)
        assert watcher.error is None and watcher.iteration == 5
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert isinstance(capture, Capture)
        assert np.isfinite(table(capture, "parameters:update/norm")["0.weight"]).all() and not capture.logs


def test_a_model_that_is_made_anew_is_said_and_the_optimizers_of_others_are_not(tmp_path: Path) -> None:
    def loop(one: nn.Sequential, first: Any) -> None:
        beside = model()
        other = SGD(beside.parameters(), 0.1)
        for _ in range(3):
            step(one, first)
            for _ in range(5):
                step(beside, other)
        for _ in range(FOREIGN + 10):
            step(beside, other)

    with watched(tmp_path, loop) as capture:
        (log,) = capture.logs
        assert f"last {FOREIGN} steps were of an optimizer (SGD)" in log.text and capture.extent("training:loss") == (
            3,
        )


@pytest.mark.parametrize("given", [True, False])
def test_parameters_that_take_the_place_of_all_others_are_of_the_same_model(given: bool, tmp_path: Path) -> None:
    losses: list[float] = []

    def loop(one: nn.Sequential, first: Any) -> None:
        for _ in range(3):
            step(one, first)
        one.load_state_dict({name: value.clone() for name, value in one.state_dict().items()}, assign=True)
        second = SGD(one.parameters(), 0.5)
        losses.extend(step(one, second) for _ in range(4))

    with watched(tmp_path, loop, given) as capture:
        assert capture.array("training:iteration").tolist() == list(range(1, 8))
        assert capture.array("training:gradient_norm")[-3:, 0] == pytest.approx(losses[-3:], rel=1e-5)
        moved = table(capture, "parameters:update/norm")["0.weight (2)"]
        assert np.isfinite(moved[-3:]).all()
        said = [log.text for log in capture.logs]
        assert any("Parameters are new from iteration" in text for text in said)
        assert not any("no parameter of" in text for text in said)


def test_one_for_each_epoch_is_not_kept_in_memory(tmp_path: Path) -> None:
    gone: list[weakref.ref[Any]] = []

    def loop(one: nn.Sequential, first: Any) -> None:
        for _ in range(30):
            own = Adam(one.parameters(), 0.01)
            step(one, own)
            step(one, own)
            gone.append(weakref.ref(own))

    with watched(tmp_path, loop) as capture:
        assert capture.extent("training:loss") == (60,)
        assert sum("made later" in log.text for log in capture.logs) == MOST_SAID
    gc.collect()
    assert sum(one() is not None for one in gone) <= 1


def test_parameters_that_came_since_are_said(tmp_path: Path) -> None:
    def loop(one: nn.Sequential, first: Any) -> None:
        step(one, first)
        one.append(nn.Linear(1, 1))
        first.add_param_group({"params": list(one[3].parameters())})
        step(one, first)

    with watched(tmp_path, loop) as capture:
        (log,) = capture.logs
        assert log.text == "Parameters are new from iteration 2 on: 3.weight, 3.bias."
