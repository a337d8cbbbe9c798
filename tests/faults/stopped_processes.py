"""Runs and trainings whose process is stopped (SIGSTOP) while they pause or are being paused, on a disk that runs full.

A run pauses while its disk, of a few megabytes, is full; a training pauses where a window asks for it. The process is
stopped before or after that, and goes on, is cancelled or is killed: all that was written is there and whole, nothing is
said to be running that is not, a training has the same bits, and the next run works.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from beating_window import BeatingWindow
from campaign import HERE, Outcome, Section, is_one_sentence
from noting_window import fill
from with_parent import started_by_this

from inspector.capture import CaptureError, open_capture
from inspector.capture.control import Controller
from inspector.capture.kept import KeptRuns
from inspector.records import InputSpec, Load

PROGRAM = HERE.parent / "support" / "paused_training.py"
MEGABYTES = 32
PATIENCE = 120.0
MODEL = """
import time
from pathlib import Path
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 256)
    def forward(self, x):
        h = torch.zeros(x.shape[0], 256)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            time.sleep(0.004)
            if t == 20:
                Path(__file__).with_name("running").touch()
        return h
"""
RUNS = [
    {"of": "run", "stopped": stopped, "then": then}
    for then in ("goes on", "is cancelled", "is killed", "is cancelled while it is stopped")
    for stopped in ("while it pauses", "before the disk is full")
]
TRAININGS = [
    {"of": "training", "stopped": stopped, "then": then}
    for then in ("continues", "continues, the disk being full", "is killed")
    for stopped in ("while it pauses", "before it is asked to pause")
]


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Each once; of few others with another seed."""
    every = [case for pair in zip(TRAININGS, RUNS, strict=False) for case in pair] + RUNS[len(TRAININGS) :]
    yield from [*every[seed % len(every) :], *every[: seed % len(every)]][:count]


@contextmanager
def disk(folder: Path) -> Iterator[Path]:
    """A file system of a few megabytes in memory. Raises OSError where this user may not mount one."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode:
        raise OSError(f"no file system can be mounted: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def attempt(case: dict[str, Any], windows: Windows, scratch: Path) -> Outcome:
    """Try one on a disk of its own."""
    with disk(scratch / "disk") as small:
        wrong, said = _run(case, windows.get(), small) if case["of"] == "run" else _training(case, small)
    if wrong:
        return Outcome("lost", "; ".join(wrong)[:400])
    return Outcome("refused", said) if said else Outcome("survived")


class Windows:
    """The window of the runs, made for the first of them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, None  # type: ignore[var-annotated]

    def get(self) -> BeatingWindow:
        """It."""
        self._made = self._made or BeatingWindow(self._folder)
        return self._made


# -- runs


def _run(case: dict[str, Any], window: BeatingWindow, small: Path) -> tuple[list[str], str]:
    """(what was wrong, what the window said)."""
    session, model = window.session, small.parent / "model.py"
    model.write_text(MODEL)
    usual, session.shown._kept = session.shown._kept, KeptRuns(small / "runs")
    spec = InputSpec(kind="generated", value="noise", options={"steps": 700})
    session.open_subject(Load(subject=f"{model}:Model", trusted=True), spec)
    window.until((small.parent / "running").exists, PATIENCE, "the run")
    worker = session.worker.pid
    try:
        wrong = _stopped(case["stopped"], window, worker, small)
        window.rest(1.5)
        wrong += _went_on(case["then"], window, worker, small)
    finally:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)
    (small / "of another").unlink(missing_ok=True)
    said = session.sentence
    wrong += [f"no plain sentence: {said!r}"] * (not is_one_sentence(said))
    whole = case["then"] == "goes on"
    for path in (small / "runs").glob("*.inspect"):
        wrong += _capture(path, whole=whole)
    wrong += ["there is no capture"] * (not list((small / "runs").glob("*.inspect")))
    wrong += _next_runs(window, small, usual)
    return wrong, "" if whole else said


def _stopped(when: str, window: BeatingWindow, worker: int, small: Path) -> list[str]:
    """Fill the disk and stop the worker; what was wrong."""
    if when == "before the disk is full":
        os.kill(worker, signal.SIGSTOP)
        fill(small)
        return []
    fill(small)
    window.until(lambda: _pauses(window.session), PATIENCE, "the pause")
    window.rest(6.0)
    shown = _pauses(window.session)
    os.kill(worker, signal.SIGSTOP)
    return ["it does not show that it pauses"] * (not shown)


def _next_runs(window: BeatingWindow, small: Path, usual: KeptRuns) -> list[str]:
    """What was wrong with another model's run there; then one on another disk, so that this one can be given back."""
    session, before = window.session, window.session.capture
    window.window.open_sample("char-elman")
    window.until(lambda: session.capture is not before and not session.busy, PATIENCE, "the next run")
    done = session.capture is not None and session.capture.status == "done"
    wrong = [f"the next run is not done: {session.sentence}"] * (not done)
    session.shown._kept = usual
    window.window.open_sample("char-elman")
    window.until(lambda: not session.busy and str(small) not in str(session.capture.path), PATIENCE, "the last run")
    return wrong


def _pauses(session: Any) -> bool:
    """Whether the status row says so."""
    return session.progress is not None and "the run pauses" in session.progress.text


def _went_on(then: str, window: BeatingWindow, worker: int, small: Path) -> list[str]:
    """What was wrong."""
    session = window.session
    began = time.monotonic()
    if then == "is cancelled while it is stopped":
        session.cancel()
    elif then == "is killed":
        os.kill(worker, signal.SIGKILL)
    else:
        if then == "goes on":
            (small / "of another").unlink()
        os.kill(worker, signal.SIGCONT)
        if then == "is cancelled":
            window.rest(0.5)
            session.cancel()
    window.until(lambda: not session.busy, PATIENCE, "the end")
    took, crowded = time.monotonic() - began, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    return [f"its end was told after {took:.1f} s"] * (then != "goes on" and took > 8 * crowded)


def _capture(path: Path, *, whole: bool) -> list[str]:
    try:
        with open_capture(path) as capture:
            wrong = [f"damaged: {one}" for one in capture.verify()[:1]]
            wrong += ["it is said to be running"] * (capture.status == "running")
            return wrong + [f"it is {capture.status}, not done"] * (whole and capture.status != "done")
    except CaptureError as problem:
        return [f"the capture does not open: {problem}"]


# -- trainings


def _training(case: dict[str, Any], small: Path) -> tuple[list[str], str]:
    """(what was wrong, what the watcher said)."""
    path, over = small / "a.inspect", small.parent / "over"
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(path), str(over)], stdout=subprocess.PIPE, text=True,
        env={**started_by_this(), "PYTHONPATH": os.pathsep.join(map(str, (HERE.parent.parent, HERE.parent / "support")))},
    )  # fmt: skip
    try:
        until((path / "index.sqlite").exists)
        until(lambda: _iterations(path) > 3)
        window = Controller(path)
        if case["stopped"] == "before it is asked to pause":
            process.send_signal(signal.SIGSTOP)
            window.send("pause")
            time.sleep(1.0)
            process.send_signal(signal.SIGCONT)
            until(lambda: _is_paused(path))
        else:
            window.send("pause")
            until(lambda: _is_paused(path))
            process.send_signal(signal.SIGSTOP)
        if case["then"] == "is killed":
            process.kill()
            process.communicate()
            return _capture(path, whole=False), ""
        if case["then"] == "continues, the disk being full":
            fill(small)
        with suppress(OSError):  # the disk has no room for a command: the one before holds, and the window is gone soon
            window.send("continue")
        time.sleep(0.5)
        process.send_signal(signal.SIGCONT)
        return _judged(process, path, over, window, small)
    finally:
        process.kill()
        process.wait()


def _judged(
    process: subprocess.Popen[str], path: Path, over: Path, window: Controller, small: Path
) -> tuple[list[str], str]:
    full = (small / "of another").exists()
    if full:
        time.sleep(3.0)
        (small / "of another").unlink()
        window.send("continue")
    at = _iterations(path)
    until(lambda: _iterations(path) > at)
    over.touch()
    out, _ = process.communicate(timeout=PATIENCE)
    told = json.loads(out.splitlines()[-1])
    wrong = [f"it ended with {process.returncode}"] * (process.returncode != 0)
    wrong += ["the training is another one"] * (told["bits"] != told["plain"])
    said = told["said"]
    wrong += [f"no plain sentence: {said!r}"] * (bool(said) and not is_one_sentence(said))
    return wrong + _capture(path, whole=not said), said


def _iterations(path: Path) -> int:
    with suppress(CaptureError), open_capture(path) as capture:
        return capture.extent("training:iteration")[0] if "training:iteration" in capture.channels else 0
    return 0


def _is_paused(path: Path) -> bool:
    with suppress(CaptureError), open_capture(path) as capture:
        kinds = [one.kind for one in capture.events if one.kind in ("paused", "continued")]
        return bool(kinds) and kinds[-1] == "paused"
    return False


def until(done: Callable[[], object]) -> None:
    """Wait for another process. Raises TimeoutError."""
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"it did not happen within {PATIENCE:.0f} s")
        time.sleep(0.05)


SECTIONS = [
    Section(
        "stops", "processes stopped while they pause, and disks that run full meanwhile", 4, len(RUNS) + len(TRAININGS),
        cases, Windows, attempt, seconds=6 * PATIENCE, kinds=len(RUNS) + len(TRAININGS),
    )
]  # fmt: skip
