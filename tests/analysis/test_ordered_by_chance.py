"""The Mann–Kendall probability is that of SciPy, which is not imported for it when a capture is opened."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import kendalltau

from inspector.analysis.rank_correlation import ordered_by_chance
from inspector.workspace.trainings import path_or_training


@pytest.mark.parametrize("count", [2, 5, 10, 20])
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("slope", [-0.3, 0.0, 0.3])
def test_it_is_what_scipy_computes(count: int, rounded: bool, slope: float) -> None:
    values = slope * np.arange(count) + np.random.default_rng(count).normal(size=count)
    values = np.round(values) if rounded else values
    for falling, side in ((True, "less"), (False, "greater")):
        expected = 1.0 if np.ptp(values) == 0 else kendalltau(np.arange(count), values, alternative=side).pvalue
        assert ordered_by_chance(values, falling=falling) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_nan_and_equal_numbers() -> None:
    assert np.isnan(ordered_by_chance(np.array([1.0, np.nan, 0.0]), falling=True))
    assert ordered_by_chance(np.ones(5), falling=True) == 1.0


CODE = """
import sys
import inspector.gui.panels.overview, inspector.gui.panel.overview.look_over as look
with __import__("inspector").open_capture(sys.argv[1]) as capture:
    pictures = list(look.sketched(capture, -1, {}))
    found = list(look.answers(capture, list(capture.frames), look.Settings()))
assert len(found) > 40 and len(pictures) > 5 and not any(one.broken for one in found if hasattr(one, "broken"))
print(sorted(name for name in ("scipy", "torch", "transformers") if name in sys.modules))
"""


def test_neither_pictures_nor_rules_of_an_overview_import_scipy_or_torch() -> None:
    command = [sys.executable, "-W", "error", "-c", CODE, path_or_training("training-vanishing")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"
