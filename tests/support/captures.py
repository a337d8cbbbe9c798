"""Small captures, and ways to harm them as other programs do."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inspector.capture import Writer
from inspector.capture.checksums import page_checksum, page_owner, record_checksum
from inspector.capture.layout import INDEX
from inspector.records import BadRecordError, Channel, Frame, Labels, Page, RunStart, RunStop, decode

START = RunStart(run="r", title="a run")
NAME = "rnn.l0:h"


def channel(name: str = NAME, dtype: str = "float32", units: int = 4, **more: object) -> Channel:
    """A (step, unit) state."""
    kinds = {"kind": "state", "dims": ("step", "unit"), "shape": (None, units), "title": "hidden state", **more}
    return Channel(name=name, dtype=dtype, **kinds)  # type: ignore[arg-type]


def write(
    path: Path, values: npt.NDArray[np.generic], *, rows: int = 8, name: str = NAME, done: bool = True,
    skip: Container[int] = (), run: str = START.run, **more: object,
) -> Path:  # fmt: skip
    """A capture of one channel in pages of some rows, but for the pages that would begin at a step of `skip`."""
    with Writer(path, replace(START, run=run)) as writer:
        writer.write(channel(name, str(values.dtype), values.shape[1], **more))
        writer.write(Frame(index=0))
        writer.write(Labels("step", tuple(chr(97 + i % 26) for i in range(len(values))), 0))
        for start in range(0, len(values), rows):
            if start not in skip:
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


def seal(path: Path) -> None:
    """Checksums and row counts that fit what stands in an index now, as a program has them that made it on purpose."""
    index = sqlite3.connect(path / INDEX)
    described = {}
    (first,) = index.execute("SELECT record FROM run ORDER BY id").fetchone()
    run = json.loads(first)["run"]
    with index:
        for table in ("run", "channels", "frames", "notes"):
            kind = {"notes": "kind", "channels": "name"}.get(table, "''")
            for number, text, more in index.execute(f"SELECT id, record, {kind} FROM {table}").fetchall():
                if table == "run" and '"record": "RowCounts"' in text:
                    text = _counted(index, text)
                    index.execute("UPDATE run SET record = ? WHERE id = ?", (text, number))
                named = "" if '"record": "RunStart"' in text else run
                checksum = record_checksum(named, table, number, text, more)
                index.execute(f"UPDATE {table} SET checksum = ? WHERE id = ?", (checksum, number))
                if table == "channels":
                    with suppress(BadRecordError):
                        described[number] = decode(text)
        for row in index.execute("SELECT * FROM pages").fetchall():
            if row[1] in described:
                checksum = page_checksum(page_owner(run, described[row[1]]), row[:-1])
                index.execute("UPDATE pages SET checksum = ? WHERE id = ?", (checksum, row[0]))
    index.close()


def _counted(index: sqlite3.Connection, text: str) -> str:
    """Row counts of the end of a run, as the rows are now; those of its beginning stay."""
    counts = json.loads(text)
    if counts["last"]["pages"] >= counts["first"]["pages"]:
        for table in counts["last"]:
            counts["last"][table] = index.execute(f"SELECT max(id) FROM {table}").fetchone()[0] or 0
    return json.dumps(counts)


def as_format_1(path: Path) -> Path:
    """The same capture as the writer of format 1 left it: no checksums of rows, no counts of them."""
    index = sqlite3.connect(path / INDEX)
    with index:
        index.execute("DELETE FROM run WHERE record LIKE '%RowCounts%'")
        numbers = [number for (number,) in index.execute("SELECT id FROM run ORDER BY id").fetchall()]
        for new, number in enumerate(numbers, 1):
            index.execute("UPDATE run SET id = ? WHERE id = ?", (new, number))
        for table in ("run", "channels", "frames", "pages", "notes"):
            index.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
        index.execute("PRAGMA user_version = 1000")
    index.close()
    return path
