"""Gradients of parameters and thresholds against torch's own clipping functions."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.pipeline import own_run as running
from inspector.records import Labels, Page


class Clipped(Kept):
    """What was written under `parameters:clipping`."""

    def array(self, name: str, frame: int = 0) -> np.ndarray:
        return super().array(f"parameters:clipping/{name}", frame)

    def scalar(self, name: str) -> float:
        return super().scalar(f"parameters:clipping/{name}")

    def names(self) -> set[str]:
        return {name.partition("/")[2] for name in super().names() if "clipping" in name}


class Net(nn.Module):
    """An LSTM, a read-out tied to nothing, a frozen and an unused parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 5, batch_first=True)
        self.head = nn.Linear(5, 2)
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        self.unused = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.rnn(x)[0]) * self.frozen
        return out


def step_loss(out: Tensor, batch: Batch) -> Tensor:
    real = torch.arange(out.shape[1]) < batch.lengths[:, None]
    return torch.where(real, out.square().sum(-1), torch.nan)


def make(checkpoint: str = "", loss: Any = step_loss) -> tuple[Net, Batch, Clipped]:
    torch.manual_seed(0)
    net = Net().double().eval()
    batch = Batch(torch.randn(3, 6, 3, dtype=torch.float64), torch.tensor([6, 4, 1]))
    kept = Clipped()
    subject = Subject(model=net, kind="vectors", width=3, loss=loss, checkpoint=checkpoint)
    perform(subject, batch, kept, RunOptions(only=("clipping",)))
    return net, batch, kept


def mean_gradient(net: Net, batch: Batch) -> dict[str, Tensor]:
    """∂/∂θ of the mean loss, as a training step takes it."""
    loss = step_loss(net(batch.inputs), batch)
    (loss.nansum() / (~loss.isnan()).sum()).backward()
    return {name: p.grad for name, p in net.named_parameters() if p.grad is not None}


def test_norms_are_those_of_the_mean_loss_and_the_models_own_grad_is_untouched() -> None:
    net, batch, kept = make()
    assert all(p.grad is None for p in net.parameters())
    expected = mean_gradient(net, batch)
    assert {"rnn.weight_hh_l0", "head.bias"} < set(expected)
    names = next(r.names for r in kept.records if isinstance(r, Labels) and r.domain == "trained parameter")
    assert list(names) == list(expected)
    for column, gradient in zip(kept.array("norms").T, expected.values(), strict=True):
        n = gradient.numel()
        flat = gradient.flatten()
        shares = [float((flat == 0).sum()) / n, float(((flat.abs() < 2**-24) & (flat != 0)).sum()) / n]
        rms = float(flat.square().mean().sqrt())
        np.testing.assert_allclose(column, [float(flat.norm()), rms, float(flat.abs().max()), *shares, n], rtol=1e-12)
    norm = float(torch.cat([g.flatten() for g in expected.values()]).norm())
    assert kept.scalar("gradient_norm") == pytest.approx(norm, rel=1e-12) and kept.scalar("loss_terms") == 11


def test_thresholds_do_what_torch_does() -> None:
    net, batch, kept = make()
    gradient = torch.cat([g.flatten() for g in mean_gradient(net, batch).values()])
    thresholds, share, after, cosine = kept.array("by_value")
    assert thresholds[-1] == pytest.approx(float(gradient.abs().max())) and share[-1] == 0
    for j in range(0, len(thresholds) - 1, 16):
        for p in net.parameters():
            p.grad = None
        mean_gradient(net, batch)
        nn.utils.clip_grad_value_(net.parameters(), float(thresholds[j]))
        cut = torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None])
        assert share[j] == pytest.approx(float((gradient.abs() > thresholds[j]).double().mean()), abs=1e-12)
        assert after[j] == pytest.approx(float(cut.norm()), rel=1e-9)
        assert cosine[j] == pytest.approx(float((cut * gradient).sum() / cut.norm() / gradient.norm()), rel=1e-9)


def test_gradients_that_the_user_already_has_stay_the_same_tensors() -> None:
    torch.manual_seed(0)
    net = Net().double().eval()
    for p in net.parameters():
        p.grad = torch.full_like(p, 7.0)
    before = [p.grad for p in net.parameters()]
    batch = Batch(torch.randn(1, 6, 3, dtype=torch.float64), torch.tensor([6]))
    perform(
        Subject(model=net, kind="vectors", width=3, loss=step_loss), batch, Clipped(), RunOptions(only=("clipping",))
    )
    for p, own in zip(net.parameters(), before, strict=True):
        assert p.grad is own and bool((own == 7).all())


def test_without_a_loss_nothing_is_written_and_nan_is_nan() -> None:
    _, _, kept = make(loss=None)
    assert not kept.names() and not kept.reasons()
    _, _, kept = make(loss=lambda out, batch: out.square().sum(-1) * torch.inf)
    assert not math.isfinite(kept.scalar("gradient_norm")) and kept.names() == {"norms"}


def test_a_gradient_that_fits_no_memory_or_cannot_be_computed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PARAMETER_BYTES", 100)
    _, _, kept = make()
    assert "GiB" in kept.reasons()[0] and not kept.names()


def test_the_norms_of_training_are_read_from_beside_the_checkpoint(tmp_path: Path) -> None:
    beside = tmp_path / "history.json"
    beside.write_text(json.dumps({"clip": 1.0, "step": [0, 10, 20], "gradient_norm": [3.0, 0.5, math.nan]}))
    _, _, kept = make(str(tmp_path / "step-1.safetensors"))
    np.testing.assert_array_equal(kept.array("history"), [[3.0, 0.5, math.nan]])
    (numbers,) = [page.array for page in kept.of(Page) if page.channel == "parameters:iteration"]
    np.testing.assert_array_equal(numbers, [0, 10, 20])
    assert kept.scalar("used") == 1.0
    for broken in (
        "[1, 2]",
        "{",
        '{"gradient_norm": ["x"]}',
        '{"gradient_norm": [1], "step": [1, 2]}',
        '{"loss": [1]}',
    ):
        beside.write_text(broken)
        _, _, kept = make(str(tmp_path / "step-1.safetensors"))
        assert "history" not in kept.names() and any("history.json" in reason for reason in kept.reasons())
    assert "history" not in make(str(tmp_path / "elsewhere" / "a.pt"))[2].names()
