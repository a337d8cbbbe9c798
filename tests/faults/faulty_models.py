"""Models that raise, exit, crash, hang, flood, take memory, leave children behind or harm the process that runs them.

Each is run by the command line in a process group of its own, with a sentence for an end, a capture that opens and no
process left as the aim. One that hangs is interrupted as by Ctrl+C.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from campaign import Outcome, Section, is_one_sentence

from inspector.capture import CaptureError, open_capture

MODEL = """
import ctypes, gc, mmap, os, re, signal, subprocess, sys, tempfile, threading, time, warnings
import torch
from torch import nn

kept = []

def fault():
    {fault}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        {in_constructor}
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            if t == 20:
                {in_forward}
        return h
    def __del__(self):
        {in_destructor}
{at_import}
"""
FAULTS = {
    "raises": 'raise RuntimeError("no \\x1b[2J luck\\n" * 3000)',
    "raises without a text": "raise Exception",
    "raises an interrupt": "raise KeyboardInterrupt",
    "raises what is no Exception": 'raise type("Odd", (BaseException,), {})("odd")',
    "raises what cannot be told": 'raise type("Mute", (Exception,), {"__str__": lambda self: 1 / 0})()',
    "sys.exit": "sys.exit(0)",
    "sys.exit with a text": 'sys.exit("bye")',
    "os._exit": "os._exit(0)",
    "os._exit 7": "os._exit(7)",
    "segmentation fault": "ctypes.string_at(0)",
    "abort": "os.abort()",
    "a mapped file that is cut": "f = tempfile.TemporaryFile(); f.truncate(8192); m = mmap.mmap(f.fileno(), 8192); f.truncate(0); m[5000]",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "os.kill(os.getpid(), signal.SIGTERM)",
    "recursion": "fault()",
    "recursion without a limit": "sys.setrecursionlimit(10**9); fault()",
    "loop": "while True: time.sleep(0.01)",
    "busy loop": "while True: pass",
    "loop that holds the interpreter": 're.match(r"(a+)+$", "a" * 60 + "b")',
    "native code that holds the interpreter": "ctypes.PyDLL(None).sleep(600)",
    "ignores being ended": "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)\n    while True: time.sleep(0.1)",
    "reads the keyboard": "input()",
    "floods stdout": 'os.write(1, b"x" * 5_000_000)',
    "floods stdout with a gigabyte": 'for _ in range(1000): os.write(1, b"x" * (1 << 20))',
    "floods stderr by lines": 'os.write(2, b"line\\n" * 1_000_000)',
    "prints control characters": 'print("\\x1b[2J\\x1b]0;owned\\x07\\r\\x9b31m")',
    "closes stdout": "os.close(1)",
    "closes stderr": "os.close(2)",
    "closes its descriptors": "os.closerange(3, 256)",
    "overwrites its descriptors": 'n = os.open(os.devnull, os.O_RDWR); [os.dup2(n, k) for k in range(3, 40) if k != n]',
    "replaces sys.stdout": "sys.stdout = None; sys.stderr = None",
    "a child that stays": 'subprocess.Popen(["sleep", "600"])',
    "a child that is a daemon": 'subprocess.Popen(["sleep", "600"], start_new_session=True)',
    "a fork that goes on": "os.fork() or time.sleep(600)",
    "a thread that stays": "threading.Thread(target=time.sleep, args=(600,)).start()",
    "leaves its folder": 'os.chdir("/")',
    "removes its folder": 'import tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)',
    "empties sys.modules": 'sys.modules.clear()',
    "replaces builtins": 'import builtins; builtins.open = None; builtins.len = None',
    "replaces torch.no_grad": "torch.no_grad = None",
    "takes memory without end": "kept = []\n    while True: kept.append(bytearray(50_000_000))",
    "asks for a terabyte": "torch.zeros(1 << 38)",
    "warnings as errors": 'warnings.simplefilter("error"); warnings.warn("now")',
    "other dtype from here on": "torch.set_default_dtype(torch.float64)",
    "inference mode from here on": "torch.inference_mode().__enter__()",
    "no gradients from here on": "torch.set_grad_enabled(False)",
    "cpu time limit": "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n    while True: pass",
    "file size limit": "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))",
    "descriptor limit": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))",
    "collector off and cycles": "gc.disable(); [[].append(0) for _ in range(10)]",
    "profile hook that raises": "sys.setprofile(lambda *_: 1 / 0)",
    "trace hook that raises": "sys.settrace(lambda *_: 1 / 0)",
    "alarm": "signal.alarm(1); time.sleep(3)",
    "removes torch from sys.modules": '[sys.modules.pop(n) for n in list(sys.modules) if n.partition(".")[0] == "torch"]',
    "empties os.environ": "os.environ.clear()",
    "closes its standard files": "os.closerange(0, 3)",
    "other device from here on": 'torch.set_default_device("meta")',
    "handles every signal": "[signal.signal(n, lambda *_: None) for n in set(signal.Signals) - {9, 19}]",
    "a fork that returns": "os.fork()",
    "empties sys.path": "sys.path.clear()",
    "empties sys.meta_path": "sys.meta_path.clear(); sys.path_importer_cache.clear()",
    "no recursion": "sys.setrecursionlimit(len(__import__('inspect').stack()) + 12)",
    "replaces time": "time.monotonic = time.time = time.perf_counter = lambda: 0.0",
    "replaces torch.zeros": "torch.zeros = torch.Tensor.numpy = torch.Tensor.detach = None",
    "replaces threading": "threading.Thread = threading.Event = threading.Lock = None",
    "replaces sqlite3 and json": "import sqlite3, json; sqlite3.connect = json.dumps = json.loads = None",
    "replaces os": "os.write = os.open = os.stat = os.getpid = None",
    "errors of numpy": "import numpy; numpy.seterr(all='raise')",
    "no file may be made": "os.umask(0o777)",
    "stops itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "waits for its own lock": "k = threading.Lock(); k.acquire(); k.acquire()",
    "ends its parent": "os.kill(os.getppid(), signal.SIGKILL)",
    "an exit that hangs": "import atexit; atexit.register(time.sleep, 600)",
    "deterministic from here on": "torch.use_deterministic_algorithms(True)",
    "anomalies from here on": "torch.autograd.set_detect_anomaly(True)",
    "a generator that is closed by raising": "sys.unraisablehook = sys.excepthook = threading.excepthook = None",
    "leaves its session": "os.setsid() if os.getpid() != os.getsid(0) and os.getpgrp() != os.getpid() else os.setpgid(0, 0)",
    "takes memory in a child": "os.fork() or [kept := []] and [kept.append(bytearray(50_000_000)) for _ in iter(int, 1)]",
    "a thread that raises": "threading.Thread(target=lambda: 1 / 0).start()",
    "no thread more": "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))",
    "little memory": "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20)); bytearray(50_000_000)",
    "no memory at all": "import resource; kept[:] = [None] * 3_000_000; places = iter(range(3_000_000)); resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))\n    for size in [1 << n for n in range(26, 3, -1)]:\n        try:\n            while True: kept[next(places)] = bytearray(size)\n        except MemoryError: pass",
}  # fmt: skip
PLACES = ("forward", "import", "constructor", "destructor")
HANGS = {
    "stops itself",
    "waits for its own lock",
    "recursion without a limit",
    "loop",
    "busy loop",
    "loop that holds the interpreter",
    "native code that holds the interpreter",
    "ignores being ended",
}
PATIENCE, AT_ONCE, AFTER_INTERRUPT = 60.0, 12.0, 12.0
"""Seconds for a run; after which one that hangs is interrupted; and that it may take to end then."""


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Every fault in the call, then the others where they can be."""
    pairs = [(fault, "forward") for fault in FAULTS] + [(fault, place) for place in PLACES[1:] for fault in FAULTS]
    if count < len(FAULTS):
        pairs = pairs[seed % len(FAULTS) : len(FAULTS)][:: max(1, len(FAULTS) // count)]
    for fault, place in pairs[:count]:
        yield {"fault": fault, "place": place}


def written(case: dict[str, Any], file: Path) -> None:
    """The model's file."""
    calls = {f"in_{place}" if place != "import" else "at_import": "pass" for place in PLACES}
    calls["at_import"] = "fault()" if case["place"] == "import" else ""
    if case["place"] != "import":
        calls[f"in_{case['place']}"] = "fault()"
    file.write_text(MODEL.format(fault=FAULTS[case["fault"]], **calls))


def attempt(case: dict[str, Any], _prepared: None, scratch: Path) -> Outcome:
    """Run it; see how it ended, what was said, what is left."""
    file, to = scratch / "model.py", scratch / "a.inspect"
    written(case, file)
    command = [
        sys.executable, "-m", "inspector", "run", f"{file}:Model", "--generate", "noise", "--option", "steps=40",
        "--out", str(to),
    ]  # fmt: skip
    run = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=(scratch / "out").open("wb"), stderr=(scratch / "err").open("wb"),
        start_new_session=True, env={**os.environ, "FAULT_MARK": str(scratch)},
    )  # fmt: skip
    began, interrupted = time.monotonic(), 0.0
    crowded = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # a busy machine gives everybody less
    while run.poll() is None:
        time.sleep(0.05)
        now = time.monotonic()
        if not interrupted and now - began > min(AT_ONCE * crowded, PATIENCE):
            interrupted = now
            run.send_signal(signal.SIGINT)
        if interrupted and now - interrupted > AFTER_INTERRUPT:
            left_behind(scratch, end=True)
            run.wait(10)
            return Outcome("lost", f"did not end {AFTER_INTERRUPT:.0f} s after Ctrl+C")
    return _judged(case, run.returncode, bool(interrupted), scratch)


def _judged(case: dict[str, Any], code: int, interrupted: bool, scratch: Path) -> Outcome:
    errors = (scratch / "err").read_bytes().decode("utf-8", "replace").replace("\r", "\n")
    last = next((line for line in reversed(errors.splitlines()) if line.strip() and line != "line"), "")
    time.sleep(0.3)
    if left := left_behind(scratch, end=True):
        time.sleep(1.5)
        return Outcome("lost", f"processes are left: {left}"[:300])
    if code not in (0, 1, 2, 130):
        return Outcome("lost", f"the command ended with {code}: {last[:200]}")
    if code in (1, 2) and not is_one_sentence(last):
        return Outcome("lost", f"said no plain sentence: {last[:300]!r}")
    with suppress(FileNotFoundError):
        if (scratch / "a.inspect").exists():
            try:
                with open_capture(scratch / "a.inspect") as capture:
                    if damaged := capture.verify():
                        return Outcome("lost", f"the capture is damaged: {damaged[0][:200]}")
                    if code == 0 and capture.status != "done":
                        return Outcome("lost", f"ended with 0, and the capture is {capture.status}")
            except CaptureError as error:
                return Outcome("lost", f"the capture does not open: {error}")
    if interrupted and case["fault"] not in HANGS | {"takes memory without end"}:
        return Outcome("lost", f"had to be interrupted: {last[:200]}")
    return Outcome("survived") if code == 0 else Outcome("refused", last[:300])


def left_behind(scratch: Path, *, end: bool, but: Collection[int] = ()) -> list[str]:
    """Processes of this case that are still there, by a mark in their environment, without some that are right."""
    found = []
    mark = f"FAULT_MARK={scratch}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in but:
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")[-80:])
                    if end:
                        os.kill(int(entry.name), signal.SIGKILL)
    return found


SECTIONS = [
    Section("models", "faulty models", 2, 60, cases, lambda _folder: None, attempt, seconds=90.0, kinds=len(FAULTS)),
]
