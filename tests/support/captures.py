"""Small captures, and ways to harm them as other programs do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inspector.capture import Writer
from inspector.capture.layout import INDEX
from inspector.records import Channel, Frame, Labels, Page, RunStart, RunStop

START = RunStart(run="r", title="a run")
NAME = "rnn.l0:h"


def channel(name: str = NAME, dtype: str = "float32", units: int = 4, **more: object) -> Channel:
    """A (step, unit) state."""
    kinds = {"kind": "state", "dims": ("step", "unit"), "shape": (None, units), "title": "hidden state", **more}
    return Channel(name=name, dtype=dtype, **kinds)  # type: ignore[arg-type]


def write(
    path: Path, values: npt.NDArray[np.generic], *, rows: int = 8, name: str = NAME, done: bool = True, **more: object
) -> Path:
    """A capture of one channel in pages of some rows."""
    with Writer(path, START) as writer:
        writer.write(channel(name, str(values.dtype), values.shape[1], **more))
        writer.write(Frame(index=0))
        writer.write(Labels("step", tuple(chr(97 + i % 26) for i in range(len(values))), 0))
        for start in range(0, len(values), rows):
            writer.write(Page(name, 0, (start, 0), values[start : start + rows]))
        if done:
            writer.write(RunStop("done"))
    return path


def numbers(steps: int = 40, units: int = 4, dtype: str = "float32") -> npt.NDArray[np.generic]:
    """Every number once, none of them 0."""
    return np.arange(1, steps * units + 1).reshape(steps, units).astype(dtype)


def place_of(path: Path, page: int) -> tuple[Path, int, int]:
    """(file, offset, bytes) of a page by its id."""
    index = sqlite3.connect(path / INDEX)
    file, offset, size = index.execute("SELECT file, offset, nbytes FROM pages WHERE id = ?", (page,)).fetchone()
    index.close()
    return path / f"pages-{file:04d}.bin", offset, size


def flip(path: Path, page: int, at: int = 5) -> None:
    """One bit of a page, in place."""
    file, offset, _ = place_of(path, page)
    with file.open("r+b") as opened:
        opened.seek(offset + at)
        byte = opened.read(1)[0]
        opened.seek(offset + at)
        opened.write(bytes([byte ^ 16]))


def change(path: Path, statement: str, values: tuple[object, ...] = ()) -> None:
    """One statement on an index."""
    index = sqlite3.connect(path / INDEX)
    with index:
        index.execute(statement, values)
    index.close()


Harm = Callable[[Path, int], None]
