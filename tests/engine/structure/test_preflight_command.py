"""`inspector preflight`: sentences, JSON, the exit code, and tests to keep."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import call

from inspector.capture import open_capture
from inspector.diagnosis import diagnose

MODEL = """
import torch
from torch import nn


class Reads(nn.Module):
    def __init__(self, batch_first):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(9, 4), nn.LSTM(4, 5, batch_first=batch_first), nn.Linear(5, 9)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


def right():
    return Reads(True)


def wrong():
    return Reads(False)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mine") / "mine.py"
    path.write_text(MODEL)
    return path


def tried(tests: Path, before: str, after: str, *options: str) -> str:
    """What pytest says of a file of tests, and of the same of a model in which something was changed since."""
    changed, of_it = tests.with_name("changed.py"), tests.with_name("test_changed.py")
    changed.write_text(MODEL.replace(before, after))
    of_it.write_text(re.sub(r"'[^']*mine\.py:", lambda _: f"'{changed}:", tests.read_text()))
    command = [sys.executable, "-m", "pytest", "-q", "-rxf", "-p", "no:cacheprovider", *options, str(tests), str(of_it)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tests.parent).stdout


def test_a_fault_is_told_and_ends_with_1_where_that_is_wanted(file: Path, tmp_path: Path) -> None:
    out, tests = tmp_path / "pre.inspect", tmp_path / "test_mine.py"
    arguments = [
        "preflight",
        f"{file}:wrong",
        "--ids",
        "1,2,3,4,5",
        "--out",
        str(out),
        "--pytest",
        str(tests),
        "--check",
    ]
    done = call(*arguments, cwd=tmp_path, expect=1)
    assert "FAULT  batch: A sequence's outputs change by" in done.stdout
    assert "rnn (LSTM)" in done.stdout
    with open_capture(out) as capture:
        found = diagnose(capture, capture.frames)
    assert [(one.id, one.severity) for one in found.findings if one.severity != "info"] == [("IN104", "error")]
    assert found.findings[0].evidence == ("model:structure/batch",)
    said = tried(tests, "Reads(False)", "Reads(True)", "-k", "known")
    assert "1 failed" in said and "1 xfailed" in said and "passed" not in said
    assert "XFAIL test_mine.py::" in said and "FAILED test_changed.py::" in said
    assert "once it is repaired, move it to HOLDS" in said


def test_json_and_tests_of_a_model_without_a_fault(file: Path, tmp_path: Path) -> None:
    tests = tmp_path / "test_mine.py"
    arguments = ("--ids", "1,2,3,4,5", "--json", "--pytest", str(tests), "--check", "--quick")
    done = call("preflight", f"{file}:right", *arguments, cwd=tmp_path)
    told = {one["test"]: one for one in json.loads(done.stdout)["tests"]}
    assert {test: one["word"] for test, one in told.items()} == dict.fromkeys(
        ("causal", "large", "batch", "padding", "order", "repeat"), "holds"
    )
    said = tried(tests, "Reads(True)", "Reads(False)")
    assert "2 failed, 10 passed" in said  # along the batch, one sequence has no order either
    assert said.count("FAILED test_changed.py") == 2 and "other sequences" in said


def test_what_needs_several_steps_is_said_of_a_single_one(file: Path) -> None:
    said = call("preflight", f"{file}:right", "--ids", "1", "--quick", cwd=file.parent).stdout
    untested = [line.split()[2].rstrip(":") for line in said.splitlines() if "The sequence has a single step" in line]
    assert untested == ["causal", "batch", "padding", "order", "repeat"]
    assert "0 faults in 0 tests; 5 not tested." in said and "left" not in said
