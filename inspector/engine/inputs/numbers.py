"""Numbers from .npy, .npz and .csv files: vectors, or ids for a model that reads tokens. Nothing is unpickled."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.engine.batching import of_value, pad, regular_file
from inspector.engine.errors import InputError
from inspector.engine.shelves import INPUTS
from inspector.engine.subject import Batch, Subject
from inspector.records import InputSpec

SUFFIXES = (".npy", ".npz", ".csv")


class Numbers:
    """An array (steps, width), a batch (samples, steps, width), or ids; `options["key"]` chooses in an .npz."""

    summary = "numbers from .npy, .npz or .csv"

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """The file's sequence, or a batch where the file has one axis more than a sequence."""
        path = regular_file(spec.value)
        array = read_numbers(path, str(spec.options.get("key", "")))
        axes = 1 if subject.kind == "tokens" else 2
        if array.ndim == 2 and axes == 1 and 1 in array.shape:
            array = array.reshape(-1)
        rows = list(array) if array.ndim == axes + 1 else [array]
        if len(rows) == 0:
            raise InputError(f"{path.name} holds no sequences.")
        sequences = [of_value(subject, row) for row in rows]
        return pad(subject, sequences, targets=[None] * len(rows), title=path.name, look_at=spec.look_at)


def read_numbers(path: Path, key: str) -> npt.NDArray[Any]:
    """The array in a file. Raises InputError in one sentence."""
    try:
        if path.suffix == ".csv":
            array = _csv(path)
        elif path.suffix == ".npz":
            array = _npz(path, key)
        else:
            array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, KeyError) as problem:
        raise InputError(f"{path.name} cannot be read as numbers: {problem}.") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{path.name} holds {array.dtype}; expected numbers.")
    return array


def _npz(path: Path, key: str) -> npt.NDArray[Any]:
    with np.load(path, allow_pickle=False) as archive:
        names = list(archive)
        if not key and len(names) > 1:
            raise ValueError(f"it holds {', '.join(names[:10])}: say which with key=NAME")
        chosen = key or (names[0] if names else "")
        if chosen not in names:
            raise ValueError(f"it holds {', '.join(names[:10]) or 'nothing'}, not {chosen!r}")
        array: npt.NDArray[Any] = archive[chosen]
        return array


def _csv(path: Path) -> npt.NDArray[Any]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    if rows and not all(_is_number(cell) for cell in rows[0]):
        rows = rows[1:]
    if not rows:
        raise ValueError("it has no rows of numbers")
    width = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"row {number + 1} has {len(row)} cells, the first has {width}")
        for cell in row:
            if not _is_number(cell):
                raise ValueError(f"{cell[:40]!r} in row {number + 1} is not a number")
    return np.array(rows, dtype=np.float64)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


INPUTS.register("numbers")(Numbers())
