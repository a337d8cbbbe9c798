"""Train every case again: `python -m sample_models.illnesses.record [NAMES] [--seeds 0 1 2] [--keep FOLDER] [--check]`.

Each version of each case is trained with each seed, all rules are asked about each capture, and the results go into
`recorded/results.json`, the captures of the first seed into `recorded/NAME/VERSION/`, the table into docs/cures.md.
Same seed, same numbers (on one thread, with the same kernels).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from sample_models.illnesses import VERSIONS, Case, load, names
from sample_models.illnesses.results import RECORDED, Result, captures, faults, judged, read, write
from sample_models.illnesses.table import markdown, replaced

PAGE = RECORDED.parents[2] / "docs" / "cures.md"
MOST_SECONDS = 20.0
"""Of processor time that a training may take."""


def trained(case: Case, version: str, seed: int, folder: Path, tell: Callable[[str], None]) -> Result:
    """Train one version into a folder, and ask the rules."""
    folder.mkdir(parents=True)
    began = time.process_time()
    loss = case.train(version, seed, folder)
    seconds = time.process_time() - began
    result = judged(case, version, seed, loss, folder)
    size = sum(file.stat().st_size for path in captures(folder) for file in path.iterdir() if file.is_file())
    more = "" if seconds <= MOST_SECONDS else f", more than {MOST_SECONDS:g} s"
    tell(
        f"{case.name} {version} {seed}: {loss:.4g}, {case.rule} {result.fired or 'silent'}, "
        f"others: {', '.join(result.others) or 'none'}; {seconds:.1f} s{more}, {size / 1000:.0f} kB"
    )
    return result


def keep(folder: Path, version: str, to: Path) -> None:
    """The captures of one version in the place of those that were recorded before, without the batches of spikes."""
    target = to / version
    shutil.rmtree(target, ignore_errors=True)
    for path in captures(folder):
        shutil.copytree(path, target / path.name, ignore=shutil.ignore_patterns("spikes", "control", "*-wal", "*-shm"))


def record(case: Case, seeds: Iterable[int], work: Path, to: Path | None, tell: Callable[[str], None]) -> list[Result]:
    """All versions and seeds of a case; captures of the first seed go to `to`."""
    found = []
    for number, seed in enumerate(seeds):
        for version in VERSIONS:
            folder = work / case.name / f"{version}-{seed}"
            found.append(trained(case, version, seed, folder, tell))
            if to is not None and number == 0:
                keep(folder, version, to / case.name)
    return found


def say(text: str) -> None:
    """One line on stdout."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Record the cases that are named, or all. Ends with 1 where one is not as it has to be."""
    parser = argparse.ArgumentParser(description="Train the cases of rules again.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--keep", type=Path, help="a folder for the captures of all seeds")
    parser.add_argument("--check", action="store_true", help="change nothing in the recordings, only tell")
    parser.add_argument("--table", action="store_true", help="train nothing: the table again from the results")
    given = parser.parse_args()
    torch.set_num_threads(1)  # sums in the same order: the same bits on every machine with the same kernels
    cases = [load(name) for name in given.names or names()]
    wrong: list[str] = []
    results = read()
    with tempfile.TemporaryDirectory() as temporary:
        for case in [] if given.table else cases:
            work = given.keep or Path(temporary)
            shutil.rmtree(work / case.name, ignore_errors=True)
            results[case.name] = record(case, given.seeds, work, None if given.check else RECORDED, say)
            wrong += faults(case, results[case.name])
            if not given.check:
                write(results)
    say(markdown(cases, results))
    if not given.check and PAGE.exists():
        everything = markdown([load(name) for name in names()], read())
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), everything), encoding="utf-8")
    for line in wrong:
        say(f"NOT AS IT HAS TO BE: {line}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
