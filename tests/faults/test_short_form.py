"""The short form of the fault suite: nothing is lost, and as much is tried as is aimed at.

Sections are tried in parts, which share the cores; none takes a minute on a machine that does little else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RUN = HERE / "run.py"
CASES = {
    "captures": (500, 2), "kills": (125, 1), "io_errors": (60, 1), "checkpoints": (132, 1), "texts": (30, 1),
    "models": (2, 1), "windows": (23, 4), "savings": (8, 1), "soak": (6, 6), "workers": (40, 5),
}  # fmt: skip
"""How many cases of a section are tried, in how many parts."""
PARTS = [(name, part) for name, (_, parts) in CASES.items() for part in range(1, parts + 1)]
SECONDS = 280
"""More than any part takes on a busy machine, less than after which pytest ends a test without a word of it."""
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="named pipes, signals and /proc")


@only_linux
@pytest.mark.parametrize(("section", "part"), PARTS)
def test_nothing_is_lost(section: str, part: int) -> None:
    count, parts = CASES[section]
    command = [sys.executable, RUN, section, "--cases", str(count), "--part", f"{part}/{parts}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, env={**os.environ, "QT_QPA_PLATFORM": "offscreen"}
        )
    except subprocess.TimeoutExpired as late:  # it tells each case as it begins and as it ends: the last is the one
        pytest.fail(f"not over after {SECONDS} s: {(late.stderr or b'').decode(errors='replace')}")
    assert done.returncode == 0, done.stderr
    assert f"| {len(range(part - 1, count, parts))} |" in done.stdout


@only_linux
def test_as_much_is_tried_as_is_aimed_at() -> None:
    """The aims are those of docs/faults-covered.md, "What every change is tried for"."""
    told = subprocess.run([sys.executable, RUN, "--show"], capture_output=True, text=True, timeout=240, check=True)
    cases = defaultdict(list)
    for line in map(json.loads, told.stdout.splitlines()):
        cases[line["section"]].append(line["case"])
    assert {name: len(cases[name]) for name in CASES} == {name: count for name, (count, _) in CASES.items()}
    killed = [one for one in cases["kills"] if one["signal"] == "SIGKILL" and one["read"]]
    assert len(killed) >= 100 and {one["every"] for one in killed} == {4, 16, 64}
    failing = Counter((one["kind"], one["error"]) for one in cases["io_errors"])
    assert failing.total() >= 60 and len(failing) == 4 * 4  # every program with every error
    assert len(cases["captures"]) >= 500
    assert len({(one["harm"], one["value"]) for one in cases["captures"]}) >= 29  # kinds
    assert (
        len({one["kind"] for one in cases["checkpoints"]}) >= 11 and len({one["door"] for one in cases["texts"]}) == 5
    )
    assert len({one["fault"] for one in cases["workers"]}) >= 40
    forged = [one for one in cases["captures"] if one["harm"] == "forge"]
    hostile = [*forged, *(one for name in ("checkpoints", "texts", "workers", "models") for one in cases[name])]
    assert len(hostile) >= 200
    assert len({one["state"] for one in cases["windows"] if one["end"] == "SIGKILL"}) >= 20
    assert {one["end"] for one in cases["windows"]} == {"SIGKILL", "close", "SIGINT", "SIGTERM"}
    soaked = {one["what"]: one["number"] for one in cases["soak"]}
    assert len(soaked) == 6 and soaked["following"] >= 10_000 and soaked["watching"] >= 10_000


@only_linux
def test_the_page_says_how_much_there_is_to_try() -> None:
    told = subprocess.run(
        [sys.executable, RUN, "--list"], capture_output=True, text=True, timeout=240, check=True
    ).stdout
    page = (RUN.parents[2] / "docs" / "faults.md").read_text("utf-8")
    assert told.strip() in page, f"docs/faults.md is not what `python tests/faults/run.py --list` prints:\n{told}"
