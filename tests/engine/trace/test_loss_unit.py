"""A loss is in nats only where it is a log-likelihood; everything derived from it has its unit."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from every_quantity import every_quantity
from kept import Kept
from models import OnlyOutput
from torch import Tensor, nn
from torch.nn import functional as F

from inspector.engine.model.subject import Batch, Subject, adopt
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.trace.loss_unit import loss_unit
from inspector.records import Channel

TARGET = torch.tensor([[0, 2, 1, 3, 1]])
Loss = Callable[[Tensor], Tensor]


def own(out: Tensor) -> Tensor:
    return F.cross_entropy(out.transpose(1, 2), TARGET.expand(len(out), 5), reduction="none")


LIKELIHOODS: dict[str, Loss] = {
    "cross entropy": own,
    "label smoothing": lambda out: F.cross_entropy(out.mT, TARGET, reduction="none", label_smoothing=0.1),
    "padded": lambda out: F.pad(own(out[:, :-1].repeat(1, 2, 1)[:, :5])[:, :-1], (0, 1), value=torch.nan),
    "masked": lambda out: own(out) * torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0]),
    "mean": lambda out: own(out).mean(),
    "weighted": lambda out: own(out).sum() / 4,
    "nll": lambda out: F.nll_loss(out.log_softmax(-1)[0], TARGET[0]),
    "by hand": lambda out: -out.log_softmax(-1).gather(-1, TARGET[..., None])[..., 0],
    "log of softmax": lambda out: -out.softmax(-1).gather(-1, TARGET[..., None]).clamp_min(1e-9).log()[..., 0],
    "binary": lambda out: F.binary_cross_entropy_with_logits(out, torch.ones_like(out), reduction="none").sum(-1),
    "binary of sigmoid": lambda out: F.binary_cross_entropy(out.sigmoid(), torch.ones_like(out)),
    "ctc": lambda out: F.ctc_loss(out.log_softmax(-1).transpose(0, 1), TARGET[:, 1:3], (5,), (2,)),
    "step by step": lambda out: torch.stack([F.cross_entropy(out[:, t], TARGET[:, t]) for t in range(5)])[None],
    "where": lambda out: torch.where(TARGET > 0, own(out), torch.tensor(torch.nan)),
    "in place": lambda out: torch.zeros(1, 5).index_put((torch.tensor([0]), torch.tensor([2])), own(out)[0, 2]),
}
OTHERS: dict[str, Loss] = {
    "squared": lambda out: ((out - 1) ** 2).mean(-1),
    "mse": lambda out: F.mse_loss(out, torch.ones_like(out), reduction="none").mean(-1),
    "mse of log-probabilities": lambda out: F.mse_loss(out.log_softmax(-1), torch.ones_like(out)),
    "huber": lambda out: F.smooth_l1_loss(out, torch.ones_like(out)),
    "hinge": lambda out: (1 - out).relu().mean(-1),
    "log cosh": lambda out: out.cosh().log().mean(-1),
    "log error": lambda out: ((1 + out.abs()).log() - 1).square().mean(-1),
    "cross entropy and a penalty": lambda out: own(out) + 0.1 * out.square().mean(-1),
    "the output": lambda out: out.mean(-1),
    "bits": lambda out: own(out) / math.log(2),
    "bits by a product": lambda out: own(out) * (1 / math.log(2)),
    "likelihood weighted by the model": lambda out: own(out) * out[..., 0].sigmoid(),
    "perplexity": lambda out: own(out).mean().exp(),
}


@pytest.mark.parametrize("name", [*LIKELIHOODS, *OTHERS])
def test_the_graph_shows_whether_a_loss_is_in_nats(name: str) -> None:
    out = 0.5 * nn.Parameter(torch.randn(1, 5, 4))
    loss = {**LIKELIHOODS, **OTHERS}[name](out)
    assert loss_unit(loss) == ("nat" if name in LIKELIHOODS else "1")
    assert loss_unit(loss, "bit") == "bit", "what a subject declares counts"


def test_a_loss_without_a_gradient_has_no_known_unit() -> None:
    assert loss_unit(own(torch.randn(1, 5, 4))) == "1"


@pytest.mark.parametrize(("declared", "squared"), [("", True), ("", False), ("m²", True)])
def test_what_is_derived_from_the_loss_has_its_unit(declared: str, squared: bool) -> None:
    torch.manual_seed(0)
    model = OnlyOutput(nn.LSTM(3, 4, batch_first=True)).eval()
    chosen = OTHERS["squared"] if squared else own
    subject = adopt(
        Subject(model=model, loss=lambda out, _batch: chosen(out), loss_unit=declared, kind="vectors", width=3)
    )
    kept = Kept()
    batch = Batch(torch.randn(1, 5, 3), torch.tensor([5]))
    perform(subject, batch, kept, RunOptions(only=every_quantity()))
    units = {channel.name.rpartition(":")[2]: channel.unit for channel in kept.of(Channel)}
    expected = declared or ("1" if squared else "nat")
    of_loss = ["loss", "gradient/state_norm", "gradient/lag_map", "influence/loss", "gradient/lag", "gradient/h"]
    of_loss += ["parameter/gradient", "clipping/norms", *(name for name in units if name.startswith("bptt/"))]
    assert len(of_loss) > 9
    assert {name: units[name] for name in of_loss} == dict.fromkeys(of_loss, expected)
    assert "loss" not in units.values() and units["lyapunov/exponents"] == "nat/step"
