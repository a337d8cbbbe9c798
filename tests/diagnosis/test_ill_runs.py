"""Models that are made ill, and their healthy twins, from the run to the finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.capture import open_capture
from inspector.diagnosis import diagnose

STEPS, UNITS = 40, 6


def rnn(kind: type[nn.RNNBase], fault: Callable[[nn.RNNBase], None], **options: str) -> nn.Module:
    """One layer, at the same random weights before the fault."""
    torch.manual_seed(0)
    module = kind(3, UNITS, batch_first=True, **options)  # type: ignore[arg-type]
    with torch.no_grad():
        fault(module)
    return module


def healthy(module: nn.RNNBase) -> None:
    """Nothing is changed."""


def input_shut(module: nn.RNNBase) -> None:
    module.bias_ih_l0[:UNITS] = -20.0


def update_kept(module: nn.RNNBase) -> None:
    module.bias_ih_l0[UNITS : 2 * UNITS] = 20.0


def never_on(module: nn.RNNBase) -> None:
    module.bias_ih_l0[:] = -50.0


def same_rows(module: nn.RNNBase) -> None:
    for weight in module.parameters():
        weight[:] = weight[:1].expand_as(weight) if weight.dim() == 1 else weight.mean()


class Attends(nn.Module):
    """Self-attention of two heads; a mask is added to the scores."""

    def __init__(self, forbids: float, *, itself: bool, scale: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.forbids, self.itself = forbids, itself
        with torch.no_grad():
            self.attention.in_proj_weight *= scale

    def forward(self, x: Tensor) -> Tensor:
        t = x.shape[1]
        mask = torch.zeros(t, t).masked_fill(torch.ones(t, t).triu(1 if self.itself else 0) > 0, self.forbids)
        out: Tensor = self.attention(x, x, x, attn_mask=mask, need_weights=True)[0]
        return out


ILL = {
    "input shut": (rnn(nn.LSTM, input_shut), {"nothing-written"}),
    "update kept": (rnn(nn.GRU, update_kept), {"nothing-written", "dead-units"}),
    "never on": (rnn(nn.RNN, never_on, nonlinearity="relu"), {"dead-units"}),
    "same rows": (rnn(nn.RNN, same_rows), {"duplicate-units"}),
    "row without a key": (Attends(-torch.inf, itself=False), {"rows-without-keys", "nonfinite"}),
    "finite mask, large scores": (Attends(-1e4, itself=True, scale=100.0), {"mask-leaks"}),
    "LSTM": (rnn(nn.LSTM, healthy), set()),
    "GRU": (rnn(nn.GRU, healthy), set()),
    "ReLU": (rnn(nn.RNN, healthy, nonlinearity="relu"), set()),
    "tanh": (rnn(nn.RNN, healthy), set()),
    "attention": (Attends(-torch.inf, itself=True), set()),
    "attention, finite mask": (Attends(-1e4, itself=True), set()),
}


@pytest.mark.parametrize("name", ILL)
def test_what_is_ill_is_named_and_its_healthy_twin_is_left_alone(tmp_path: Path, name: str) -> None:
    model, expected = ILL[name]
    x = torch.randn(STEPS, 4 if isinstance(model, Attends) else 3, generator=torch.Generator().manual_seed(1))
    only = ["gates", "states", "saturation", "timescale", "units", "memory", "health", "attention/maps"]
    only += ["attention/entropy_normalised", "attention/mask_margin"]
    inspector.run(model, x, out=tmp_path / "a.inspect", only=only).close()
    with open_capture(tmp_path / "a.inspect") as capture:
        found = diagnose(capture, capture.frames)
    assert {one.rule for one in found.findings if one.severity != "info"} == expected and not found.broken


def test_a_share_of_dead_units_is_a_warning_over_many_sequences_and_not_over_one(tmp_path: Path) -> None:
    def four(module: nn.RNNBase) -> None:
        module.bias_ih_l0[:4] = -50.0

    model, data = rnn(nn.RNN, four, nonlinearity="relu"), [torch.randn(STEPS, 3) for _ in range(8)]
    inspector.run(model, data[0], out=tmp_path / "one.inspect", only=["units"]).close()
    inspector.run(model, data=data, out=tmp_path / "many.inspect").close()
    said = []
    for name in ("one", "many"):
        with open_capture(tmp_path / f"{name}.inspect") as capture:
            said += [one for one in diagnose(capture, capture.frames).findings if one.rule == "dead-units"]
    assert [(one.severity, one.sure.partition(" of ")[2]) for one in said] == [
        ("info", "one sequence; this run saw only one"), ("warning", "8 sequences"),
    ]  # fmt: skip
    assert all(one.message == "4 of 6 units (66.7 %) are 0 at every step: 0, 1, 2, 3" for one in said)
