"""Everything that a command writes for somebody, while one of the calls fails that write it: every call, four errors.

A command that ends with 0 has written each of its files whole; one that does not says why in a plain sentence, and what
was there before stays. Nothing of it is left behind under another name, and the next try works.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign import HERE, Outcome, Section, is_one_sentence
from failing_savings import HARMLESS
from failing_writes import ERRORS, library
from with_parent import started_by_this

PROGRAM = HERE.parent / "support" / "exporting_program.py"
CALLS = {
    "report": 5, "animation as GIF": 5, "animation as MP4": 5, "animation as APNG": 5, "animation as WebP": 5,
    "findings as SARIF": 5, "figure and its numbers": 10, "figure as SVG": 5, "figure as PDF": 5,
    "figures of panels": 11, "numbers as NPY": 5, "numbers as CSV": 5, "numbers as JSON": 5, "comparison": 5,
    "script of a rule": 5, "packed capture": 10,
}  # fmt: skip
"""About how many calls each command makes; a case beyond its last call changes nothing and has to come out right."""
SUGGESTED = ("No space left", "Input/output", "Read-only", "Permission denied", "no space", "disk")


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Every call of every command, with each error as one failure and from there on, where a file is and where none is."""
    whole = [
        {"what": what, "nth": nth, "error": ERRORS[(nth + turn) % 4], "later": bool((nth // 4 + turn // 4) % 2),
         "there": bool((nth + turn) % 3)}
        for turn in range(8)
        for what, calls in CALLS.items()
        for nth in range(1, calls + 1)
    ]  # fmt: skip
    once = sum(CALLS.values())
    chosen = whole[seed % 5 : once : max(1, once // count)] if count < once else whole
    yield from chosen[:count]


class Programs:
    """The commands below the failing calls; one case after the other."""

    def __init__(self, folder: Path) -> None:
        kept = Path(tempfile.mkdtemp(dir=folder, prefix="kept-"))
        paths = map(str, (HERE.parent.parent, HERE.parent / "support"))
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(kept)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**started_by_this(), "LD_PRELOAD": str(library(folder)), "PYTHONPATH": os.pathsep.join(paths)},
        )  # fmt: skip

    def ask(self, case: dict[str, Any], folder: Path) -> dict[str, Any]:
        """What became of a case. EOFError where its process ended without a word."""
        assert self._process.stdin is not None and self._process.stdout is not None
        asked = {**case, "errno": getattr(errno, case["error"]), "folder": str(folder)}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer.strip():
            raise EOFError("the command ended without a word")
        told: dict[str, Any] = json.loads(answer)
        return told


def attempt(case: dict[str, Any], programs: Programs, scratch: Path) -> Outcome:
    """Try one; see what was said and what is there."""
    told = programs.ask(case, scratch)
    if "fault" in told:
        return Outcome("lost", f"an error got out: {told['fault']}")
    found, said, done = told["found"], told["said"].strip(), told["code"] == 0
    last = said.splitlines()[-1] if said else ""
    wrong = [one for one in found if one not in ("old", "new")]
    wrong += ["it ended with 0 and has not written all"] * (done and set(found) != {"new"})
    wrong += [f"nothing failed, and it ended with {told['code']}: {last}"] * (not done and not told["hits"])
    if not done:
        wrong += [f"no plain sentence: {one!r}" for one in said.splitlines() if not is_one_sentence(one)]
        wrong += [f"it does not say why: {last!r}"] * (
            not last.endswith((".", ".)")) or not any(w in last for w in SUGGESTED)
        )
    wrong += [f"left behind: {told['left']}"] * (bool(told["left"]) and told["first"] not in HARMLESS)
    wrong += [f"the next try: {told['again_code']}, {told['again']}, {told['again_said']}"] * (
        told["again_code"] != 0 or set(told["again"]) != {"new"}
    )
    if wrong:
        return Outcome("lost", f"call {told['first']}: {'; '.join(wrong)}"[:400])
    return Outcome("survived") if done else Outcome("refused", last)


SECTIONS = [
    Section(
        "exports", "writes of reports, animations, figures and numbers that commands are asked for and that fail", 10,
        2 * sum(CALLS.values()), cases, Programs, attempt, seconds=90.0,
    )
]  # fmt: skip
