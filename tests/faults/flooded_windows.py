"""What floods a window: a capture that grows by 65 MB a second, a gigabyte of output, a traceback of five megabytes, and
captures of half a million lines of log and of 50,000 frames. Its thread is never held up for long by its own work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from beating_window import BeatingWindow, Gaps
from campaign import Outcome, Section, is_one_sentence

from inspector.capture import Writer
from inspector.records import Channel, Frame, InputSpec, Load, Log, Page, RunStart, RunStop

MOST_HELD = 0.1
"""Seconds of its own processor time for which the window's thread may be held up."""
LEAST_BEATS = 10
SHORT = {"tail": 8, "output": 20, "traceback": 5, "log lines": 5_000, "frames": 1_000}
LONG = {"tail": 20, "output": 1_000, "traceback": 5, "log lines": 500_000, "frames": 50_000}
"""Seconds; megabytes; megabytes; lines; frames."""
SPEED = 65 << 20
"""Bytes a second that are written while they are watched."""
GROWS = """
import sys, time, numpy as np
from inspector.capture import Writer
from inspector.records import Channel, Page, RunStart, RunStop
path, seconds, speed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
page = np.random.default_rng(0).random((128, 128)).astype(np.float32)
with Writer(path, RunStart(run="r", title="t")) as writer:
    writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 128)))
    began = time.monotonic(); sent = 0
    while time.monotonic() < began + seconds:
        writer.write(Page("a:h", 0, (sent * 128, 0), page)); sent += 1
        ahead = sent * page.nbytes / speed - (time.monotonic() - began)
        if ahead > 0: time.sleep(ahead)
    writer.write(RunStop("done"))
print(sent * 128, sent * page.nbytes / (time.monotonic() - began) / 2**20)
"""
MODEL = """
import os
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        {fault}
        return h
"""
FAULTS = {
    "output": "[os.write(1, b'x' * 99 + b'\\n' + (b'line of output\\n' * 69_999)) for _ in range({n})]",
    "traceback": "raise RuntimeError('no luck \\n' * ({n} * 110_000))",
}


def cases(count: int, _seed: int) -> Iterator[dict[str, Any]]:
    """Each for a short time; then each for long."""
    yield from [{"what": what, "number": n} for numbers in (SHORT, LONG) for what, n in numbers.items()][:count]


def warm(folder: Path) -> BeatingWindow:
    """A window in which something was run and each panel that is needed was drawn once: what that takes is measured by
    `tests/bench/bench_stalls.py`."""
    window = BeatingWindow(folder)
    window.window.open_sample("char-elman")
    window.until(lambda: window.session.capture is not None and not window.session.busy, 240, "the first run")
    for panel in ("training", "states"):
        window.window.docking.show_panel(panel)
        window.rest(1.0)
    return window


def attempt(case: dict[str, Any], window: BeatingWindow, scratch: Path) -> Outcome:
    """Flood it; see how long it was held up, and whether it shows what came."""
    wrong, gaps = DOES[case["what"]](window, case["number"], scratch)
    wrong += [f"only {len(gaps.each)} beats were seen"] * (len(gaps.each) < LEAST_BEATS)
    if gaps.most > MOST_HELD:
        wrong = [*wrong, f"held up for {gaps.most * 1000:.0f} ms"]
    if wrong:
        return Outcome("lost", f"{'; '.join(wrong)} ({gaps.told()})")
    return Outcome("survived", f"{case['what']}: {gaps.told()}")


def tail(window: BeatingWindow, seconds: int, folder: Path) -> tuple[list[str], Gaps]:
    """A capture that grows while it is shown."""
    path = folder / "grows.inspect"
    writer = subprocess.Popen(
        [sys.executable, "-c", GROWS, str(path), str(seconds), str(SPEED)], stdout=subprocess.PIPE, text=True
    )
    window.until(lambda: (path / "pages-0000.bin").exists(), 60, "the first page")
    window.rest(0.3)
    window.window.open_path(str(path))
    window.until(lambda: _shown(window, path), 60, "opening it")
    window.rest(1.0)
    with window.beats() as gaps:
        window.until(lambda: writer.poll() is not None, seconds * 10 + 60, "writing it")
        window.until(lambda: window.session.capture.status == "done", 60, "its end")
    assert writer.stdout is not None
    steps, speed = writer.stdout.read().split()
    seen = int(window.session.capture.extent("a:h")[0])
    wrong = [f"{steps} steps were written, {seen} are shown"] * (seen != int(steps)) + window.session.capture.verify()
    sys.stderr.write(f"tail: {float(speed):.0f} MB/s\n")
    return wrong, gaps


def ran(window: BeatingWindow, what: str, number: int, folder: Path) -> Gaps:
    """A model that floods is run."""
    file = folder / "model.py"
    file.write_text(MODEL.format(fault=FAULTS[what].format(n=number)))
    spec = InputSpec(kind="generated", value="noise", options={"steps": 20})
    with window.beats() as gaps:
        window.session.open_subject(Load(subject=f"{file}:Model", trusted=True), spec)
        window.until(lambda: window.session.running, 240, "opening the model")
        window.until(lambda: not window.session.busy, 600, "the run")
        window.rest(0.5)
    return gaps


def output(window: BeatingWindow, megabytes: int, folder: Path) -> tuple[list[str], Gaps]:
    """A model that prints without end."""
    gaps = ran(window, "output", megabytes, folder)
    capture = window.session.capture
    done = capture is not None and capture.status == "done"
    dropped = any("dropped" in line.text for line in window.session.log)
    return [f"the run is not done: {window.session.sentence}"] * (not done) + ["no line was dropped"] * (
        not dropped and megabytes > 10
    ), gaps


def traceback(window: BeatingWindow, megabytes: int, folder: Path) -> tuple[list[str], Gaps]:
    """A model that raises megabytes."""
    gaps = ran(window, "traceback", megabytes, folder)
    said = window.session.sentence
    return [f"no plain sentence: {said[:200]!r}"] * (not is_one_sentence(said) or "no luck" not in said), gaps


def opened(window: BeatingWindow, path: Path) -> Gaps:
    """A capture is opened and shown."""
    with window.beats() as gaps:
        window.window.open_path(str(path))
        window.until(lambda: _shown(window, path), 120, "opening it")
        window.rest(1.0)
        for panel in ("training", "states"):
            window.window.docking.show_panel(panel)
            window.rest(0.3)
    return gaps


def log_lines(window: BeatingWindow, count: int, folder: Path) -> tuple[list[str], Gaps]:
    """A capture that holds so many lines of log."""
    path = folder / "lines.inspect"
    with Writer(path, RunStart(run="lines", title="t")) as writer:
        _numbers(writer, 1)
        for number in range(count):
            writer.write(Log(f"iteration {number}: the loss is {1 / (number + 1):.6f}"))
        writer.write(RunStop("done"))
    gaps = opened(window, path)
    return [], gaps


def frames(window: BeatingWindow, count: int, folder: Path) -> tuple[list[str], Gaps]:
    """A capture of so many frames, one of them after the other chosen."""
    path = folder / "frames.inspect"
    with Writer(path, RunStart(run="frames", title="t")) as writer:
        _numbers(writer, count)
        writer.write(RunStop("done"))
    gaps = opened(window, path)
    with window.beats() as more:
        for place in range(0, count, max(1, count // 20)):
            window.window.frames.choose(place)
            window.rest(0.05)
    gaps.each += more.each
    number = len(window.session.capture.frames)
    return [f"{count} frames were written, {number} are shown"] * (number != count), gaps


def _numbers(writer: Writer, count: int) -> None:
    writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 4)))
    page = np.zeros((4, 4), np.float32)
    for frame in range(count):
        writer.write(Frame(index=frame, step=frame))
        writer.write(Page("a:h", frame, (0, 0), page + frame))


def _shown(window: BeatingWindow, path: Path) -> bool:
    capture = window.session.capture
    return capture is not None and capture.path == path and window.session.reading is None


DOES: dict[str, Callable[[BeatingWindow, int, Path], tuple[list[str], Gaps]]] = {
    "tail": tail, "output": output, "traceback": traceback, "log lines": log_lines, "frames": frames,
}  # fmt: skip
SECTIONS = [
    Section(
        "floods", "windows flooded by files, by output, by a traceback, by lines and by frames", len(SHORT),
        len(SHORT) + len(LONG), cases, warm, attempt, seconds=1_500.0,
    )
]  # fmt: skip
