"""What an overview and a report say of a run, in lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.analysis.about import run_lines
from inspector.capture import Writer, open_capture
from inspector.records import Frame, RunStart, RunStop
from inspector.records.run import Status

SAID = "The model raised\n  ValueError: the mask has 3 steps, the input 4"


@pytest.mark.parametrize("status, message, told", [
    ("failed", SAID, ["Why it failed: The model raised ValueError: the mask has 3 steps, the input 4"]),
    ("failed", "", []), ("done", SAID, []), ("cancelled", SAID, []),
])  # fmt: skip
def test_a_failed_run_says_why(tmp_path: Path, status: Status, message: str, told: list[str]) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, label="typed text"))
        writer.write(RunStop(status, message, 1.5))
    with open_capture(path) as view:
        lines = run_lines(view)
    assert lines[1:] == told
    assert lines[0].endswith("; failed") is (status == "failed")
