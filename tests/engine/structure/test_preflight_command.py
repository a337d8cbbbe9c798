"""`inspector preflight`: sentences, JSON, the exit code, and tests to keep."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from inspector.capture import open_capture
from inspector.cli.command import cli
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
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 1, done.output
    assert "FAULT  batch: A sequence's outputs change by" in done.output
    assert "rnn (LSTM)" in done.output
    with open_capture(out) as capture:
        found = diagnose(capture, capture.frames)
    assert [(one.id, one.severity) for one in found.findings if one.severity != "info"] == [("IN104", "error")]
    assert found.findings[0].evidence == ("model:structure/batch",)
    again = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "known", str(tests)]
    said = subprocess.run(again, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
    assert "1 xfailed" in said and "[batch]" not in said
    file.write_text(MODEL.replace("Reads(False)", "Reads(True)"))
    try:
        said = subprocess.run(again, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
        assert "1 failed" in said and "once it is repaired, move it to HOLDS" in said
    finally:
        file.write_text(MODEL)


def test_json_and_tests_of_a_model_without_a_fault(file: Path, tmp_path: Path) -> None:
    tests = tmp_path / "test_mine.py"
    done = CliRunner().invoke(
        cli,
        ["preflight", f"{file}:right", "--ids", "1,2,3,4,5", "--json", "--pytest", str(tests), "--check", "--quick"],
    )
    assert done.exit_code == 0, done.output
    told = {one["test"]: one for one in json.loads(done.stdout)}
    assert {test: one["word"] for test, one in told.items()} == dict.fromkeys(
        ("causal", "large", "batch", "padding", "order", "repeat"), "holds"
    )
    again = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    assert "6 passed" in subprocess.run(again, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
    file.write_text(MODEL.replace("Reads(True)", "Reads(False)"))
    try:
        said = subprocess.run(again, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
        assert "2 failed, 4 passed" in said  # along the batch, one sequence has no order either
        assert "other sequences" in said
    finally:
        file.write_text(MODEL)


def test_what_needs_several_steps_is_said_of_a_single_one(file: Path) -> None:
    said = CliRunner().invoke(cli, ["preflight", f"{file}:right", "--ids", "1", "--quick"]).output
    untested = [line.split()[2].rstrip(":") for line in said.splitlines() if "The sequence has a single step" in line]
    assert untested == ["causal", "batch", "padding", "order", "repeat"]
    assert "0 faults in 0 tests; 5 not tested." in said and "left" not in said
