"""Writing each iteration of a training (`every=1`) against a raw append of the same bytes that keeps the same promise.

The raw append is one file to which the same pages are written, one call of `write` each, and which is synchronised
(`fdatasync`) as often as the capture has committed, at equal distances and at the end: so many times it could say, as
the capture does, that everything so far outlives a power cut. It notices no byte that changes afterwards, which a
capture promises: so there is a second one, which writes the CRC-32 of each page behind it. What a capture does beyond
that is in its own time: a row and its checksum for each page, frames, scalars, an index that a reader may open
meanwhile, which is synchronised too, and the call that hands each page over, since a training goes on meanwhile.

All take turns in one process; a ratio is the median of those of all turns, so that other work on the machine, which
slows all of a turn, changes little. The processor time beside it does not depend on other work at all.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
import zlib
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

AIM, TURNS = 0.8, 31
CASES = {"8 pages of 16 KB": (8, 64, 800), "8 pages of 64 KB": (8, 128, 200), "one page of 1 MB": (1, 512, 100)}
"""An iteration → pages in it, rows and columns of each, iterations."""


def rows() -> list[Row]:
    """Two rows a case: the medians over turns of the seconds of each raw append over ours."""
    found = []
    for name, (pages, side, iterations) in CASES.items():
        folder = Path(tempfile.mkdtemp())
        numbers = np.random.default_rng(0).random((side, side)).astype(np.float32)
        turns = [turn(folder, pages, iterations, numbers) for _ in range(TURNS + 1)][1:]
        size = pages * iterations * numbers.nbytes
        for which, other in ((1, "a raw append's speed"), (2, "one with checksums")):
            ratio = statistics.median(one[0][which][0] / one[0][0][0] for one in turns)
            (ours, busy), (raw, bare) = (
                [statistics.median(one[0][who][what] for one in turns) for what in (0, 1)] for who in (0, which)
            )
            note = (
                f"{size / ours / 2**20:.0f} MB/s in {statistics.median(one[1] for one in turns):.0f} commits; processor "
                f"time {busy * 1000:.0f} and {bare * 1000:.0f} ms; {TURNS} turns, load of {os.getloadavg()[0]:.0f}"
            )
            found.append(Row(f"each iteration, {name}: share of {other}", ours, raw, ratio, f"≥ {AIM}", note))
        shutil.rmtree(folder)
    return found


Taken = tuple[float, float]
"""Seconds, and seconds of processor time of all threads."""


def turn(folder: Path, pages: int, iterations: int, numbers: np.ndarray) -> tuple[tuple[Taken, Taken, Taken], int]:
    """((ours, raw, raw with checksums), how many commits each made)."""
    commits: list[int] = []
    """Records of each."""
    real = Store.finish

    def finish(self: Store, group: Group) -> None:
        real(self, group)
        if group.records:
            commits.append(len(group.records))

    with patch.object(Store, "finish", finish):
        ours = captured(folder / "a.inspect", pages, iterations, numbers, commits)
    raw, checked = (
        appended(folder / "raw.bin", pages * iterations, numbers, len(commits), checked=checked)
        for checked in (False, True)
    )
    return (ours, raw, checked), len(commits)


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


def appended(path: Path, count: int, page: np.ndarray, commits: int, *, checked: bool) -> Taken:
    """The bytes alone; `checked`: with a checksum behind each page."""
    ends = {round(count * (number + 1) / commits) for number in range(commits)}
    with path.open("wb", buffering=0) as file:

        def work() -> None:
            for number in range(1, count + 1):
                file.write(page.data)
                if checked:
                    file.write(zlib.crc32(page.data).to_bytes(4, "little"))
                if number in ends:
                    to_disk(file.fileno())

        return taken(work)
