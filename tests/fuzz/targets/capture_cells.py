"""Cells of the index of a capture, changed on purpose: checksums and counts fit what they say."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from captures import seal
from harmed_captures import _read
from target import FoundError, Target

from inspector.capture import CaptureError
from inspector.capture.layout import INDEX

from .capture_files import whole

ROW = 4
"""Bytes that choose table, row, column and type of a cell; the length of its content follows as two more."""


def attempt(data: bytes, scratch: Path) -> None:
    """Change one cell after the other, as the bytes say, then read all of it."""
    path = scratch / "a.inspect"
    shutil.copytree(whole().path, path)
    with closing(sqlite3.connect(path / INDEX)) as index, index:
        _change(index, data)
    with suppress(sqlite3.Error, ValueError, KeyError, TypeError, OverflowError, AttributeError, RecursionError):
        seal(path)
    outcome = _read(path, None)
    if outcome.kind == "lost":
        raise FoundError(outcome.said)


def _change(index: sqlite3.Connection, data: bytes) -> None:
    tables = [name for (name,) in index.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    tables = [name for name in tables if not name.startswith("sqlite_")]
    at = 0
    for _ in range(8):
        lead, size = data[at : at + ROW], int.from_bytes(data[at + ROW : at + ROW + 2], "little")
        content = data[at + ROW + 2 : at + ROW + 2 + size]
        at += ROW + 2 + size
        if len(lead) < ROW:
            return
        table = tables[lead[0] % len(tables)]
        columns = [name for _, name, *_ in index.execute(f"PRAGMA table_info({table})")]
        rows = [number for (number,) in index.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
        if rows:
            statement = f"UPDATE {table} SET {columns[lead[2] % len(columns)]} = {_form(lead[3])} WHERE rowid = ?"
            with suppress(sqlite3.Error, OverflowError):
                index.execute(statement, (_value(lead[3], content), rows[lead[1] % len(rows)]))


def _form(kind: int) -> str:
    return "CAST(? AS TEXT)" if kind % 5 == 0 else "?"


def _value(kind: int, content: bytes) -> object:
    """Text that may be none, text, a whole number, a float, bytes."""
    if kind % 5 in (0, 4):
        return content
    if kind % 5 == 1:
        return content.decode(errors="replace")
    if kind % 5 == 2:
        return int.from_bytes(content[:8], "little", signed=True)
    with suppress(ValueError):
        return float(content[:32])
    return None


TARGET = Target(
    "cells of the index, with checksums that fit", ("inspector.capture", "inspector.records"), attempt, (CaptureError,)
)
