"""Gradients of earlier steps: against norms taken by hand, and 0 in the loops that set them to zero in their own way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector

STEPS = 16
Loop = Callable[[nn.Module, torch.optim.Optimizer], None]


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def loss_of(model: nn.Module) -> Tensor:
    found: Tensor = model(torch.randn(8, 3)).square().mean()
    return found


def recorded(path: Path) -> list[float]:
    with inspector.open_capture(path) as capture:
        rows = np.ma.filled(np.ma.asarray(capture.array("training:gradient_kept"), np.float64), np.nan)
    return [float(one) for one in rows.ravel()]


def norm_of(model: nn.Module) -> float:
    """Of the gradients that are there."""
    known = [one.grad.double() for one in model.parameters() if one.grad is not None]
    return float(torch.cat([one.flatten() for one in known]).norm()) if known else 0.0


def test_what_is_there_when_a_step_begins_is_recorded(tmp_path: Path) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    expected = []
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1):
        for _ in range(STEPS):
            loss = loss_of(model)
            expected.append(norm_of(model))
            loss.backward()
            optimizer.step()
    assert expected[0] == 0
    assert recorded(tmp_path / "run.inspect") == pytest.approx(expected, rel=1e-5)
    found = inspector.diagnose(tmp_path / "run.inspect").findings
    assert [(one.id, one.severity, one.iterations) for one in found if one.id == "IN128"] == [
        ("IN128", "warning", (2,))
    ]


def by_none(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    loss = loss_of(model)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def by_zeros(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    loss_of(model).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)


def by_data(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for one in model.parameters():
        if one.grad is not None:
            one.grad.data.zero_()  # which counts no version
    loss_of(model).backward()
    optimizer.step()


def accumulated(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for _ in range(6):
        (loss_of(model) / 6).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)


def by_closure(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    def closure() -> float:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss.item()

    optimizer.step(closure)


@pytest.mark.parametrize("loop", [by_none, by_zeros, by_data, accumulated, by_closure])
def test_nothing_is_kept_where_gradients_are_set_to_zero(tmp_path: Path, loop: Loop) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1):
        for _ in range(STEPS):
            loop(model, optimizer)
    assert recorded(tmp_path / "run.inspect") == [0.0] * STEPS


def test_a_step_after_each_pass_and_zeros_after_every_fourth(tmp_path: Path) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1):
        for n in range(STEPS):
            if n % 4 == 0:
                optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
    assert [one > 0 for one in recorded(tmp_path / "run.inspect")] == [n % 4 != 0 for n in range(STEPS)]


@pytest.mark.parametrize("first", ["generator", "discriminator"])
def test_what_a_generators_pass_leaves_in_its_discriminator_is_not_kept(tmp_path: Path, first: str) -> None:
    generator, discriminator = net(), nn.Linear(1, 1)
    own, other = (torch.optim.SGD(one.parameters(), 0.05) for one in (generator, discriminator))
    both = nn.ModuleDict({"generator": generator, "discriminator": discriminator})
    order = [own, other] if first == "generator" else [other, own]
    with inspector.watch(both, order, tmp_path / "run.inspect", every=1):
        for _ in range(STEPS):
            fake = generator(torch.randn(8, 3))
            for _ in range(2):  # the discriminator twice as often
                other.zero_grad()
                (discriminator(fake.detach()) - discriminator(torch.randn(8, 1))).mean().backward()
                other.step()
            own.zero_grad()
            discriminator(fake).mean().backward()
            own.step()
    assert set(recorded(tmp_path / "run.inspect")) == {0.0}


def test_a_loop_without_backward_has_none(tmp_path: Path) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1):
        for _ in range(STEPS):
            for one, gradient in zip(
                model.parameters(), torch.autograd.grad(loss_of(model), list(model.parameters())), strict=True
            ):
                one.grad = gradient
            optimizer.step()
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert "training:gradient_kept" not in capture.channels
