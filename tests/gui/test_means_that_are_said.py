"""Titles and read-outs of batches, of runs with NaN and of runs without a loss, beside plain numpy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.analysis.tracking import longest_delay
from inspector.gui.export.offscreen import Stage

UNITS, WIDTH = 3, 2
LENGTHS = (4, 7, 5)


class Reader(nn.Module):
    """A GRU cell in a loop, whose input can be NaN from a step on."""

    def __init__(self, broken: int = 10_000) -> None:
        super().__init__()
        self.cell, self.head, self.broken = nn.GRUCell(WIDTH, UNITS), nn.Linear(UNITS, 1), broken

    def forward(self, x: Tensor) -> Tensor:
        h, found = x.new_zeros(len(x), UNITS), []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t] + (torch.nan if t >= self.broken else 0), h)
            found.append(self.head(h))
        return torch.stack(found, 1)


def real(loss: Tensor, batch: Any) -> Tensor:
    """NaN at padding."""
    return loss.masked_fill(torch.arange(loss.shape[1]) >= batch.lengths[:, None], torch.nan)


def run(tmp_path: Path, lengths: tuple[int, ...], loss: Callable[[Tensor, Any], Tensor], broken: int = 10_000) -> Path:
    torch.manual_seed(0)
    random = np.random.default_rng(3)
    subject = SimpleNamespace(model=Reader(broken), kind="vectors", width=WIDTH, loss=loss)
    path = tmp_path / "a.inspect"
    many = [random.normal(size=(n, WIDTH)).astype(np.float32) for n in lengths]
    with inspector.run(subject, many if len(many) > 1 else many[0], out=path, look_at=0):
        return path


def title(stage: Stage) -> str:
    return " ".join(stage.panel("outputs").plots[0].titleLabel.lines)


def test_the_mean_loss_of_a_batch_says_that_it_is_of_all_its_sequences(
    tmp_path: Path, stage_of: Callable[[Path], Stage]
) -> None:
    def loss(output: Tensor, batch: Any) -> Tensor:
        return real((output[..., 0] - 1) ** 2, batch)

    stage = stage_of(run(tmp_path, LENGTHS, loss))
    own = stage.capture.array("output:loss").astype(np.float64)
    assert len(own) == LENGTHS[0]
    total = next(one.value for one in stage.capture.scalars if one.name == "output:loss/mean")
    assert title(stage) == (
        f"mean loss {total:.4g} over {sum(LENGTHS)} losses of all sequences ({own.mean():.4g} over this one)"
    )


def test_the_mean_loss_of_one_sequence_is_that_of_its_curve(tmp_path: Path, stage_of: Callable[[Path], Stage]) -> None:
    stage = stage_of(run(tmp_path, (6,), lambda output, batch: output[..., 0] ** 2))
    assert title(stage) == f"mean loss {stage.capture.array('output:loss').astype(np.float64).mean():.4g}"


def test_a_sequence_without_a_loss_has_no_gradient_that_is_clipped(
    tmp_path: Path, stage_of: Callable[[Path], Stage]
) -> None:
    stage = stage_of(run(tmp_path, (5,), lambda output, batch: output[..., 0] * torch.nan))
    assert title(stage) == "no step carries a loss"
    assert "parameters:clipping/norms" not in stage.capture.channels
    assert any("carries a loss" in one.reason for one in stage.capture.refusals)


@pytest.mark.parametrize("broken", [4, 10_000], ids=["NaN", "whole"])
def test_shares_and_horizons_of_what_is_nan_are_not_known(
    tmp_path: Path, stage_of: Callable[[Path], Stage], broken: int
) -> None:
    """A comparison with NaN is False: it would count as "not saturated"."""
    stage = stage_of(run(tmp_path, (9,), lambda output, batch: output[..., 0] ** 2, broken))
    name = next(one for one in stage.capture.channels if one.endswith("gate/update"))
    gates, shares = stage.capture.array(name), stage.capture.array(f"{name}/saturation")
    nan = np.isnan(gates).any(0)
    assert nan.all() == (broken < 9)
    with np.errstate(invalid="ignore"):
        known = np.stack([(gates < 0.1).mean(0), (gates > 0.9).mean(0), (4 * gates * (1 - gates)).mean(0)])
    np.testing.assert_allclose(shares, np.where(nan, np.nan, known), rtol=1e-5)
    stage.cursor.move(step=2, unit=1)
    horizon = next(v for k, v in stage.panel("lags").readout(stage.cursor.position) if k.startswith("lag horizon"))
    assert horizon == ("not known" if broken < 9 else "not reached")
    said = " ".join(line for plot in stage.panel("paths").plots for line in plot.titleLabel.lines)
    assert ("direct path alone not known" in said) == (broken < 9) and "nan" not in said


def test_delays_leave_half_of_a_short_sequence() -> None:
    assert [longest_delay(steps, 16) for steps in (200, 32, 24, 7, 3, 2)] == [16, 16, 12, 3, 0, 0]
