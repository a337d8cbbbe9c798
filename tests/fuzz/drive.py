"""One target in this process, which a finding may end: with atheris guided by coverage, without it by mutants alone.

What stands in the scratch folder is there when the process dies: `current`, the input, and `counts`, how many were tried and
how many of them read.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parent / "faults"), str(HERE.parent.parent)]

from mutate import mutant  # noqa: E402
from target import FINDINGS, Target, findings, load, seeds, tried  # noqa: E402


class Attempts:
    """Inputs one after the other, each in a folder of its own, counted; what was found is kept."""

    def __init__(self, target: Target, scratch: Path, found: Path) -> None:
        self.target, self.scratch, self.found = target, scratch, found
        self.executions = self.read = 0
        self.raised: set[str] = set()
        self._current = os.open(scratch / "current", os.O_RDWR | os.O_CREAT)  # there where the process dies of it
        self._counts = os.open(scratch / "counts", os.O_RDWR | os.O_CREAT)

    def one(self, data: bytes) -> None:
        """Try one. A finding is kept under its hash, and told once for each place where it was raised."""
        self.executions += 1
        os.pwrite(self._current, data, 0)
        os.ftruncate(self._current, len(data))
        os.pwrite(self._counts, b"%12d %12d" % (self.executions, self.read), 0)
        try:
            self.read += tried(self.target, data, self.scratch / "try") == "read"
        except Exception as fault:  # noqa: BLE001 - whatever gets out is what this looks for
            self.keep(data, fault)

    def keep(self, data: bytes, fault: Exception) -> None:
        """Write a finding, unless one of this kind and place was written before."""
        frames = traceback.extract_tb(fault.__traceback__)
        own = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames if "/inspector/" in frame.filename]
        place = (
            f"{type(fault).__name__} {' '.join(own[-2:])} {str(fault)[:25] if 'Found' in type(fault).__name__ else ''}"
        )
        if place in self.raised:
            return
        self.raised.add(place)
        self.found.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(data).hexdigest()[:12]
        (self.found / name).write_bytes(data)
        sys.stderr.write(f"FOUND {self.found.name}/{name}: {place}: {str(fault)[:300]!r}\n")


def by_mutants(attempts: Attempts, name: str, asked: argparse.Namespace) -> None:
    """Mutants of the seeds in an order that the seed of chance decides."""
    chance, ends = random.Random(f"{name} {asked.seed}"), time.monotonic() + asked.seconds
    known = [path.read_bytes() for path in [*seeds(name), *findings(name)]]
    for data in known:
        attempts.one(data)
    while time.monotonic() < ends and attempts.executions < asked.executions:
        attempts.one(mutant(chance.choice(known), chance, known, attempts.target.most))


def by_coverage(attempts: Attempts, name: str, asked: argparse.Namespace, atheris: Any) -> None:
    """libFuzzer, half of its changes made by the mutator that knows numbers and words."""
    known = [path.read_bytes() for path in seeds(name)]
    grown = Path(asked.grown or tempfile.mkdtemp()) / name
    grown.mkdir(parents=True, exist_ok=True)

    def changed(data: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.5:
            return bytes(atheris.Mutate(data, most))
        return mutant(data, chance, known, min(most, attempts.target.most))

    arguments = [
        sys.argv[0], f"-max_total_time={asked.seconds}", f"-max_len={attempts.target.most}", "-timeout=120",
        "-rss_limit_mb=3000", f"-seed={asked.seed + 1}", "-verbosity=0", f"-artifact_prefix={attempts.scratch}/",
        "-close_fd_mask=0", "-len_control=0", str(grown), str(HERE / "corpus" / name),
    ]  # fmt: skip
    if findings(name):
        arguments.append(str(FINDINGS / name))
    atheris.Setup(arguments, attempts.one, custom_mutator=changed)
    atheris.Fuzz()


def main() -> None:
    """Try what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--executions", type=int, default=sys.maxsize)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="without atheris")
    parser.add_argument("--found", default="", help="folder in which findings are kept")
    parser.add_argument("--grown", default="", help="folder in which inputs that reached something new are kept")
    parser.add_argument("--scratch", default="")
    asked = parser.parse_args()
    scratch = Path(asked.scratch or tempfile.mkdtemp(prefix="fuzz-"))
    atheris = None if asked.plain else _atheris()
    if atheris is None:
        target = load(asked.name)
    else:
        follows = _follows(asked.name)
        with atheris.instrument_imports(include=follows):
            target = load(asked.name)
    attempts = Attempts(target, scratch, Path(asked.found or scratch / "found") / asked.name)
    if atheris is None:
        by_mutants(attempts, asked.name, asked)
    else:
        by_coverage(attempts, asked.name, asked, atheris)


def _atheris() -> Any:
    try:
        import atheris
    except ImportError:
        return None
    return atheris


def _follows(name: str) -> list[str]:
    """`follows` of a target, read from its text: it is not imported before the instrumentation is there."""
    import ast

    text = (HERE / "targets" / f"{name}.py").read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Target":
            return list(ast.literal_eval(node.args[1]))
    raise SystemExit(f"{name} has no Target")


if __name__ == "__main__":
    main()
