"""States that a loop hands on: what is told where nobody counted what the data need, and tables of several lengths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.training_series import NOISE, N, judged, of, one

CARRIED = {"modules:carried/steps": np.full((N, 1), 5.0)}


@pytest.mark.parametrize(("fall", "told"), [(0.0, True), (0.04, True), (0.2, False)])
def test_truncation_is_told_of_a_loss_that_hardly_falls(tmp_path: Path, fall: float, told: bool) -> None:
    loss = 1.39 * (1 - fall * np.linspace(0, 1, N)) + 0.001 * NOISE
    found = judged(tmp_path / "a.inspect", loss, CARRIED, names=("rnn",))
    assert bool(of(found, "truncation")) == told
    if told:
        finding = one(found, "truncation")
        assert finding.severity == "info" and "every 5 steps" in finding.message and "not counted" in finding.message
        assert "split(10" in finding.code
    assert not of(judged(tmp_path / "b.inspect", loss, {}, names=("rnn",)), "truncation")


@pytest.mark.parametrize("kept", [N, N - 3, 40])
def test_scores_that_end_before_the_rows_do(tmp_path: Path, kept: int) -> None:
    """A table ends with its last number: scores are taken so many times at most."""
    rng = np.random.default_rng(3)
    tables = {
        f"training:carried/{name}": (middle + 0.01 * rng.normal(size=(N, 1)))[:length]
        for name, middle, length in (
            ("rows", 1.0, N), ("follows", 0.0, kept), ("others", 0.0, kept), ("within", 0.5, kept)
        )
    }  # fmt: skip
    tables["training:carried/rows"][:] = 1.0
    found = one(judged(tmp_path / "a.inspect", tables=tables), "unrelated-batches")
    assert found.severity == "warning" and f"scores of {kept} pairs" in found.sure
