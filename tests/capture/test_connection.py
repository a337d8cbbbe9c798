"""What a connection to an index leaves behind where it cannot be made."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from inspector.capture import CaptureError, Writer
from inspector.capture.connection import Connection
from inspector.capture.index import Index
from inspector.capture.layout import INDEX
from inspector.capture.snapshot import PrivateCopy
from inspector.records import Frame, RunStart


def test_a_copy_that_cannot_be_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))

    def vanished(_copy: PrivateCopy) -> None:
        assert list(private.iterdir())
        raise FileNotFoundError(2, "No such file or directory")

    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.flush()
        monkeypatch.setattr(PrivateCopy, "update", vanished)
        with pytest.raises(CaptureError, match="cannot be read") as caught:
            Connection(tmp_path / "a.inspect" / INDEX)
        assert not list(private.iterdir()), caught


def test_a_query_that_would_never_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a forged index may hold is refused before; this holds for whatever was not thought of."""
    monkeypatch.setattr("inspector.capture.index.PATIENCE", 0.1)
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
    index = Index(tmp_path / "a.inspect")
    with pytest.raises(CaptureError, match="interrupted"):
        index.rows(
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 30000000) SELECT max(x) FROM c"
        )
    assert index.rows("SELECT count(*) FROM frames") == [(1,)]
    index.close()


def test_nothing_of_an_index_is_longer_than_a_reader_takes(tmp_path: Path) -> None:
    """Of 900 MB that a cell claims none is read, and no other file is attached."""
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
    index = Index(tmp_path / "a.inspect")
    with pytest.raises(CaptureError, match="too big"):
        index.rows("SELECT length(zeroblob(900000000) || 'x')")
    with pytest.raises(CaptureError, match="too many attached"):
        index.rows("ATTACH ':memory:' AS other")
    index.close()
