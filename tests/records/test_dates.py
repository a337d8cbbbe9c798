"""Moments that no calendar has: of a clock that was wrong, or forged."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from inspector.capture import Writer, add_note, noted, open_capture
from inspector.records import Noted, RunStart, RunStop
from inspector.records.dates import at_local, at_utc

ABSURD = (1e18, -1e18, 1e300, 2.0**62)


@pytest.mark.parametrize("seconds", [0.0, 1.0, 951_782_399.5, 4e9])
def test_a_moment(seconds: float) -> None:
    assert at_utc(seconds) == datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d %H:%M UTC")
    assert at_local(seconds) == datetime.fromtimestamp(int(seconds)).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize("seconds", [*ABSURD, float("nan"), float("inf")])
def test_no_moment(seconds: float) -> None:
    assert at_utc(seconds) == at_local(seconds) == ""


@pytest.mark.parametrize("seconds", ABSURD)
def test_a_report_on_a_capture_of_such_a_moment(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, RunStart(run="one", title="a", created=seconds)) as writer:
        writer.write(RunStop("done"))
    monkeypatch.setattr(noted.time, "time", lambda: abs(seconds))
    with open_capture(path) as capture:
        add_note(capture, Noted(), "of no year")
    words = [sys.executable, "-m", "inspector", "diagnose", str(path), "--to", str(tmp_path / "r.html")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "of no year" in (tmp_path / "r.html").read_text("utf-8")
