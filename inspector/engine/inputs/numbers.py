"""Numbers from .npy, .npz and .csv files: vectors, or ids for a model that reads tokens. Nothing is unpickled."""

from __future__ import annotations

import csv
import zipfile
import zlib
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from inspector.capture.encrypted import encrypted
from inspector.capture.regular import open_regular
from inspector.engine.errors import InputError
from inspector.engine.model.batching import (
    ALLOW_NONFINITE,
    MAX_FILE,
    MAX_TEXT,
    MORE_FILES,
    allows_nonfinite,
    more_of,
    of_value,
    pad,
    regular_file,
    split_batch,
    tensor_of,
)
from inspector.engine.model.npy import MAGIC, read_npy
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.model.typed_number import as_number
from inspector.engine.registries import INPUTS
from inspector.records import InputSpec, Option
from inspector.records.plain_text import shortened
from inspector.records.unreadable import why_unreadable

UNREADABLE = (
    ValueError, OSError, EOFError, KeyError, MemoryError, RuntimeError, OverflowError, zipfile.BadZipFile, zlib.error,
    csv.Error,
)  # fmt: skip


class Numbers:
    """An array (steps, width), a batch (samples, steps, width), or ids; `options["key"]` chooses in an .npz.

    `options["files"]` adds sequences of other lengths; `allow_nonfinite` lets NaN and infinities pass.
    """

    title = "Numbers from a file"
    summary = "Numbers from .npy, .npz or .csv."
    suffixes = (".npy", ".npz", ".csv")
    magic = (MAGIC,)
    options = (
        MORE_FILES,
        Option(name="key", type="text", default="", help="Which array of an .npz with several."),
        ALLOW_NONFINITE,
    )

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """The sequences of all files, one or several a file."""
        paths = [regular_file(path) for path in (spec.value, *more_of(spec, "files"))]
        key = str(spec.options.get("key", ""))
        rows = [row for path in paths for row in split_batch(subject, tensor_of(read_numbers(path, key)), path.name)]
        sequences = [of_value(subject, row, allow_nonfinite=allows_nonfinite(spec)) for row in rows]
        return pad(subject, sequences, targets=[None] * len(rows), title=paths[0].name, look_at=spec.look_at)


def read_numbers(path: Path, key: str) -> npt.NDArray[Any]:
    """The array in a file, by what the file is rather than by its name. Raises InputError with a one-line message."""
    try:
        with open_regular(path) as file:
            head = file.read(6)
            file.seek(0)
            if head.startswith(b"PK\x03\x04"):
                array = _npz(file, key)
            elif head == MAGIC:
                array = read_npy(file, path.stat().st_size, MAX_FILE)
            elif path.suffix.lower() == ".csv":
                array = _csv(regular_file(str(path), MAX_TEXT))
            else:
                raise ValueError("it does not begin as an .npy or .npz file does")
    except UnicodeDecodeError:
        raise InputError(f"{path.name} cannot be read as numbers: it is not UTF-8 text.") from None
    except InputError:
        raise
    except UNREADABLE as problem:
        raise InputError(f"{path.name} cannot be read as numbers: {why_unreadable(problem)}.") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{path.name} holds {array.dtype}; expected numbers.")
    return array


def _npz(file: IO[bytes], key: str) -> npt.NDArray[Any]:
    with zipfile.ZipFile(file) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        if not key and len(set(names)) > 1:
            raise ValueError(f"it holds {', '.join(names[:10])}: choose one with the option key=NAME")
        chosen = key or (names[0] if names else "")
        if names.count(chosen) > 1:
            raise ValueError(f"it holds two arrays named {shortened(chosen, 80)!r}")
        if chosen not in names:
            raise ValueError(f"it holds {', '.join(names[:10]) or 'no arrays'}, not {chosen!r}")
        locked = encrypted([archive.getinfo(f"{chosen}.npy")])
        if locked is not None:
            raise ValueError(locked)
        with archive.open(f"{chosen}.npy") as stream:
            return read_npy(stream, archive.getinfo(f"{chosen}.npy").file_size, MAX_FILE)


def _csv(path: Path) -> npt.NDArray[Any]:
    """Cells between commas, semicolons, tabs or spaces; a first row without any number is taken as a header."""
    with open_regular(path) as stream, TextIOWrapper(stream, newline="", encoding="utf-8-sig") as file:
        first = file.readline()
        file.seek(0)
        between = next((mark for mark in (",", ";", "\t", " ") if mark in first.strip()), ",")
        rows = [(number, row) for number, row in enumerate(csv.reader(file, delimiter=between), 1) if any(row)]
    if between == " ":
        rows = [(number, [cell for cell in row if cell]) for number, row in rows]
    if rows and not any(_is_number(cell) for cell in rows[0][1]):
        rows = rows[1:]
    if not rows:
        raise ValueError("it has no rows of numbers")
    width = len(rows[0][1])
    for number, row in rows:
        if len(row) != width:
            raise ValueError(f"row {number} has {len(row)} cells, the first has {width}")
        for cell in row:
            if not _is_number(cell):
                raise ValueError(f"{shortened(cell, 40)!r} in row {number} is not a number")
    return np.array([row for _, row in rows], dtype=np.float64)


def _is_number(cell: str) -> bool:
    return as_number(cell) is not None


INPUTS.register("numbers")(Numbers())
