"""How things end: what a model started goes with its worker, Ctrl-C is no fault, and a crash names its line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from workers import Parent

from inspector.capture import open_capture
from inspector.records import InputSpec, Load, Loaded, Run
from inspector.transport.process import LOST_SECONDS, Exit, _where, explain

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc, process groups and signals")
MODELS = """
import ctypes, signal, subprocess, sys, time
from pathlib import Path
import torch
from torch import nn

class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(3, 4)
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            self.at(t)
        return h
    def at(self, t):
        time.sleep(0.02)

class Crashes(Slow):
    def at(self, t):
        if t == 40:
            time.sleep(0.5)
            _crash()

def _crash():
    torch.zeros(2).apply_(_inner)

def _inner(_value):
    ctypes.string_at(0)

class Starts(nn.RNN):
    def __init__(self):
        super().__init__(3, 4)
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(300)"
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        child.stdout.readline()
        Path(__file__).with_name("pid").write_text(str(child.pid))
"""
INNERMOST = 1 + next(n for n, line in enumerate(MODELS.splitlines()) if "string_at" in line)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "models.py").write_text(MODELS)
    return tmp_path / "models.py"


@pytest.fixture
def parent() -> Iterator[Parent]:
    made = Parent()
    yield made
    made.worker.close()


def is_running(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process is gone, or goes within some time."""
    end = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not is_running(pid)


@pytest.mark.parametrize("how", ["asked", "killed"])
def test_what_a_model_started_ends_with_its_worker(parent: Parent, file: Path, how: str) -> None:
    parent.worker.send(Load(subject=f"{file}:Starts", trusted=True))
    parent.wait(Loaded)
    grandchild = int(file.with_name("pid").read_text())
    assert is_running(grandchild)
    if how == "killed":
        os.kill(parent.worker.pid, signal.SIGKILL)
        parent.wait(Exit)
    else:
        parent.worker.close()
    try:
        assert gone(grandchild)
    finally:
        if is_running(grandchild):
            os.kill(grandchild, signal.SIGKILL)


def test_a_crash_names_the_line_of_the_model(parent: Parent, file: Path) -> None:
    parent.worker.send(Load(subject=f"{file}:Crashes", trusted=True))
    parent.wait(Loaded)
    spec = InputSpec(kind="generated", value="noise", options={"steps": 60})
    parent.worker.send(Run(path=str(file.with_name("a.inspect")), input=spec))
    ended = parent.wait(Exit)
    assert f"(segmentation fault) at models.py, line {INNERMOST};" in ended.sentence
    assert "Current thread" in ended.stack


STACK = """Fatal Python error: Segmentation fault

Thread 0x00007f1 (most recent call first):
  File "/home/me/other.py", line 3 in waits

Current thread 0x00007f2 (most recent call first):
  File "/v/lib/python3.{minor}/ctypes/__init__.py", line 530 in string_at
  File "/v/lib/site-packages/torch/nn/modules/module.py", line 9 in _call_impl
  File "/home/me/model.py", line 17 in inner
  File "/home/me/train.py", line 4 in forward
"""


def test_the_line_is_the_innermost_one_that_is_the_users() -> None:
    assert _where(STACK.format(minor=sys.version_info[1])) == "model.py, line 17"
    assert _where(STACK.partition("Current")[0]) == "" and _where("") == ""
    assert " at model.py, line 17; what" in explain(-signal.SIGSEGV, where="model.py, line 17")


def test_a_file_that_is_cut_while_it_is_mapped_is_named_as_the_reason() -> None:
    assert "lost a file that it was reading (the file changed meanwhile)" in explain(-signal.SIGBUS)


def test_ctrl_c_ends_the_run_with_130_and_keeps_what_came(file: Path) -> None:
    arguments = [sys.executable, "-m", "inspector", "run", f"{file}:Slow", "--generate", "noise"]
    arguments += ["--option", "steps=2000", "--out", "a.inspect"]
    running = subprocess.Popen(arguments, cwd=file.parent, stderr=subprocess.PIPE, text=True, start_new_session=True)
    end = time.monotonic() + 100
    target = file.with_name("a.inspect")
    while running.poll() is None and time.monotonic() < end and not any(target.glob("pages-*")):
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    try:
        _, told = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130, told
    assert re.search(rf"Interrupted. {re.escape(str(target))}: \d+ channels?, .*(cancelled|unfinished)", told), told
    assert "Traceback" not in told
    with open_capture(target) as capture:
        assert capture.extent("cell:h")[0] > 0 and capture.status in ("cancelled", "unfinished")


def test_a_worker_that_has_ended_is_no_lost_connection_however_late_its_end_is_told(parent: Parent, file: Path) -> None:
    """The process above it, which tells how it ended, does not come to its turn for longer than the pipe is waited for."""
    parent.worker.send(Load(subject=f"{file}:Slow", trusted=True))
    parent.wait(Loaded)
    above = parent.worker.pid
    worker = int(Path(f"/proc/{above}/task/{above}/children").read_text().split()[0])
    os.kill(above, signal.SIGSTOP)
    try:
        os.kill(worker, signal.SIGKILL)
        time.sleep(3 * LOST_SECONDS)
    finally:
        os.kill(above, signal.SIGCONT)
    ended = parent.wait(Exit)
    assert ended.code == -signal.SIGKILL and "killed" in ended.sentence and "connection" not in ended.sentence
