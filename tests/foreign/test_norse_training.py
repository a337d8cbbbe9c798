"""A training script that nobody here wrote, watched with no change to it: the memory task that the PyPI package norse ships.

`norse/task/memory.py` trains a recurrent net of adaptive spiking neurons, in a loop written by hand, to store a bit and
recall it. Its data is drawn by itself. It is skipped where `pip install --no-deps norse==0.0.4` and absl-py are missing.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import CHECKOUT

import inspector

ARGUMENTS = (
    "--epochs=1", "--samples=48", "--batch_size=8", "--seq_length=10", "--seq_steps=8", "--seq_repetitions=1",
    "--random_seed=3",
)  # fmt: skip
"""Smaller than its defaults, of which an epoch takes minutes; the options are the script's own."""


def script() -> Path:
    """The script in the installed package, found without importing the package."""
    found = importlib.util.find_spec("norse"), importlib.util.find_spec("absl")
    if None in found or found[0] is None or not found[0].submodule_search_locations:
        if os.environ.get("INSPECTOR_ORACLES"):
            pytest.fail("norse and absl-py must be there in continuous integration")
        pytest.skip("norse is not installed (pip install --no-deps norse==0.0.4, and absl-py)")
    return Path(next(iter(found[0].submodule_search_locations))) / "task" / "memory.py"


def ran(*before: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The script in a folder of its own, into which it writes."""
    path = script()
    cwd.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}
    command = (*before, sys.executable, "-W", "ignore", str(path), *ARGUMENTS)
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=250)


@pytest.mark.foreign
def test_it_is_watched_as_it_is_and_computes_what_it_computes_alone(tmp_path: Path) -> None:
    alone = ran(cwd=tmp_path / "alone")
    seen = ran(sys.executable, "-m", "inspector", "watch", "--headless", "--every", "1", "--", cwd=tmp_path / "seen")
    assert alone.returncode == seen.returncode == 0, seen.stderr
    losses = np.load(tmp_path / "alone" / "training_losses.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "seen" / "training_losses.npy"), losses)
    weights = [torch.load(next((tmp_path / name).glob("*_final.pt"))) for name in ("alone", "seen")]
    for name, tensor in weights[0]["model_state_dict"].items():
        assert torch.equal(tensor, weights[1]["model_state_dict"][name]), name
    with inspector.open_capture(tmp_path / "seen" / "run.inspect") as capture:
        assert capture.status == "done"
        np.testing.assert_array_equal(capture.array("training:loss").astype(np.float32), losses.astype(np.float32))
        assert set(capture.labels("parameter")) == set(weights[0]["model_state_dict"])
        norms = capture.array("parameters:gradient/norm")
        assert norms.shape == (6, len(weights[0]["model_state_dict"])) and np.isfinite(norms).all()
        assert capture.start.title == "MemoryNet: training"
        (optimizer,) = capture.start.meta["training"]["optimizers"]
        assert optimizer["class"] == "torch.optim.adam.Adam" and optimizer["groups"][0]["settings"]["lr"] == 2e-3
