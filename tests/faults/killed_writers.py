"""Programs that write a capture and are killed without warning, while another reads it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from campaign import Outcome, Section

from inspector.capture import Capture, CaptureError, open_capture

WRITES = """
import sys, numpy as np
from inspector.capture import Writer, appending
from inspector.records import Channel, Frame, Page, RunStart, Scalar
appending.ROLL_BYTES = 60_000  # several page files
writer = Writer(sys.argv[1], RunStart(run="r", title="t"))
every, step = int(sys.argv[2]), 0
writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 16)))
writer.write(Channel(name="b:n", kind="state", dims=("step",), shape=(None,), dtype="int64"))
while True:
    writer.write(Page("a:h", 0, (step, 0), np.full((4, 16), step, np.float32)))
    writer.write(Page("b:n", 0, (step,), np.arange(step, step + 4)))
    step += 4
    if step % every == 0:
        writer.write(Scalar("loss", 0, float(step)))
        writer.flush()
        print(step, flush=True)
"""


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Moments at random, commits of one page or of many, with a reader beside it or none."""
    for number in range(count):
        chance = random.Random(seed * 1_000_003 + number)
        yield {
            "every": chance.choice((4, 16, 64)), "wait": round(chance.uniform(0.0, 0.12), 4), "read": number % 2 == 0,
            "signal": chance.choice(("SIGKILL", "SIGKILL", "SIGTERM", "SIGABRT")),
        }  # fmt: skip


def attempt(case: dict[str, Any], _prepared: None, scratch: Path) -> Outcome:
    """All that was acknowledged is there after the kill, and nothing that is there is wrong."""
    path = scratch / "a.inspect"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITES, str(path), str(case["every"])], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert writer.stdout is not None
    acknowledged = int(writer.stdout.readline())
    problems: list[str] = []
    over = threading.Event()
    reader = threading.Thread(target=_follow, args=(path, over, problems))
    if case["read"]:
        reader.start()
    time.sleep(case["wait"])
    writer.send_signal(getattr(signal, case["signal"]))
    rest, _ = writer.communicate(timeout=20)
    over.set()
    if case["read"]:
        reader.join()
    acknowledged = max([acknowledged, *(int(word) for word in rest.split()[:-1]), *_whole(rest)])
    with open_capture(path) as capture:
        problems += [] if capture.status == "unfinished" else [f"it is said to be {capture.status}"]
        problems += [] if _steps(capture) >= acknowledged else [f"{acknowledged} acknowledged, {_steps(capture)} there"]
        problems += _wrong(capture) + capture.verify()
    return Outcome("lost", "; ".join(problems)[:400]) if problems else Outcome("survived")


def _whole(rest: str) -> list[int]:
    """The last number, where its line is whole."""
    return [int(rest.split()[-1])] if rest.endswith("\n") else []


def _steps(capture: Capture) -> int:
    return min((capture.extent(name)[0] for name in ("a:h", "b:n") if name in capture.channels), default=0)


def _wrong(capture: Capture) -> list[str]:
    wrong = []
    for name in {"a:h", "b:n"} & capture.channels.keys():
        array = capture.array(name)
        steps = np.arange(len(array))
        expected = steps if name == "b:n" else np.repeat((steps // 4 * 4)[:, None], 16, 1)
        if np.ma.isMaskedArray(array) or not np.array_equal(array, expected):
            wrong.append(f"other numbers in {name}")
    return wrong


def _follow(path: Path, over: threading.Event, problems: list[str]) -> None:
    """As a window does: look, take what is new, read it."""
    try:
        with open_capture(path) as capture:
            while not over.is_set():
                if capture.changed():
                    capture.refresh()
                    problems += _wrong(capture) + capture.damaged
                over.wait(0.003)
    except CaptureError as error:
        problems.append(f"the reader: {error}")


SECTIONS = [
    Section(
        "kills", "writers killed at any moment, half of them beside a reader", 6, 200, cases, lambda _folder: None,
        attempt, seconds=60.0,
    )
]  # fmt: skip
