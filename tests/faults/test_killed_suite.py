"""The fault suite itself is killed: nothing of what it started is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")


def marked(mark: str) -> dict[int, str]:
    """{process: command} of all that have a mark in their environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def until(done: object, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not done():  # type: ignore[operator]
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="/proc, and signals at a parent's end")
def test_a_killed_suite_leaves_no_window() -> None:
    mark = f"SUITE_MARK={uuid.uuid4().hex}"
    suite = subprocess.Popen(
        [sys.executable, RUN, "windows", "--cases", "1", "--seed", "27"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", **dict([mark.split("=")])},
    )  # fmt: skip
    try:
        assert until(lambda: any("driven_window" in one for one in marked(mark).values()), 240), marked(mark)
        suite.kill()
        suite.wait()
        assert until(lambda: not marked(mark), 60), marked(mark)
    finally:
        suite.kill()
        for process in marked(mark):
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
