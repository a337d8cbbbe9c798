"""The callbacks, with the real libraries: what is recorded, that training is unchanged, and the end by an exception."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inspector
from inspector.capture import Capture

SUPPORT = Path(__file__).resolve().parents[1] / "support"


def ran(*arguments: str, cwd: Path, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    """A Python to its end."""
    env = {**os.environ, "HOME": str(cwd), "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(SUPPORT.parents[1]), **more}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=280, env=env, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def trained(case: str, folder: Path, *more: str, code: int = 0) -> str:
    """The bits of what a case trained."""
    done = ran(str(SUPPORT / "library_trainings.py"), case, str(folder), *more, cwd=folder, code=code)
    return next((line for line in done.stdout.splitlines() if line.startswith("bits ")), "")


def logged(capture: Capture) -> dict[str, Any]:
    """Name → the numbers that a library logged, without the iterations at which it did not."""
    channel = capture.channels["training:logged"]
    names = capture.labels(channel.domain(channel.dims[1]))
    columns = zip(names, capture.array("training:logged").T, strict=False)
    return {name: values[np.isfinite(values)] for name, values in columns}


CASES = {"lightning": 8, "huggingface": 6, "accelerate": 4}
"""Library → iterations."""


LIBRARIES = {"lightning": "lightning", "huggingface": "transformers", "accelerate": "accelerate"}
PAIRS = pytest.mark.parametrize(("case", "library"), LIBRARIES.items(), indirect=["library"])


@PAIRS
def test_a_training_is_recorded_and_unchanged(case: str, library: Any, tmp_path: Path) -> None:
    assert trained(case, tmp_path) == trained(case, tmp_path, "plain") != ""
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.status == "done" and capture.array("training:loss").shape == (CASES[case],)
        assert np.isfinite(capture.array("training:loss")).all()
        assert any(name.endswith("hidden.weight") for name in capture.labels("parameter"))
        assert any(name.endswith("act") for name in capture.labels("module")), "modules are seen"
        assert np.isfinite(capture.array("modules:activation/mean_abs")[-1]).any()
        numbers = logged(capture)
        if case == "lightning":
            np.testing.assert_allclose(numbers["half"], capture.array("training:loss") / 2, rtol=1e-6)
            assert capture.array("training:epoch/logged")[-1] == pytest.approx(2.0)
        elif case == "huggingface":
            assert len(numbers["loss (logged)"]) == 3 and capture.array("training:epoch/logged")[-1] == pytest.approx(
                3.0
            )
        else:
            assert "text" not in numbers and len(numbers["loss (logged)"]) >= CASES[case]
            assert any(event.text == "lr=0.01" for event in capture.events)


@PAIRS
def test_a_capture_is_finished_when_the_training_fails(case: str, library: Any, tmp_path: Path) -> None:
    trained(f"{case}_fails", tmp_path, code=0 if case == "lightning" else 1)
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.stop is not None and capture.status == "failed" and "it fails" in capture.stop.message


@pytest.mark.parametrize("library", ["accelerate"], indirect=True)
def test_a_script_that_nobody_here_wrote_is_watched_without_a_change(library: Any, tmp_path: Path) -> None:
    """The script that ships with Accelerate and checks an installation: it trains the same model in several ways, and
    compares the parameters that come out itself."""
    script = ("-m", "accelerate.test_utils.scripts.test_script")
    alone = ran(*script, cwd=tmp_path, ACCELERATE_USE_CPU="true")
    start = ("-m", "inspector", "watch", "--headless", "--every", "1", "--", sys.executable)
    seen = ran(*start, *script, cwd=tmp_path, ACCELERATE_USE_CPU="true")
    assert "**Training integration test**" in seen.stdout
    assert seen.stdout == alone.stdout
    captures = sorted(tmp_path.glob("*.inspect"))
    assert captures and all(str(path) in seen.stderr for path in captures)
    for path in captures:
        with inspector.open_capture(path) as capture:
            assert capture.status == "done" and list(capture.labels("parameter")) == ["a", "b"]
            loss = capture.array("training:loss")
            assert len(loss) > 10 and np.isfinite(loss).all() and loss[-5:].mean() < loss[:5].mean()
