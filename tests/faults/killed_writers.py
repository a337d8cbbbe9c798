"""Programs that write a capture and are killed without warning, while another reads it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from campaign import Outcome, Section

from inspector.capture import Capture, CaptureError, open_capture

SIGNALS = ("SIGKILL", "SIGTERM", "SIGABRT")
WRITES = """
import os, signal, sys, numpy as np
from inspector.capture import Writer, appending
from inspector.records import Channel, Frame, Page, RunStart, Scalar
appending.ROLL_BYTES = 60_000  # several page files
def write(path, every, said):
    said = open(said, "w")
    print(os.getpid(), file=said, flush=True)
    writer, step = Writer(path, RunStart(run="r", title="t")), 0
    writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 16)))
    writer.write(Channel(name="b:n", kind="state", dims=("step",), shape=(None,), dtype="int64"))
    while True:
        writer.write(Page("a:h", 0, (step, 0), np.full((4, 16), step, np.float32)))
        writer.write(Page("b:n", 0, (step,), np.arange(step, step + 4)))
        step += 4
        if step % every == 0:
            writer.write(Scalar("loss", 0, float(step)))
            writer.flush()
            print(step, file=said, flush=True)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that are killed
for line in sys.stdin:
    path, every, said = line.rstrip("\\n").split("\\t")
    if not os.fork():
        os.close(0)
        write(path, int(every), said)
"""
GONE_SECONDS = 20.0
"""For a process that was killed to be gone: its memory is given back first."""


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Moments at random, commits of one page or of many; four of five are killed beside a reader, the others ended by any
    signal, by turns with a reader or none."""
    for number in range(count):
        chance = random.Random(seed * 1_000_003 + number)
        other = number % 5 == 4
        yield {
            "every": chance.choice((4, 16, 64)), "wait": round(chance.uniform(0.0, 0.12), 4),
            "read": not other or number % 10 == 4, "signal": chance.choice(SIGNALS) if other else "SIGKILL",
        }  # fmt: skip


class Writers:
    """A process that has imported what a writer needs, and forks for each of them: each is a process of its own."""

    def __init__(self, _folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITES], stdin=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
        )

    def begin(self, path: Path, every: int, said: Path) -> tuple[int, TextIO]:
        """Another one: its process, and what it says, a line for its number and one for each commit."""
        os.mkfifo(said)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{path}\t{every}\t{said}\n")
        self._process.stdin.flush()
        lines = said.open()
        return int(lines.readline()), lines


def attempt(case: dict[str, Any], writers: Writers, scratch: Path) -> Outcome:
    """All that was acknowledged is there after the kill, and nothing that is there is wrong."""
    path = scratch / "a.inspect"
    writer, lines = writers.begin(path, case["every"], scratch / "said")
    with lines:
        acknowledged = int(lines.readline())
        problems: list[str] = []
        over = threading.Event()
        reader = threading.Thread(target=_follow, args=(path, over, problems))
        if case["read"]:
            reader.start()
        time.sleep(case["wait"])
        os.kill(writer, getattr(signal, case["signal"]))
        rest = lines.read()
    _gone(writer)
    over.set()
    if case["read"]:
        reader.join()
    acknowledged = max([acknowledged, *(int(word) for word in rest.split()[:-1]), *_whole(rest)])
    with open_capture(path) as capture:
        problems += [] if capture.status == "unfinished" else [f"it is said to be {capture.status}"]
        problems += [] if _steps(capture) >= acknowledged else [f"{acknowledged} acknowledged, {_steps(capture)} there"]
        problems += _wrong(capture) + capture.verify()
    return Outcome("lost", "; ".join(problems)[:400]) if problems else Outcome("survived")


def _gone(process: int) -> None:
    """Wait until a process that was killed is there no longer."""
    end = time.monotonic() + GONE_SECONDS
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < end, f"it is there {GONE_SECONDS:.0f} s after its signal"
        time.sleep(0.002)


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
        "kills", "writers killed at any moment, nine of ten beside a reader", 125, 250, cases, Writers, attempt,
        seconds=60.0,
    )
]  # fmt: skip
