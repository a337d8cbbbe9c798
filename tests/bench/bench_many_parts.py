"""Captures of many parts in the window: 300,000 pages, 50,000 frames, 500,000 log lines; how long it is held up at most.

A timer of 5 ms ticks in the window's thread; the longest gap is given with the CPU time of that thread within it, which other
programs do not change. `python tests/bench/run.py many_parts`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from harness import Row

from inspector.capture import Writer
from inspector.records import Channel, Frame, Log, Page, RunStart, RunStop

AIM = 0.1
WINDOW = """
import json, sys, time
import inspector.gui.window.first_frame as first
application = first.the_application()
import inspector.gui.app as app
from inspector.gui.window.preparing import Preparing
from PySide6.QtCore import QTimer
window = app.make_window(); window.show()
ready, gaps, last = [], [], [0.0, 0.0]
preparing = Preparing(window, window.loading(), lambda: (app.begin(window, [], False), ready.append(1)))
def beat():
    now, spent = time.monotonic(), time.thread_time()
    gaps.append((now - last[0], spent - last[1]))
    last[:] = now, spent
def until(done, seconds):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        application.processEvents(); time.sleep(0.001)
until(lambda: ready, 300)
began = time.monotonic(); until(lambda: time.monotonic() > began + 2, 60)
timer = QTimer(interval=5); timer.timeout.connect(beat); last[:] = time.monotonic(), time.thread_time(); timer.start()
began, spent = time.monotonic(), time.process_time()
window.open_capture(sys.argv[1])
until(lambda: window.session.capture is not None and not window.session.reading, 240)
shown, taken = time.monotonic() - began, time.process_time() - spent
began = time.monotonic(); until(lambda: time.monotonic() > began + 3, 240)
timer.stop(); longest = max(gaps, key=lambda gap: gap[1])
print(json.dumps({"shown": shown, "taken": taken, "gap": max(gaps)[0], "cpu": longest[1]}))
preparing.close(); window.close()
"""


def pages(many: int) -> Iterator[object]:
    """Of one row each."""
    yield Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(None, 1), title="h")
    for step in range(many):
        yield Page("rnn:h", 0, (step, 0), np.full((1, 1), step, np.float32))


def frames(many: int) -> Iterator[object]:
    """With a number each."""
    yield Channel(name="rnn:h", kind="state", dims=("step",), shape=(1,), title="h")
    for index in range(1, many):
        yield Frame(index=index, label=f"{index}")
        yield Page("rnn:h", index, (0,), np.full(1, index, np.float32))


def lines(many: int) -> Iterator[object]:
    """Of the log."""
    for number in range(many):
        yield Log(f"line {number} of a training that says what it does")


CASES = {"300,000 pages": (pages, 300_000), "50,000 frames": (frames, 50_000), "500,000 lines of log": (lines, 500_000)}


def rows() -> list[Row]:
    """One a case: the longest gap in CPU time of the window's thread against the aim, seconds until it is shown."""
    found = []
    for name, (parts, many) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "many.inspect"
            with Writer(path, RunStart(run="many", title=name)) as writer:
                writer.write(Frame(index=0))
                for part in parts(many):
                    writer.write(part)
                writer.write(RunStop("done"))
            told = opened(path)
        note = f"shown after {told['shown']:.1f} s, {told['taken']:.1f} s of CPU time; longest gap {told['gap']:.2f} s"
        found.append(Row(f"{name}: held up at most (CPU)", told["cpu"], AIM, told["cpu"] / AIM, "≤ 1", note))
    return found


def opened(path: Path) -> dict[str, float]:
    """What opening it in a window took."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", WINDOW, str(path)], capture_output=True, text=True, env=environment, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
