"""Models that raise, exit, crash, hang, flood or harm their process, as a window tells it, one after another in one window.

After each: the window has said how it ended in one plain sentence, at most half a second after it was over; the capture
opens and nothing says that somebody still writes it; the next run, of another model, works; and once its worker has
ended no process of it is left within two seconds. In the long form each has a worker of its own, in the short one the
worker that the one before has left, if it left one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from beating_window import BeatingWindow
from campaign import Outcome, Section, is_one_sentence
from faulty_models import FAULTS, HANGS, MODEL, PLACES, left_behind

from inspector.capture import CaptureError, open_capture
from inspector.gui.widgets.plain_text import clean
from inspector.records import InputSpec, Load
from inspector.transport.interpreter import VARIABLE
from inspector.transport.memory import MEMORY

AT_IMPORT, IN_CONSTRUCTOR = "hangs while it is imported", "ends while it is made"
PLACED = {AT_IMPORT: ("loop", "import"), IN_CONSTRUCTOR: ("os._exit 7", "constructor")}
"""Faults elsewhere than in the call: which, and where."""
NO_INTERPRETER = "there is no interpreter"
SHADOWS = "its folder has files called queue.py, sqlite3.py and json.py"
TRIED = (
    "raises", "raises without a text", "raises an interrupt", "raises what is no Exception", "raises what cannot be told",
    "sys.exit", "sys.exit with a text", "os._exit", "os._exit 7", "segmentation fault", "abort", "killed", "terminated",
    "recursion", "loop", "busy loop", "loop that holds the interpreter", "ignores being ended", "reads the keyboard",
    "floods stdout", "floods stderr by lines", "prints control characters", "closes stdout", "closes stderr",
    "closes its descriptors", "overwrites its descriptors", "replaces sys.stdout", "a child that stays",
    "a child that is a daemon", "a fork that goes on", "a thread that stays", "leaves its folder", "empties sys.modules",
    "replaces builtins", "takes memory without end", "asks for a terabyte", "cpu time limit", "descriptor limit", "alarm",
    SHADOWS,
    # what a call changes of its worker, which is put back, and what it can never put back
    "removes its folder", "replaces torch.no_grad", "warnings as errors", "other dtype from here on",
    "inference mode from here on", "no gradients from here on", "file size limit", "collector off and cycles",
    "profile hook that raises", "trace hook that raises", "removes torch from sys.modules", "empties os.environ",
    "closes its standard files", "other device from here on", "handles every signal", "a fork that returns",
    "empties sys.path", "empties sys.meta_path", "no recursion", "replaces time", "replaces torch.zeros",
    "replaces threading", "replaces sqlite3 and json", "replaces os", "errors of numpy", "no file may be made",
    "stops itself", "waits for its own lock", "ends its parent", "an exit that hangs", "deterministic from here on",
    "anomalies from here on", "a generator that is closed by raising", "leaves its session", "a thread that raises",
    "no thread more", "little memory", "no memory at all",
    # ends of other kinds, and places before the call
    "a mapped file that is cut", "recursion without a limit", "native code that holds the interpreter",
    "floods stdout with a gigabyte", "takes memory in a child", AT_IMPORT, IN_CONSTRUCTOR, NO_INTERPRETER,
)  # fmt: skip
SHORT = (
    "segmentation fault", "abort", "a mapped file that is cut", "recursion without a limit", "killed", "terminated",
    "os._exit", "os._exit 7", "sys.exit", "sys.exit with a text", NO_INTERPRETER,
    "loop", "loop that holds the interpreter", "native code that holds the interpreter", "ignores being ended",
    "floods stdout", "floods stderr by lines", "a child that stays", "a child that is a daemon", "a fork that goes on",
    "reads the keyboard", AT_IMPORT, "stops itself", "waits for its own lock",
    "asks for a terabyte", "little memory", "takes memory without end", SHADOWS,
    "raises", "raises an interrupt", "raises what cannot be told", IN_CONSTRUCTOR, "closes its descriptors",
    "overwrites its descriptors", "closes its standard files", "replaces threading", "empties sys.modules",
    "descriptor limit", "ends its parent", "handles every signal",
)  # fmt: skip
"""What CI tries, in this order: ends of every kind, hangs, floods, what is left behind, memory, and what is changed of the
worker's process."""
LEAVES = ("a child that stays", "a child that is a daemon", "a fork that goes on")
"""Of these what starts processes that are right to be there while their worker is."""
TOLD_SECONDS, GONE_SECONDS, CANCELLED_SECONDS = 0.5, 2.0, 4.0
"""From the end of a worker, or of a run that raises, until the window tells it; until no process is left; and from a
cancel until the window tells its end: it asks for two seconds, then ends the worker."""
PATIENCE = 90.0
"""Until the fault is come to, and from there until the run's end; the longest here, an import of torch on a busy machine,
takes 20."""
MEMORY_GB = "2.5"
"""What a worker may take here: others use the machine too."""


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Every fault, twice: what the first leaves must not change the second. Of few those that CI tries, and others with
    another seed."""
    chosen = [{"fault": fault, "turn": turn} for turn in (1, 2) for fault in TRIED]
    if count <= len(SHORT) and not seed:  # a worker that one of them leaves is the next one's
        chosen = [{"fault": fault, "turn": 1, "kept": True} for fault in SHORT]
    elif count < len(TRIED):
        first = seed % len(TRIED)
        chosen = (chosen[first : len(TRIED)] + chosen[:first])[:: max(1, len(TRIED) // count)]
    yield from chosen[:count]


def prepare(folder: Path) -> BeatingWindow:
    """The window; what it starts has a mark."""
    os.environ.update({"FAULT_MARK": str(folder), MEMORY: MEMORY_GB})
    return BeatingWindow(folder)


def written(case: dict[str, Any], folder: Path) -> Path:
    """The model's file; it notes the moment before its fault."""
    name, where = PLACED.get(case["fault"], (case["fault"], "forward"))
    calls = {f"in_{place}" if place != "import" else "at_import": "pass" for place in PLACES}
    calls["at_import"] = ""
    calls["at_import" if where == "import" else f"in_{where}"] = 'open(__file__ + ".at", "w").write("now"); fault()'
    if case["fault"] == SHADOWS:
        for name in ("queue", "sqlite3", "json"):
            (folder / f"{name}.py").write_text("raise RuntimeError('the wrong file')\n")
    file = folder / "model.py"
    file.write_text(MODEL.format(fault=FAULTS.get(name, "pass"), **calls))
    return file


def attempt(case: dict[str, Any], window: BeatingWindow, scratch: Path) -> Outcome:
    """Run it in the window; then another model; then end the worker, unless the next case has it."""
    fault = case["fault"]
    try:
        if fault == NO_INTERPRETER:
            os.environ[VARIABLE] = str(scratch / "none" / "python")
        if not case.get("kept") or fault == NO_INTERPRETER:
            _end_worker(window)
        said, wrong = _ran(case, window, scratch)
        os.environ.pop(VARIABLE, None)
        wrong += _next_run(window)
        if not case.get("kept") or fault in LEAVES:
            _end_worker(window)
        wrong += _left(scratch.parent, window)
    finally:
        os.environ.pop(VARIABLE, None)
    if wrong:
        return Outcome("lost", "; ".join(wrong)[:400])
    shown = window.session.capture
    assert shown is not None
    return Outcome("refused" if said else "survived", said)


def _ran(case: dict[str, Any], window: BeatingWindow, folder: Path) -> tuple[str, list[str]]:
    """(what the window said, what was wrong)."""
    session, file = window.session, written(case, folder)
    at, before = Path(f"{file}.at"), session.capture
    spec = InputSpec(kind="generated", value="noise", options={"steps": 40})
    session.open_subject(Load(subject=f"{file}:Model", trusted=True), spec)
    window.until(lambda: at.exists() or not session.busy, PATIENCE, "coming to the fault")
    worker, cancelled = session.worker, 0.0
    if case["fault"] in {AT_IMPORT, *HANGS}:
        window.rest(0.3)
        session.cancel()
        cancelled = time.monotonic()
    over, until = 0.0, time.monotonic() + PATIENCE
    while session.waited_for:  # not a model that another worker opens again by itself; the moment at which it was over is seen before the window has its turn
        if not over and (worker is None or not _lives(worker.pid)):
            over = time.monotonic()
        window.application.processEvents()
        if time.monotonic() > until:
            lives = worker is not None and _lives(worker.pid)
            return "", [
                f"no end is told after {PATIENCE:.0f} s, the worker {'lives' if lives else 'is gone'}: {session.sentence}"
            ]
        time.sleep(0.001)
    took = time.monotonic() - (cancelled or over or time.monotonic())
    crowded = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # a busy machine gives everybody less
    crowded *= 2.0 if case.get("kept") else 1.0  # other tests begin and end beside the short form
    wrong = [f"told {took:.2f} s after its end"] * (took > (CANCELLED_SECONDS if cancelled else TOLD_SECONDS) * crowded)
    window.rest(0.05)
    said = clean(session.sentence)  # as it is shown
    wrong += [f"no plain sentence: {said[:200]!r}"] * (not is_one_sentence(said))
    if session.capture is not None and session.capture is not before:
        wrong += _settled(session.capture.path, window)
        if session.capture.status == "done":
            return "", wrong
    return said, wrong


def _settled(path: Path, window: BeatingWindow) -> list[str]:
    """What is wrong with a capture once its worker is gone: a cancel that was not answered is told while it is killed."""
    end = time.monotonic() + GONE_SECONDS
    while (wrong := _opens(path)) and time.monotonic() < end:
        window.rest(0.05)
    return wrong


def _opens(path: Path) -> list[str]:
    try:
        with open_capture(path) as capture:
            running = ["it is said to be running"] * (capture.status == "running")
            return running + [f"damaged: {one}"[:100] for one in capture.verify()[:1]]
    except CaptureError as problem:
        return [f"the capture does not open: {problem}"]


def _lives(pid: int | None) -> bool:
    """Whether a process is there, and no mere entry of one that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return False


def _next_run(window: BeatingWindow) -> list[str]:
    """Another model in the same window."""
    window.window.open_sample("char-elman")
    session, before = window.session, window.session.capture
    try:
        window.until(lambda: session.capture is not before and not session.busy, PATIENCE, "the next run")
    except TimeoutError as late:
        return [f"the next run does not end: {late}"]
    window.rest(0.1)
    done = session.capture is not None and session.capture.status == "done"
    return [f"the next run is not done: {session.sentence}"] * (not done)


def _end_worker(window: BeatingWindow) -> None:
    window.session.connection.end()
    window.until(lambda: window.session.connection.wait_for_end(0.0), 30, "the end of the worker")


def _left(mark: Path, window: BeatingWindow) -> list[str]:
    """Processes that are there two seconds after the end of their worker; the one that has run the next model is none."""
    end, own = time.monotonic() + GONE_SECONDS, _worker_now(window)
    while others := [one for one in left_behind(mark, end=False, but=own) if "worker_faults" not in one]:
        if time.monotonic() > end:
            left_behind(mark, end=True, but=own)
            return [f"processes are left: {others}"[:200]]
        time.sleep(0.05)
    return []


def _worker_now(window: BeatingWindow) -> set[int]:
    """The processes of the window's worker: the one above it and its own."""
    worker = window.session.worker
    if worker is None or not _lives(worker.pid):
        return set()
    below = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text(encoding="ascii").split()
    return {worker.pid, *map(int, below)}


SECTIONS = [
    Section(
        "workers", "faults of a worker, as a window tells them, and the next run in the same window", len(SHORT), 2 * len(TRIED),
        cases, prepare, attempt, seconds=4 * PATIENCE, kinds=len(TRIED),
    )
]  # fmt: skip
