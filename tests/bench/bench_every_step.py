"""Writing each iteration of a training (`every=1`) against appending the same bytes to one file, synchronised as often.

Both put every number on the disk at 4 MB or 0.1 s (`fdatasync`), and at the end. The capture adds what a
file of bytes has not: a row and a checksum for each page, frames, scalars, and an index that a reader may open meanwhile.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import Row

from inspector.capture import Writer
from inspector.capture.appending import to_disk
from inspector.capture.writer import COMMIT_BYTES, COMMIT_SECONDS
from inspector.records import Channel, Frame, Page, RunStart, Scalar

AIM, ROUNDS = 0.8, 9
CASES = {"8 pages of 16 KB": (8, 64, 800), "8 pages of 64 KB": (8, 128, 200), "one page of 1 MB": (1, 512, 100)}
"""An iteration → pages in it, rows and columns of each, iterations."""


def rows() -> list[Row]:
    """One row a case; the ratio is of speeds, raw seconds over ours, each the shortest of several rounds in turns."""
    found = []
    for name, (pages, side, iterations) in CASES.items():
        folder = Path(tempfile.mkdtemp())
        numbers = np.random.default_rng(0).random((side, side)).astype(np.float32)
        took: dict[str, list[float]] = {"ours": [], "raw": []}
        for _ in range(ROUNDS):
            took["ours"].append(captured(folder / "a.inspect", pages, iterations, numbers))
            took["raw"].append(appended(folder / "raw.bin", pages, iterations, numbers))
        ours, raw = min(took["ours"]), min(took["raw"])
        speed = pages * iterations * numbers.nbytes / ours / 2**20
        note = f"{speed:.0f} MB/s, load of {os.getloadavg()[0]:.0f}"
        found.append(
            Row(f"each iteration, {name}: share of a raw append's speed", ours, raw, raw / ours, f"≥ {AIM}", note)
        )
        shutil.rmtree(folder)
    return found


def captured(path: Path, pages: int, iterations: int, page: np.ndarray) -> float:
    """Seconds in which a training that goes on writes so many iterations, until all of them are on the disk."""
    shutil.rmtree(path, ignore_errors=True)
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for number in range(pages):
            channel = Channel(name=f"l{number}:w", kind="weight", dims=("row", "column"), shape=page.shape, title="w")
            writer.write(channel)
        writer.write(Page("l0:w", 0, (0, 0), page))
        writer.flush()
        began = time.perf_counter()
        for iteration in range(1, iterations + 1):
            writer.write(Frame(index=iteration))
            for number in range(pages):
                writer.write(Page(f"l{number}:w", iteration, (0, 0), page))
            writer.write(Scalar("loss", iteration, 1.0))
        writer.flush()
        return time.perf_counter() - began


def appended(path: Path, pages: int, iterations: int, page: np.ndarray) -> float:
    """Seconds for the bytes alone."""
    with path.open("wb") as file:
        began = synced = time.perf_counter()
        pending = 0
        for _ in range(iterations * pages):
            file.write(page.data)
            pending += page.nbytes
            if pending >= COMMIT_BYTES or time.perf_counter() - synced > COMMIT_SECONDS:
                file.flush()
                to_disk(file.fileno())
                pending, synced = 0, time.perf_counter()
        file.flush()
        to_disk(file.fileno())
        return time.perf_counter() - began
