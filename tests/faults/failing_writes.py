"""Captures that are written, replaced and made beside a training while one write of them fails: every write, four errors.

What was acknowledged is there, what was said is one plain sentence, the training is bit for bit the one that nobody
watches, and the next run goes on in the same place.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from campaign import HERE, Outcome, Section, is_one_sentence
from power_cuts import compiler

from inspector.capture import Capture, CaptureError, Writer, open_capture
from inspector.records import RunStart, RunStop

SUPPORT = HERE.parent / "support"
CALLS = {"run": 95, "replace": 134, "exchange": 110, "training": 90}
"""About how many calls each program makes; a case beyond its last call changes nothing and has to come out right."""
ERRORS = ("ENOSPC", "EIO", "EROFS", "EACCES")
JARGON = ("rollback", "database", "SQL", "OperationalError", "I/O error")


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Every call of every program; with another error, and as one failure or from there on, by turns; then the others."""
    whole = [
        {"kind": kind, "nth": nth, "error": ERRORS[(nth + turn) % 4], "later": bool((nth // 4 + turn // 4) % 2)}
        for turn in range(8)
        for kind, calls in CALLS.items()
        for nth in range(1, calls + 1)
    ]
    once = sum(CALLS.values())
    chosen = whole[seed % once : once][:: max(1, once // count)] if count < once else whole
    yield from chosen[:count]


def library(folder: Path) -> Path:
    """What lets calls fail, compiled into a folder."""
    made, program = folder / "failing_writes.so", compiler()
    assert program is not None, "a C compiler is needed"
    subprocess.run([program, "-shared", "-fPIC", "-O1", "-o", made, SUPPORT / "failing_writes.c", "-ldl"], check=True)
    return made


class Programs:
    """The process below the failing calls; it takes one case after the other."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(SUPPORT / "failing_program.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, "LD_PRELOAD": str(library(folder)), "PYTHONPATH": str(HERE.parent.parent)},
        )  # fmt: skip

    def ask(self, case: dict[str, Any], folder: Path) -> dict[str, Any]:
        """What became of a case; EOFError where the process ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        asked = {**case, "errno": getattr(errno, case["error"]), "folder": str(folder)}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer.strip():
            raise EOFError("the program ended")
        told: dict[str, Any] = json.loads(answer)
        return told


def attempt(case: dict[str, Any], programs: Programs, scratch: Path) -> Outcome:
    """Try one; see what was said and what is there."""
    told = programs.ask(case, scratch)
    wrong = [f"no plain sentence: {one!r}" for one in told["said"] if not _is_plain(one)]
    if case["kind"] == "training":
        wrong += ["the training is another one"] * (told["bits"] != told["plain"])
        wrong += _training(scratch / "a.inspect", told)
    else:
        wrong += _run(scratch / "a.inspect", told, case["kind"])
    wrong += _again(scratch / "a.inspect")
    if wrong:
        return Outcome("lost", "; ".join(wrong)[:400])
    return Outcome("refused", told["said"][0]) if told["said"] else Outcome("survived")


def _is_plain(text: str) -> bool:
    return is_one_sentence(text) and text.endswith((".", ".)")) and not any(word in text for word in JARGON)


def _run(path: Path, told: dict[str, Any], kind: str) -> list[str]:
    wrong = ["nothing was said"] * (not told["said"] and not told["done"])
    try:
        capture = open_capture(path)
    except CaptureError as problem:
        return [*wrong, f"it does not open: {problem}"] if told["run"] or kind != "run" else wrong
    with capture:
        name = capture.start.run
        wrong += [f"{told['run']} was acknowledged, {name} is there"] * (told["run"] not in ("", name))
        if kind == "exchange" and name == "first" and told["steps"]:
            wrong += _beside(path, told["steps"])
        wrong += ["it is said to be running"] * (capture.status == "running") + capture.verify()
        first, whole = (1000, told["done"]) if name == "second" else (0, kind != "run" or told["done"])
        least = 40 if whole else told["steps"]
        wrong += ["it is not said to be done"] * (whole and capture.status != "done")
        wrong += _numbers(capture, first, least)
    return wrong


def _beside(path: Path, steps: int) -> list[str]:
    """What was acknowledged of a run that could not take its place is beside the one that stays."""
    try:
        with open_capture(path.with_name("a.new.inspect")) as capture:
            return capture.verify() + _numbers(capture, 1000, steps)
    except CaptureError as problem:
        return [f"{steps} steps were acknowledged, and what is beside it does not open: {problem}"]


def _numbers(capture: Capture, first: int, least: int) -> list[str]:
    array = capture.array("a:h") if "a:h" in capture.channels else np.zeros((0, 16), np.float32)
    expected = first + np.repeat(np.arange(0, 40, 8), 8)[: len(array), None] * np.ones((1, 16))
    short = [f"{least} steps acknowledged, {len(array)} there"] * (len(array) < least)
    same = not len(array) or (np.array_equal(np.asarray(array), expected) and not np.ma.isMaskedArray(array))
    return short + ["other numbers"] * (not same)


def _training(path: Path, told: dict[str, Any]) -> list[str]:
    """Of a watched training whatever is there is whole; all of it where nothing was said."""
    try:
        with open_capture(path) as capture:
            wrong = capture.verify() + ["it is said to be running"] * (capture.status == "running")
            return wrong + ["nothing was said"] * (not told["said"] and capture.status != "done")
    except CaptureError as problem:
        return [] if told["said"] else [f"nothing was said, and it does not open: {problem}"]


def _again(path: Path) -> list[str]:
    try:
        with Writer(path, RunStart(run="again", title="t"), overwrite=True) as writer:
            writer.write(RunStop("done"))
        with open_capture(path) as capture:
            return ["the next run is not there"] * (capture.start.run != "again" or capture.status != "done")
    except CaptureError as problem:
        return [f"the next run is refused: {problem}"]


SECTIONS = [
    Section(
        "io_errors", "writes of a run, of one that replaces another, of one that takes its place and of a watched training that fail", 60,
        2 * sum(CALLS.values()), cases, Programs, attempt, seconds=60.0,
    )
]  # fmt: skip
