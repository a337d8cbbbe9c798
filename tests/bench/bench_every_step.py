"""Writing each iteration of a training (`every=1`) against a raw append of the same bytes that keeps the same promise.

The raw append is one file to which the same pages are written, one call of `write` each, and which is synchronised
(`fdatasync`) as often as the capture has committed, at equal distances and at the end: so many times it could say, as the
capture does, that everything so far outlives a power cut. A capture does that at 4 MB or 0.1 s. What it adds is in its own
time: a row and two checksums for each page, frames, scalars, an index that a reader may open meanwhile, which is
synchronised too, and the call that hands each page over, since a training goes on meanwhile.

Both take turns in one process; the ratio is the median of the ratios of pairs, so that other work on the machine, which
slows both of a pair, changes little. The processor time beside it does not depend on other work at all.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
from harness import Row

from inspector.capture import Writer
from inspector.capture.appending import to_disk
from inspector.capture.groups import Group
from inspector.capture.store import Store
from inspector.records import Channel, Frame, Page, RunStart, Scalar

AIM, PAIRS = 0.8, 31
CASES = {"8 pages of 16 KB": (8, 64, 800), "8 pages of 64 KB": (8, 128, 200), "one page of 1 MB": (1, 512, 100)}
"""An iteration → pages in it, rows and columns of each, iterations."""


def rows() -> list[Row]:
    """One row a case: the median over pairs of raw seconds over ours."""
    found = []
    for name, (pages, side, iterations) in CASES.items():
        folder = Path(tempfile.mkdtemp())
        numbers = np.random.default_rng(0).random((side, side)).astype(np.float32)
        pairs = [pair(folder, pages, iterations, numbers) for _ in range(PAIRS + 1)][1:]
        ratio = statistics.median(raw / ours for (ours, _), (raw, _), _ in pairs)
        ours, raw = (statistics.median(one[who][0] for one in pairs) for who in (0, 1))
        busy, bare = (statistics.median(one[who][1] for one in pairs) for who in (0, 1))
        speed = pages * iterations * numbers.nbytes / ours / 2**20
        note = (
            f"{speed:.0f} MB/s in {pairs[0][2]} commits; processor time {busy * 1000:.0f} and {bare * 1000:.0f} ms; "
            f"{PAIRS} pairs, load of {os.getloadavg()[0]:.0f}"
        )
        found.append(Row(f"each iteration, {name}: share of a raw append's speed", ours, raw, ratio, f"≥ {AIM}", note))
        shutil.rmtree(folder)
    return found


Taken = tuple[float, float]
"""Seconds, and seconds of processor time of all threads."""


def pair(folder: Path, pages: int, iterations: int, numbers: np.ndarray) -> tuple[Taken, Taken, int]:
    """(ours, raw, how many commits each made)."""
    commits: list[int] = []
    """Records of each."""
    real = Store.finish

    def finish(self: Store, group: Group) -> None:
        real(self, group)
        if group.records:
            commits.append(len(group.records))

    with patch.object(Store, "finish", finish):
        ours = captured(folder / "a.inspect", pages, iterations, numbers, commits)
    return ours, appended(folder / "raw.bin", pages * iterations, numbers, len(commits)), len(commits)


def taken(work: Callable[[], None]) -> Taken:
    """How long it takes."""
    began, spent = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - spent


def captured(path: Path, pages: int, iterations: int, page: np.ndarray, commits: list[int]) -> Taken:
    """A training that goes on writes so many iterations, until all of them are on the disk, in `commits`."""
    shutil.rmtree(path, ignore_errors=True)
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for number in range(pages):
            channel = Channel(name=f"l{number}:w", kind="weight", dims=("row", "column"), shape=page.shape, title="w")
            writer.write(channel)
        writer.write(Page("l0:w", 0, (0, 0), page))
        writer.flush()
        commits.clear()

        def work() -> None:
            for iteration in range(1, iterations + 1):
                writer.write(Frame(index=iteration))
                for number in range(pages):
                    writer.write(Page(f"l{number}:w", iteration, (0, 0), page))
                writer.write(Scalar("loss", iteration, 1.0))
            writer.flush()

        return taken(work)


def appended(path: Path, count: int, page: np.ndarray, commits: int) -> Taken:
    """The bytes alone."""
    ends = {round(count * (number + 1) / commits) for number in range(commits)}
    with path.open("wb", buffering=0) as file:

        def work() -> None:
            for number in range(1, count + 1):
                file.write(page.data)
                if number in ends:
                    to_disk(file.fileno())

        return taken(work)
