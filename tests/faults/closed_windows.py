"""Windows that are closed and killed in every state: starting, with each dialog open, while something runs, is followed,
read or written.

The window is a process of its own, on its command's own path. After its end: no process of it is left, also none that a
model hid; every capture opens, with all that was shown, and nothing says that somebody still writes it; what it did not
make is byte for byte as before; what it wrote under a final name is whole; settings are kept; no traceback, no file of
an error. A training that it followed goes on.
"""

from __future__ import annotations

import configparser
import hashlib
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from campaign import HERE, Outcome, Section
from captures import numbers, write
from with_parent import started_by_this

from inspector.capture import CaptureError, open_capture
from inspector.capture.layout import PACKED_SUFFIX, SUFFIX
from inspector.workspace.trainings import find_training

DRIVER = HERE.parent / "support" / "driven_window.py"
ENDS = ("SIGKILL", "close", "SIGINT", "SIGTERM")
READY_SECONDS, GONE_SECONDS, ENDED_SECONDS = 120.0, 3.0, 10.0
"""For a state to be reached; for all processes to be gone after a kill; for an orderly end (a model that hangs is asked,
terminated and killed, a second each)."""
BUSY = {
    "slow.py": "[time.sleep(0.01) for _ in range(6000)]",
    "regex.py": 're.match(r"(a+)+$", "a" * 60 + "b")',
    "native.py": "ctypes.PyDLL(None).sleep(600)",
    "deaf.py": "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "            while True: time.sleep(0.1)",
    "daemons.py": 'os.fork() or (os.setsid(), os.fork() and os._exit(0), os.execve("/bin/sleep", ["sleep", "3600.{}"], {{}}))\n'
    "            while True: time.sleep(0.01)",
    "import.py": "pass",
}  # fmt: skip
MODEL = """
import ctypes, os, re, signal, sys, time
from pathlib import Path
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
            if t == 20:
                Path(__file__).with_name("running").touch()
                self.busy()
        return h
    def busy(self):
            {busy}
"""
AT_IMPORT = "\nwhile True:\n    time.sleep(0.01)\n"
TRAINING = """
import sys, time
from with_parent import ends_with_parent
ends_with_parent()
from pathlib import Path
import torch
from torch import nn
import inspector
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.RNN(2, 3, batch_first=True)
optimizer = torch.optim.SGD(model.parameters(), 0.001)
over, more = Path(sys.argv[2]), {"secret": Path(sys.argv[3]).read_text().strip()} if len(sys.argv) > 3 else {}
with inspector.watch(model, optimizer, sys.argv[1], every=1, probe=torch.randn(1, 4, 2), **more) as watcher:
    while not over.exists():
        model(torch.randn(2, 4, 2))[0].square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        print(watcher.iteration, flush=True)
        time.sleep(0.005)
"""
RUNNING = (
    "run in progress", "run that holds the interpreter", "run in native code", "run that ignores SIGTERM",
    "run with daemons", "run being cancelled", "run that cannot be cancelled", "quantities being computed", "preflight",
    "cure being tried", "cure of a training being tried", "sweep", "search for an answer", "worker imports torch",
    "run queued", "model being opened", "training followed", "training followed over tcp", "training paused",
    "window being closed",
)  # fmt: skip
SHORT = [(state, "SIGKILL") for state in RUNNING]
SHORT += [("starting", "SIGINT"), ("dialog: preferences", "close"), ("report being written", "SIGTERM")]
"""What CI tries: a kill in each state in which something runs, and an end of each other sort."""
TRAINED = "training-spike"
"""The recorded training for which a cure is tried."""


@dataclass(slots=True)
class Home:
    """What the cases of one process share."""

    folder: Path
    made: dict[str, Path] = field(default_factory=dict)

    def capture(self, name: str) -> Path:
        """A capture that no window made, made once."""
        if name not in self.made:
            self.made[name] = path = self.folder / f"{name}{SUFFIX}"
            if name == "training":
                found = find_training(TRAINED)
                assert found is not None
                shutil.copytree(found.capture, path)
            else:
                steps, units, rows = {"large": (40_000, 4, 2), "heavy": (60_000, 512, 500)}.get(name, (200, 8, 50))
                write(path, numbers(steps, units), rows=rows, run=name)
        return self.made[name]


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Every state with one end after another; starting, at moments of its own. Of few those that CI tries, and others
    with another seed."""
    states = _states()
    turns = [
        (state, ENDS[(place + turn) % len(ENDS)]) for turn in range(len(ENDS)) for place, state in enumerate(states)
    ]
    if count <= len(SHORT) and not seed:
        turns = SHORT
    elif count < len(states):
        first = seed % len(states)
        turns = [turns[(first + 11 * number) % len(states)] for number in range(count)]
    for number, (state, end) in enumerate(turns[:count]):
        chance = random.Random(seed * 1_000_003 + number)
        wait = chance.uniform(0.0, 1.6) if state == "starting" else chance.choice((0.0, 0.0, 0.05, 0.3))
        end = chance.choice(("SIGKILL", "SIGINT", "SIGTERM")) if state == "starting" and end == "close" else end
        yield {"state": state, "end": end, "wait": round(wait, 3), "screen": os.environ.get("FAULT_SCREEN", "")}


def _states() -> list[str]:
    from driven_window import STATES

    return [*STATES, *["starting"] * 5]


class Driven:
    """A window and who drives it."""

    def __init__(self, case: dict[str, Any], scratch: Path) -> None:
        self.scratch, self.state = scratch, case["state"]
        self.training: subprocess.Popen[str] | None = None
        self.notes: list[str] = []
        screen = (
            {"DISPLAY": case["screen"], "QT_QPA_PLATFORM": "xcb"}
            if case["screen"]
            else {"DISPLAY": ":none", "QT_QPA_PLATFORM": "offscreen:"}  # a command refuses a window on "offscreen"
        )
        user = {f"XDG_{name}_HOME": str(scratch / name.lower()) for name in ("CONFIG", "DATA", "CACHE", "STATE")}
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.process = subprocess.Popen(
            [sys.executable, str(DRIVER), self.state, str(scratch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=(scratch / "err").open("wb"), text=True, start_new_session=True, cwd=scratch,
            env={**started_by_this(), **user, **screen, "FAULT_MARK": str(scratch), "OMP_NUM_THREADS": "1",
                 "PYTHONPATH": str(HERE.parent.parent)},
        )  # fmt: skip
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def ready(self) -> dict[str, int]:
        """Wait for the state; the steps of the captures that are shown, by path. Raises ValueError."""
        end, waiting = time.monotonic() + READY_SECONDS, ""
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise ValueError(f"{self.state} was not reached: {waiting}") from None
            if not line:
                code, told = self.process.wait(10), "; ".join(_left_by_errors(self.scratch))
                raise ValueError(f"it ended with {code} before {self.state} was reached: {self.errors()[-300:]} {told}")
            said = json.loads(line) if line.startswith("{") else {"note": line.strip()}
            if "ready" in said:
                return dict(said["shown"])
            if "training" in said:
                self._train(said["training"], said.get("secret"))
            waiting = said.get("waiting", waiting)
            if "note" in said:
                self.notes.append(said["note"])
            if self.state == "starting" and "started" in said:
                return {}

    def _train(self, to: str, secret: str | None) -> None:
        words = [to, str(self.scratch / "over"), *([secret] if secret else [])]
        self.training = subprocess.Popen(
            [sys.executable, "-c", TRAINING, *words], stdout=(self.scratch / "iterations").open("w"), text=True,
            stderr=(self.scratch / "training-err").open("w"), start_new_session=True,
            env={**started_by_this(), "OMP_NUM_THREADS": "1",
                 "PYTHONPATH": os.pathsep.join(map(str, (HERE.parent.parent, DRIVER.parent)))},
        )  # fmt: skip

    def end(self, how: str) -> None:
        """Close it, or send a signal."""
        if how == "close":
            assert self.process.stdin is not None
            with suppress(BrokenPipeError):
                self.process.stdin.write("close\n")
                self.process.stdin.flush()
        else:
            self.process.send_signal(getattr(signal, how))

    def errors(self) -> str:
        """What was written to stderr."""
        return (self.scratch / "err").read_text("utf-8", "replace")


def attempt(case: dict[str, Any], home: Home, scratch: Path) -> Outcome:
    """Bring a window to a state, end it, look."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job: the window would ignore it too
        signal.signal(signal.SIGINT, signal.default_int_handler)
    token = f"{os.getpid()}{time.monotonic_ns() % 10**9}"
    before = _prepare(case["state"], home, scratch, token)
    driven = Driven(case, scratch)
    try:
        shown = driven.ready()
        time.sleep(case["wait"])
        driven.end(case["end"])
        return _judged(case, driven, shown, before, token)
    except ValueError as problem:
        return Outcome("lost", str(problem)[:4000])
    finally:
        _left(scratch, token, end=True)
        for process in (driven.process, driven.training):
            if process is not None:
                process.kill()
                process.wait()


def _prepare(state: str, home: Home, scratch: Path, token: str) -> dict[Path, str]:
    """What a state needs; the digests of all files that the window did not make."""
    for name, busy in BUSY.items():
        text = MODEL.format(busy=busy.format(token)) + (AT_IMPORT if name == "import.py" else "")
        (scratch / name).write_text(text)
    needed = {
        "large capture being opened": ["large"], "capture being packed": ["heavy"], "capture being saved": ["heavy"],
        "cure of a training being tried": ["training"],
    }.get(state, ["kept", "other"])  # fmt: skip
    for name in needed:
        copied = shutil.copy2 if name == "training" else os.link
        shutil.copytree(home.capture(name), scratch / f"{name}{SUFFIX}", copy_function=copied)
    (scratch / "config" / "inspector").mkdir(parents=True)
    (scratch / "config" / "inspector" / "window.ini").write_text("[choice]\nmarker=kept\n")
    return {path: _digest(path) for path in sorted(scratch.rglob("*")) if path.is_file() and path.suffix != ".ini"}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _judged(
    case: dict[str, Any], driven: Driven, shown: dict[str, Any], before: dict[Path, str], token: str
) -> Outcome:
    state, how, scratch = case["state"], case["end"], driven.scratch
    began, killed = time.monotonic(), how == "SIGKILL"
    try:
        code = driven.process.wait(ENDED_SECONDS + (5.0 if state in SLOW_TO_ANSWER else 0.0))
    except subprocess.TimeoutExpired:
        driven.process.send_signal(signal.SIGABRT)  # its threads' stacks are left in a file
        driven.process.wait(10)
        where = "; ".join(_left_by_errors(scratch))
        return Outcome(
            "lost", f"it did not end {time.monotonic() - began:.0f} s after {how}: {driven.errors()} {where}"
        )
    ended = time.monotonic()
    while (left := _left(scratch, token)) and time.monotonic() - ended < GONE_SECONDS:
        time.sleep(0.02)
    gone = time.monotonic() - ended
    problems = [f"left behind {gone:.1f} s after the end: {left}"] * bool(left)
    problems += [f"it ended with {code}"] * (code not in _codes(state, how))
    problems += _said(driven.errors()) + _user_files(scratch, orderly=not killed and state not in EARLY)
    problems += _threads_left(scratch) + _training_goes_on(driven, scratch)
    problems += [f"{path.name} has changed" for path, digest in before.items() if _changed(state, path, digest)]
    while (wrong := _captures(scratch, shown)) and time.monotonic() - ended < GONE_SECONDS:
        time.sleep(0.05)  # a process that was killed is there until its memory was given back
    problems += wrong + driven.notes
    if problems:
        return Outcome("lost", "; ".join(problems)[:4000])
    return Outcome("survived", f"ended in {ended - began:.2f} s, all gone {gone:.2f} s later")


EARLY = ("starting", "panels being made", "worker imports torch", "run queued")
"""States in which there may be no panels yet, so that no layout is remembered."""
SLOW_TO_ANSWER = ("capture being packed", "capture being saved")
"""States in which the window's own thread is busy for some seconds."""


def _codes(state: str, how: str) -> tuple[int, ...]:
    """Exit codes that are right. A command that is interrupted before its window stands ends as any command does."""
    if how in ("close", "SIGKILL"):
        return (0,) if how == "close" else (-signal.SIGKILL,)
    early = {"SIGINT": (130, -signal.SIGINT), "SIGTERM": (-signal.SIGTERM, 143)}[how]
    return (0, *early) if state == "starting" else (0,)


def _said(errors: str) -> list[str]:
    bad = [
        word
        for word in ("Traceback", "Fatal Python", "terminate called", "QThread: Destroyed", "core dumped")
        if word in errors
    ]
    return [f"stderr: {errors.strip()[-400:]}"] * bool(bad)


def _user_files(scratch: Path, *, orderly: bool) -> list[str]:
    """Settings are kept, in an orderly end the layout too; no file of an error."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string((scratch / "config" / "inspector" / "window.ini").read_text())
    problems = ["a setting is lost"] * (parser.get("choice", "marker", fallback="") != "kept")
    problems += ["the layout was not remembered"] * (orderly and not parser.get("General", "geometry", fallback=""))
    return problems + _left_by_errors(scratch)


def _left_by_errors(scratch: Path) -> list[str]:
    """The ends of the files that errors of the window leave, and crashes of native code."""
    files = {file.name: file.read_text("utf-8", "replace") for file in (scratch / "state").rglob("*.txt")}
    return [
        f"{name}: {text[:1200]} … {text[-1500:]}"
        for name, text in files.items()
        if name.startswith("error-") or text.strip()
    ]


def _threads_left(scratch: Path) -> list[str]:
    """The threads that worked when its interpreter ended, which a crash may come of."""
    from driven_window import THREADS

    file = scratch / THREADS
    left = file.read_text("utf-8").split("\n") if file.exists() else []
    return [f"threads were left as it ended: {', '.join(left)}"] * any(left)


def _training_goes_on(driven: Driven, scratch: Path) -> list[str]:
    """A training that was followed takes no notice; one that waits for the window goes on without it."""
    if driven.training is None:
        return []
    waits = 25.0 if driven.state == "training paused" else 5.0
    seen, end = _iterations(scratch), time.monotonic() + waits
    while _iterations(scratch) <= seen and time.monotonic() < end and driven.training.poll() is None:
        time.sleep(0.05)
    went_on = _iterations(scratch) > seen
    (scratch / "over").touch()
    try:
        code = driven.training.wait(20)
    except subprocess.TimeoutExpired:
        return ["the training does not end"]
    errors = (scratch / "training-err").read_text()
    problems = ["the training did not go on"] * (not went_on)
    return problems + [f"the training ended with {code}: {errors[-300:]}"] * (code != 0 or "Traceback" in errors)


def _iterations(scratch: Path) -> int:
    words = (scratch / "iterations").read_text().rpartition("\n")[0].split()
    return int(words[-1]) if words else 0


def _changed(state: str, path: Path, digest: str) -> bool:
    """Whether a file that the window did not make is another one; a cure is put into the capture of its training."""
    if state == "cure of a training being tried" and f"training{SUFFIX}" in path.parts:
        return False
    return not path.exists() or _digest(path) != digest


def _captures(scratch: Path, shown: dict[str, Any]) -> list[str]:
    """Every capture opens, is whole, and is not said to be running; what was shown of it is there."""
    problems = []
    found = [*scratch.rglob(f"*{SUFFIX}"), *scratch.rglob(f"*{PACKED_SUFFIX}")]
    for path in found:
        try:
            with open_capture(path) as capture:
                extents = {name: capture.extent(name)[0] for name in capture.channels}
                problems += [f"{path.name}: {one}" for one in capture.verify()[:2]]
                problems += [f"{path.name} is said to be running"] * (capture.status == "running")
                short = {name: n for name, n in shown.get(str(path), {}).items() if extents.get(name, 0) < n}
                problems += [f"{path.name} had more: {short}"] * bool(short)
                if path.name.startswith(("packed", "saved")):
                    right = np.array_equal(np.asarray(capture.array("rnn.l0:h")), numbers(60_000, 512))
                    problems += [f"{path.name} has other numbers"] * (not right)
        except CaptureError as problem:
            problems.append(f"{path.name} does not open: {problem}")
    missing = [path for path in shown if not any(str(one) == path for one in found)]
    return problems + [f"{path} is gone" for path in missing]


def _left(scratch: Path, token: str, *, end: bool = False) -> list[str]:
    """Processes of a case that are there: by a mark in their environment, and what hid from that by its last word."""
    found = []
    mark, hidden = f"FAULT_MARK={scratch}".encode(), f"3600.{token}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            if words and (mark in (entry / "environ").read_bytes().split(b"\0") or hidden in words.split(b"\0")):
                found.append(words.replace(b"\0", b" ").decode("utf-8", "replace")[-60:])
                if end:
                    os.kill(int(entry.name), signal.SIGKILL)
    return found


SECTIONS = [
    Section(
        "windows", "windows closed and killed in every state", len(SHORT), 200, cases, Home, attempt,
        seconds=READY_SECONDS + ENDED_SECONDS + 60,
    )
]  # fmt: skip
