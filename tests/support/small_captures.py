"""Captures of one page, and every byte of a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inspector.capture import Writer
from inspector.capture.layout import INDEX
from inspector.records import Channel, Page, RunStart, RunStop

CHANNEL = Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 4), title="h")

OTHERS = {f"{INDEX}.backup": b"a", "pages-of-my-thesis.txt": b"b", "pages-1.bin": b"c", f"{INDEX}2": b"d"}


def start(run: str = "r") -> RunStart:
    return RunStart(run=run, title=f"run {run}")


def page(value: float = 1.0, first: int = 0) -> Page:
    return Page("a:h", 0, (first, 0), np.full((8, 4), value, np.float32))


def capture_at(path: Path, run: str = "old", value: float = 1.0) -> Path:
    with Writer(path, start(run)) as writer:
        writer.write(CHANNEL)
        writer.write(page(value))
        writer.write(RunStop("done"))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
