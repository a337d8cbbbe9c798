"""A file that is exported is on the disk before it has its name, and what was there before stays until then."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from inspector.capture import CaptureError, write_atomically

DATA = b"numbers\n" * 1000


def test_it_is_synchronised_whole_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []
    sync, replace = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        seen.append(("synchronised", os.fstat(descriptor).st_size))
        sync(descriptor)

    def renamed(self: Path, target: Any) -> Path:
        seen.append(("named", self.stat().st_size))
        assert self.parent == Path(target).parent  # of one file system: a rename is one step
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", renamed)
    write_atomically(tmp_path / "a.csv", DATA)
    assert seen == [("synchronised", len(DATA)), ("named", len(DATA))]
    assert (tmp_path / "a.csv").read_bytes() == DATA and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("where", ["make", "write", "synchronise", "name"])
def test_what_was_there_stays_where_a_step_fails(
    where: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.csv"
    target.write_bytes(b"before")

    def fails(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    class Full:
        def __init__(self, descriptor: int, _mode: str) -> None:
            self.descriptor = descriptor

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            os.close(self.descriptor)

        write = fails

    steps = {"make": (os, "open", fails), "write": (os, "fdopen", Full), "synchronise": (os, "fsync", fails)}
    monkeypatch.setattr(*steps.get(where, (Path, "replace", fails)))
    with pytest.raises(CaptureError, match=r"Cannot write .*a\.csv: ") as told:
        write_atomically(target, DATA)
    assert "\n" not in str(told.value)
    assert target.read_bytes() == b"before" and [one.name for one in tmp_path.iterdir()] == ["a.csv"]
