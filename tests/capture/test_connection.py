"""What a connection to an index leaves behind where it cannot be made."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from inspector.capture import CaptureError, Writer
from inspector.capture.connection import Connection
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
