"""Everything that a window saves, while one of the calls fails that write it: every call, four errors.

What was there before is there, or the new one is, whole; where it is not the new one, one plain sentence says why; nothing
of it is left behind under another name; and the next try works.
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
from failing_writes import ERRORS, library
from with_parent import started_by_this

PROGRAM = HERE.parent / "support" / "saving_program.py"
CALLS = {
    "preference": 9, "layout under a name": 9, "recent list": 9, "layout at the end": 18, "session": 12,
    "code that is trusted": 7, "figure as PNG": 5, "figure as SVG": 5, "figure as PDF": 5, "numbers as NPZ": 5,
    "numbers as CSV": 5, "all figures": 20, "script of a finding": 5, "copy of the capture": 40, "packed capture": 10,
    "note": 66, "bookmark": 66, "mute": 5, "folder of the runs": 8, "file of an error": 3, "secret of a listener": 6,
}  # fmt: skip
"""About how many calls each saving makes; a case beyond its last call changes nothing and has to come out right."""
HARMLESS = ("unlink", "rmdir")
"""Where one of these fails first, what it was to remove is there."""


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Every call of every saving, with each error as one failure and from there on."""
    whole = [
        {"what": what, "nth": nth, "error": ERRORS[(nth + turn) % 4], "later": bool((nth // 4 + turn // 4) % 2)}
        for turn in range(8)
        for what, calls in CALLS.items()
        for nth in range(1, calls + 1)
    ]
    once = sum(CALLS.values())
    chosen = whole[seed % 7 : once : max(1, once // count)] if count < once else whole
    yield from chosen[:count]


class Programs:
    """The window below the failing calls; it takes one case after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._library = folder, library(folder)
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        home = Path(tempfile.mkdtemp(dir=self._folder, prefix="window-"))
        paths = map(str, (HERE.parent.parent, HERE.parent / "support"))
        return subprocess.Popen(
            [sys.executable, str(PROGRAM), str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**started_by_this(), "LD_PRELOAD": str(self._library), "PYTHONPATH": os.pathsep.join(paths)},
        )  # fmt: skip

    def ask(self, case: dict[str, Any]) -> dict[str, Any]:
        """What became of a case; EOFError where the process ended, and another is there for the next."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({**case, "errno": getattr(errno, case["error"])}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer.strip():
            code, self._process = self._process.wait(), self._started()
            raise EOFError(f"the window ended with {code}")
        told: dict[str, Any] = json.loads(answer)
        return told


def attempt(case: dict[str, Any], programs: Programs, _scratch: Path) -> Outcome:
    """Try one; see what was said and what is there."""
    told = programs.ask(case)
    found, failed = told["found"], told["failed"]
    wrong = [f"an error got out: {one}" for one in told["faults"]]
    wrong += [found] * (found not in ("old", "new"))
    wrong += [f"no plain sentence: {one!r}" for one in failed if not (is_one_sentence(one) and one.endswith("."))]
    wrong += ["nothing was said"] * (found == "old" and not failed)
    wrong += ["nothing failed, and it was not saved"] * (found == "old" and not told["hits"])
    wrong += [f"left behind: {told['left']}"] * (bool(told["left"]) and told["first"] not in HARMLESS)
    wrong += [f"the next try: {told['again']}"] * (told["again"] != "new")
    if wrong:
        return Outcome("lost", f"call {told['first']}: {'; '.join(wrong)}"[:400])
    return Outcome("refused", failed[0]) if failed else Outcome("survived")


SECTIONS = [
    Section(
        "savings", "writes of everything that a window saves that fail", 8, 2 * sum(CALLS.values()), cases, Programs,
        attempt, seconds=60.0,
    )
]  # fmt: skip
