"""The fuzzer: `python tests/fuzz/run.py [TARGET …] [--seconds N] [--plain] [--seed S] [--note FILE]`.

Each target is tried in a process of its own for so many seconds (of wall time), guided by coverage where atheris is installed
(`pip install -c constraints.txt '.[fuzz]'`), else, or with --plain, by mutants of the corpus whose order the seed decides. What
is found is kept in `found/`; once it is repaired it goes to `findings/`, which the tests read. Prints a table; ends with 1
where something was found. `--note` adds seconds, processor time and executions up over several runs, in a file of JSON.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]

from target import targets  # noqa: E402

SHARED = Path("/dev/shm")
"""Files in memory, where there are such: each input is written to a file once or more often."""
GRACE = 240
"""Seconds beyond those asked for: importing torch, instrumenting, and the last input."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a process did."""

    target: str
    seconds: float
    processor: float
    """Seconds of processor time that it got, importing and instrumenting included: beside other work that is less."""
    executions: int
    read: int
    found: tuple[str, ...]


def ran(name: str, asked: argparse.Namespace) -> Ran:
    """One target in a process of its own."""
    before, began, spent = set(_kept(asked.found, name)), time.monotonic(), _spent()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=SHARED if SHARED.is_dir() else None) as scratch:
        command = [
            sys.executable, str(HERE / "drive.py"), name, "--seconds", str(asked.seconds), "--seed", str(asked.seed),
            "--found", str(asked.found), "--scratch", scratch, *(["--plain"] if asked.plain else []),
            *(["--grown", str(asked.grown)] if asked.grown else []),
            *(["--executions", str(asked.executions)] if asked.executions else []),
        ]  # fmt: skip
        said, code = _output(command, asked.seconds + GRACE)
        counts = Path(scratch) / "counts"
        executions, read = map(int, counts.read_text().split()) if counts.exists() else (0, 0)
        if code != 0 or not executions:
            _keep_fatal(Path(scratch) / "current", asked.found / name, code, said)
    found = tuple(sorted(set(_kept(asked.found, name)) - before))
    for line in said.splitlines():
        if line.startswith("FOUND"):
            sys.stderr.write(line + "\n")
    return Ran(name, time.monotonic() - began, _spent() - spent, executions, read, found)


def _spent() -> float:
    """Processor time of all processes that this one has started, and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _output(command: list[str], seconds: float) -> tuple[str, int]:
    """(what it printed, its code; −9 where it did not end)."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "QT_QPA_PLATFORM": "offscreen", "PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, env=env, errors="replace",
            encoding="utf-8",
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace") if isinstance(late.stdout, bytes) else "", -9
    return done.stdout, done.returncode


def _keep_fatal(current: Path, folder: Path, code: int, said: str) -> None:
    """Keep the input at which a process ended, or hung."""
    last = " ".join(said.strip().splitlines()[-3:])[:400]
    sys.stderr.write(f"FOUND {folder.name}: the process ended with {code}: {last}\n")
    if current.exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(current, folder / f"fatal-{int(time.time())}")


def _kept(folder: Path, name: str) -> list[str]:
    return [path.name for path in (folder / name).glob("*")]


def note(file: Path, done: Ran, guided: bool) -> None:
    """Add what ran to what ran before."""
    known = json.loads(file.read_text()) if file.exists() else {}
    own = known.setdefault(done.target, {"seconds": 0, "processor": 0, "executions": 0, "read": 0, "guided": 0})
    own["seconds"] += round(done.seconds)
    own["processor"] = own.get("processor", 0) + round(done.processor)
    own["executions"] += done.executions
    own["read"] += done.read
    own["guided"] += done.executions if guided else 0
    partial = file.with_suffix(".part")
    partial.write_text(json.dumps(known, indent=1, sort_keys=True))
    partial.replace(file)


def main() -> int:
    """Try what was asked for."""
    parser = argparse.ArgumentParser(
        description="Reads bytes from nowhere with everything that reads bytes from outside."
    )
    parser.add_argument("names", nargs="*", metavar="TARGET", help=f"of: {', '.join(targets())} (default: all)")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--executions", type=int, default=0, help="at most, for each target, without atheris")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="without atheris")
    parser.add_argument("--found", type=Path, default=HERE / "found", help="folder of what is found")
    parser.add_argument("--grown", type=Path, default=None, help="folder in which the corpus grows from run to run")
    parser.add_argument("--note", type=Path, default=None, help="file in which seconds and executions are added up")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in targets()]:
        parser.error(f"no target {unknown[0]}; there are {', '.join(targets())}")
    guided = not asked.plain and importlib.util.find_spec("atheris") is not None
    lines = ["| target | seconds | of the processor | inputs | read | found |", "|---|---:|---:|---:|---:|---:|"]
    found = 0
    for name in asked.names or targets():
        done = ran(name, asked)
        found += len(done.found)
        lines.append(
            f"| `{name}` | {done.seconds:.0f} | {done.processor:.0f} | {done.executions:,} | {done.read:,} | "
            f"{len(done.found)} |"
        )
        sys.stderr.write(lines[-1] + "\n")
        if asked.note:
            note(asked.note, done, guided)
    sys.stdout.write("\n".join(lines) + "\n")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
