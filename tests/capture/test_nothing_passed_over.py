"""A reader that takes an index for one that never changes passes over the log beside it, and says nothing."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
from captures import NAME, START, channel, numbers

import inspector
from inspector.capture import Writer, open_capture
from inspector.capture.layout import INDEX
from inspector.records import Page

SOURCES = Path(inspector.__file__).parent


def test_what_is_in_the_log_alone_is_read(tmp_path: Path) -> None:
    values, left = numbers(), tmp_path / "left.inspect"
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        writer.write(Page(NAME, 0, (0, 0), values))
        writer.flush()
        shutil.copytree(tmp_path / "a.inspect", left)  # as a killed writer leaves it
    log = left / f"{INDEX}-wal"
    assert log.stat().st_size
    assert _rows(left) < 1  # what such a reader sees
    with open_capture(left) as capture:
        np.testing.assert_array_equal(capture.array(NAME), values)
        assert not capture.verify()


def _rows(folder: Path) -> int:
    index = sqlite3.connect(f"{(folder / INDEX).absolute().as_uri()}?immutable=1", uri=True)
    try:
        return int(index.execute("SELECT count(*) FROM pages").fetchone()[0])
    except sqlite3.OperationalError:  # it has not even the table
        return 0
    finally:
        index.close()


def test_no_reader_says_that_an_index_never_changes() -> None:
    files = list(SOURCES.rglob("*.py"))
    assert any("mode=ro" in file.read_text("utf-8") for file in files)
    assert [file.name for file in files if "immutable=1" in file.read_text("utf-8")] == []
