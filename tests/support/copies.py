"""Programs in copies of one process that has imported what they need: of torch that is seconds, each time anew.

The process forks for each program and does nothing else, so that a program finds it as it was after the imports, and
whatever it does to its process is gone with it. Where processes are not forked each program has one of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
SECONDS = 200.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    returncode: int
    stdout: str
    stderr: str


class Copies:
    """A process with some modules imported, in the folder of the checkout; closed by `close`."""

    def __init__(self, *modules: str) -> None:
        self._forks = hasattr(os, "fork")
        if self._forks:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", __file__, *modules], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True, cwd=CHECKOUT,
            )  # fmt: skip

    def run(self, program: str) -> Ended:
        """Run the text of a program in a copy of the process, to its end."""
        if not self._forks:
            command = [sys.executable, "-W", "ignore", "-c", program]
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=CHECKOUT)
            return Ended(done.returncode, done.stdout, done.stderr)
        assert self._process.stdin is not None and self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            self._process.stdin.write(json.dumps({"program": program, "folder": folder}) + "\n")
            self._process.stdin.flush()
            code = json.loads(self._process.stdout.readline())
            return Ended(code, *(Path(folder, name).read_text() for name in ("stdout", "stderr")))

    def close(self) -> None:
        """End it."""
        if self._forks:
            self._process.kill()
            self._process.communicate()


def _in_a_copy(asked: dict[str, str]) -> int:
    """Its exit code, once it has ended and whatever it forked in its turn."""
    last, held = os.pipe()
    child = os.fork()
    if not child:
        _perform(asked["program"], Path(asked["folder"]))
    os.close(held)
    os.read(last, 1)  # until nobody holds the other end
    os.close(last)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _perform(program: str, folder: Path) -> None:
    """Run it and end this process, whatever it did to it."""
    leave, show, said = os._exit, traceback.print_exc, (sys.stdout, sys.stderr)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), number)
    code = 0
    try:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    except BaseException:  # noqa: BLE001 - told by the exit code and its text
        code = 1
        show()
    for stream in said:
        stream.flush()
    leave(code)


def _main() -> None:
    answers, known = os.fdopen(os.dup(1), "w"), set(sys.argv[1:])
    sys.path.insert(0, str(CHECKOUT))
    for name in sorted(known):
        __import__(name)
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        answers.write(f"{_in_a_copy(asked)}\n")
        answers.flush()


if __name__ == "__main__":
    _main()
