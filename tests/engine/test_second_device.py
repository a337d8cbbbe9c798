"""What is captured on a device beside the CPU, emulated, is what is captured on the CPU.

The emulation changes the whole process, so all cases are run by one program (tests/tools/on_second_device.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[1] / "tools"
SECONDS = 540
NAMES = (
    "lstm", "gru in both directions", "lstm with dropout", "hand-written", "hand-written with dropout", "cells",
    "attention", "two devices", "two devices, exchanged", "scans", "hand-written, many sequences", "attention, many sequences",
)  # fmt: skip
WAITS = 400
"""Times that a run of 14 steps waits for the device with every quantity, beside those that a recurrence of its own
operations takes for running them again."""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What the program printed."""
    path = os.pathsep.join((str(TOOLS), os.environ["PYTHONPATH"]))
    done = subprocess.run(
        [sys.executable, str(TOOLS / "on_second_device.py")],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    known: dict[str, Any] = json.loads(done.stdout)
    return known


@pytest.mark.timeout(SECONDS + 20)
@pytest.mark.parametrize("name", NAMES)
def test_the_other_device_gives_the_same_capture(found: dict[str, Any], name: str) -> None:
    """Channels, refusals, messages, and numbers to rounding."""
    assert found[name]["differences"] == []


@pytest.mark.timeout(SECONDS + 20)
def test_fused_layers_of_many_sequences_are_run_one_by_one_with_the_reason(found: dict[str, Any]) -> None:
    (said,) = found["lstm, many sequences"]["differences"]
    assert "run one by one" in said and "ThnnFusedLstmCell" in said


@pytest.mark.timeout(SECONDS + 20)
@pytest.mark.parametrize("name", [*NAMES, "lstm, many sequences"])
def test_the_device_goes_on_with_the_random_numbers_that_it_had(found: dict[str, Any], name: str) -> None:
    assert found[name]["random state restored"]


@pytest.mark.timeout(SECONDS + 20)
@pytest.mark.parametrize("name", ["lstm", "gru in both directions", "lstm with dropout", "cells", "attention"])
def test_the_processor_waits_for_the_device_a_bounded_number_of_times(found: dict[str, Any], name: str) -> None:
    assert 0 < sum(found[name]["waits"].values()) < WAITS


@pytest.mark.timeout(SECONDS + 20)
def test_the_emulation_obeys_the_rules_of_a_device(found: dict[str, Any]) -> None:
    """Else the comparison above would show nothing."""
    assert found["rules"] == {
        "two devices": "RuntimeError", "a number beside it": "", "an index on the CPU": "", "an index from there": "RuntimeError",
        "numpy": "TypeError", "a generator of the CPU": "RuntimeError", "float64 where there is none": "TypeError",
        "waiting": "counted", "random numbers of the CPU": "untouched", "a device that is not there": "InputError: This machine "
        "has no device 'cuda'; there are cpu, emulated:0.",
    }  # fmt: skip
