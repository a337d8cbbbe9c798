"""Whether a table is the log of a training or numbers of another kind, by the names in its header."""

from __future__ import annotations

import csv
from pathlib import Path

from inspector.capture.layout import CaptureError
from inspector.capture.logs.csv_header import columns_of
from inspector.capture.logs.roles import Role, role_of
from inspector.capture.regular import open_regular
from inspector.records.plain_text import plain_line

OF_TRAININGS: frozenset[Role] = frozenset({
    "loss", "validation loss", "learning rate", "gradient norm", "accuracy", "validation accuracy", "perplexity",
})  # fmt: skip
"""What only trainings have. A column of steps alone says nothing: a measured series may have one."""
LONGEST = 1 << 18
"""Bytes at the beginning of a file in which its header is looked for: 10,000 columns, whose loss may be the last."""


def training_columns(path: Path) -> tuple[str, ...]:
    """The name of the step of a table, then the names that only the log of a training has; () where there is none of
    either, or no header that can be read. Counter-example: a model of losses, fed with losses by step."""
    try:
        with open_regular(path) as file:
            head = file.read(LONGEST)
        lines = [line for line in head.split(b"\n") if line.strip() and not line.startswith(b"#")]
        header = lines[0].decode("utf-8-sig", "replace").rstrip("\r") if lines and b"\0" not in lines[0] else ""
        columns = columns_of(header, path.name, _split)
    except (OSError, ValueError, CaptureError):  # a path with a NUL in it
        return ()
    found = [name for (_, name), _ in columns.curves if role_of(name) in OF_TRAININGS]
    return tuple(plain_line(name, 40) for name in (columns.step_name, *found)) if found else ()


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
