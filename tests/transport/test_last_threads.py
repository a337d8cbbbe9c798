"""A process ends with its own code, whatever its threads still do."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import atexit, sys, threading, time
from inspector.transport import last_threads
last_threads.SECONDS = 1.0
atexit.register(lambda: print("taken apart"))
threading.Thread(target=time.sleep, args=({sleeps},), daemon={daemon}).start()
print("said before", end="")
sys.exit(last_threads.end_with(3))
"""


@pytest.mark.parametrize(
    ("sleeps", "daemon", "orderly"), [(0.2, True, True), (0.2, False, True), (1.5, False, True), (600, True, False)]
)
def test_threads_that_end_are_waited_for_and_others_are_not_there_when_it_ends(
    sleeps: float, daemon: bool, orderly: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(sleeps=sleeps, daemon=daemon)], capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 3 and done.stdout == "said before" + "taken apart\n" * orderly and not done.stderr
