"""The short form of the fault suite: nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
CASES = {"captures": 29, "kills": 3, "io_errors": 16, "checkpoints": 33, "texts": 10, "models": 2,
         "windows": 3, "savings": 8, "soak": 3, "workers": 4}  # fmt: skip
SECONDS = 280
"""More than any section takes on a busy machine, less than after which pytest ends a test without a word of it."""


@pytest.mark.skipif(sys.platform != "linux", reason="named pipes, signals and /proc")
@pytest.mark.parametrize("section", CASES)
def test_nothing_is_lost(section: str) -> None:
    command = [sys.executable, RUN, section, "--cases", str(CASES[section])]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, env={**os.environ, "QT_QPA_PLATFORM": "offscreen"}
        )
    except subprocess.TimeoutExpired as late:  # it tells each case as it begins and as it ends: the last is the one
        pytest.fail(f"not over after {SECONDS} s: {(late.stderr or b'').decode(errors='replace')}")
    assert done.returncode == 0, done.stderr
    assert f"| {CASES[section]} |" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="sections import what only Linux has")
def test_the_page_says_how_much_there_is_to_try() -> None:
    told = subprocess.run(
        [sys.executable, RUN, "--list"], capture_output=True, text=True, timeout=240, check=True
    ).stdout
    page = (RUN.parents[2] / "docs" / "faults.md").read_text("utf-8")
    assert told.strip() in page, f"docs/faults.md is not what `python tests/faults/run.py --list` prints:\n{told}"
