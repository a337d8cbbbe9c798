"""Many faults, each tried in a process that may die of it, and what became of them counted.

A section has cases (JSON values, so that one can be tried again by itself) and a function that tries one. Cases are
tried in a child process; one that ends it, or is not done in time, is lost, and another child goes on with the next.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "support")]

from with_parent import ends_with_parent, started_by_this  # noqa: E402

Kind = Literal["survived", "refused", "lost"]
START_SECONDS = 240
"""For a child until it has prepared its section."""
MOST_OF_A_SENTENCE = 800
"""Characters: the aim is 300, beside the path and the names that a message quotes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case. survived: what was asked came out right, or what is wrong is marked as damaged; refused: one
    sentence said what is wrong; lost: a wrong number, a crash, a hang, a traceback, something acknowledged that is gone."""

    kind: Kind
    said: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One row of the table. `cases(count, seed)` makes them, `prepare(folder)` what all of them need, once a child;
    `attempt(case, prepared, scratch)` tries one within `seconds`."""

    name: str
    faults: str
    short: int
    full: int
    cases: Callable[[int, int], Iterable[Any]]
    prepare: Callable[[Path], Any]
    attempt: Callable[[Any, Any, Path], Outcome]
    seconds: float = 30.0
    kinds: int = 0
    """How many different faults it has by name; 0 where a seed makes them."""


@dataclass(slots=True)
class Tally:
    """The outcomes of one section."""

    section: str
    faults: str
    counts: Counter[str] = field(default_factory=Counter)
    lost: list[tuple[Any, str]] = field(default_factory=list)

    def add(self, case: Any, outcome: Outcome) -> None:
        """Count one; a lost one is kept whole."""
        self.counts[outcome.kind] += 1
        if outcome.kind == "lost":
            self.lost.append((case, outcome.said))


def refused(error: Exception) -> Outcome:
    """A refusal is one plain sentence; anything else that is raised is lost."""
    text = str(error)
    if not text or not is_one_sentence(text):
        return Outcome("lost", f"not one plain sentence ({len(text)} characters): {text[:300]!r}")
    return Outcome("refused", text)


def is_one_sentence(text: str) -> bool:
    """Whether a message is short, plain, one line and no traceback."""
    plain = not re.search(r"[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)
    return plain and "Traceback" not in text and len(text) <= MOST_OF_A_SENTENCE


def campaign(
    section: Section, module: str, cases: Iterable[Any], scratch: Path | None = None,
    tell: Callable[[Any, Outcome | None, float], None] = lambda _case, _outcome, _seconds: None,
) -> Tally:  # fmt: skip
    """Try some cases of a section; `tell` hears of each as it begins, with None, and as it ends, after so many
    seconds: a hang names itself."""
    tally = Tally(section.name, section.faults)
    folder = Path(tempfile.mkdtemp(prefix="faults-", dir=scratch))
    try:
        with contextlib.closing(_Children(module, section, folder)) as children:
            for case in cases:
                began = time.monotonic()
                tell(case, None, 0.0)
                outcome = children.tried(case)
                tally.add(case, outcome)
                tell(case, outcome, time.monotonic() - began)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return tally


class _Children:
    """The child that tries cases now; a new one after each that died."""

    def __init__(self, module: str, section: Section, folder: Path) -> None:
        self._command = [sys.executable, str(Path(__file__)), module, section.name, str(folder)]
        self._seconds, self._number = section.seconds, 0
        self._folder, self._child = folder, None  # type: ignore[var-annotated]
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()

    def tried(self, case: Any) -> Outcome:
        """What became of a case, the end of its child included."""
        if self._child is None:
            self._start()
        child, self._number = self._child, self._number + 1
        assert child is not None and child.stdin is not None
        try:
            child.stdin.write(json.dumps([self._number, case]) + "\n")
            child.stdin.flush()
            answer = self._answers.get(timeout=self._seconds)
        except (queue.Empty, OSError):
            answer = "late"
        if answer.startswith("{"):
            return Outcome(**json.loads(answer))
        code = "not done in time" if answer == "late" else f"the process ended with {child.wait(10)}"
        self.close()
        last = (self._folder / "stderr").read_text(errors="replace").strip().splitlines()[-1:]
        return Outcome("lost", " ".join([code, *last])[:400])

    def close(self) -> None:
        """End the child with all that it started."""
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.communicate()
            self._child = None

    def _start(self) -> None:
        answers = self._answers = queue.SimpleQueue()
        with (self._folder / "stderr").open("w") as errors:
            child = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                start_new_session=True, env={**started_by_this(), "QT_QPA_PLATFORM": "offscreen"},
            )  # fmt: skip
        self._child = child

        def listen() -> None:
            assert child.stdout is not None
            with contextlib.suppress(ValueError):
                for line in child.stdout:
                    answers.put(line)
            answers.put("ended")

        threading.Thread(target=listen, daemon=True).start()
        try:
            said = answers.get(timeout=START_SECONDS).strip()
        except queue.Empty:
            said = f"not ready after {START_SECONDS} s"
        assert said == "ready", f"{said}: {(self._folder / 'stderr').read_text()[-2000:]}"


def sections(module: str) -> dict[str, Section]:
    """The sections of a file of this folder, by name."""
    loaded = importlib.import_module(module)
    return {one.name: one for one in loaded.SECTIONS}


def _requests() -> Iterator[tuple[int, Any]]:
    for line in sys.stdin:
        number, case = json.loads(line)
        yield number, case


def main() -> None:
    """The child: one case a line, one outcome a line."""
    ends_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would ours
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries and models print is no answer

    def say(text: str) -> None:
        answers.write(text + "\n")
        answers.flush()

    module, name, folder = sys.argv[1:]
    one = sections(module)[name]
    home = Path(tempfile.mkdtemp(dir=folder))
    prepared = one.prepare(home)
    say("ready")
    for number, case in _requests():
        scratch = home / str(number)
        scratch.mkdir()
        try:
            outcome = one.attempt(case, prepared, scratch)
        except Exception as fault:  # noqa: BLE001 - whatever gets out is what this looks for
            outcome = Outcome("lost", f"{type(fault).__name__}: {fault}"[:400])
        shutil.rmtree(scratch, ignore_errors=True)
        say(json.dumps({"kind": outcome.kind, "said": outcome.said}))


if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parent.parent)]
    from campaign import main as as_module  # one Outcome for this file and the sections

    as_module()
