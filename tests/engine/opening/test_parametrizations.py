"""Checkpoints of parametrised models in plain ones: the folded weights are those that the model computed with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from inspector.engine.opening.checkpoint_matching import fit
from inspector.engine.opening.read_checkpoint import read_checkpoint


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.rnn(x)[0])
        return out


def new_weight_norm(model: Model) -> None:
    nn.utils.parametrizations.weight_norm(model.rnn, "weight_hh_l0")
    nn.utils.parametrizations.weight_norm(model.head, "weight", dim=None)


def old_weight_norm(model: Model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn.utils.weight_norm(model.rnn, "weight_hh_l0")
        nn.utils.weight_norm(model.head, "weight", dim=1)


def new_spectral_norm(model: Model) -> None:
    nn.utils.parametrizations.spectral_norm(model.head, "weight")


def old_spectral_norm(model: Model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn.utils.spectral_norm(model.head, "weight")


WAYS = [new_weight_norm, old_weight_norm, new_spectral_norm, old_spectral_norm]


@pytest.mark.parametrize("parametrise", WAYS)
def test_folded_weights_compute_the_same(tmp_path: Path, parametrise: Callable[[Model], None]) -> None:
    torch.manual_seed(0)
    theirs, x = Model(), torch.randn(5, 2, 3)
    parametrise(theirs)
    for parameter in theirs.parameters():
        parameter.data.mul_(1.3)
    expected = theirs.eval()(x)
    torch.save(theirs.state_dict(), tmp_path / "theirs.pt")
    ours = Model().eval()
    report, plan = fit(ours, read_checkpoint(tmp_path / "theirs.pt"), tmp_path / "theirs.pt")
    assert report.fits and "parametrised weights folded" in report.layout
    plan.apply(ours)
    torch.testing.assert_close(ours(x), expected)


def test_a_parametrised_model_takes_its_own_checkpoint_as_it_is(tmp_path: Path) -> None:
    theirs, ours = Model(), Model()
    new_weight_norm(theirs)
    new_weight_norm(ours)
    torch.save(theirs.state_dict(), tmp_path / "theirs.pt")
    report, plan = fit(ours, read_checkpoint(tmp_path / "theirs.pt"), tmp_path / "theirs.pt")
    assert report.fits and "folded" not in report.layout
    plan.apply(ours)
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))


def test_parts_that_do_not_belong_together_are_left_alone(tmp_path: Path) -> None:
    torch.save({"head.weight_g": torch.ones(2, 1), "head.bias": torch.ones(2)}, tmp_path / "cut.pt")
    report, _ = fit(Model(), read_checkpoint(tmp_path / "cut.pt"), tmp_path / "cut.pt")
    assert not report.fits
    assert {(m.name, m.problem) for m in report.mismatches} >= {
        ("head.weight_g", "unexpected"),
        ("head.weight", "missing"),
    }
