"""A file that is exported is on the disk before it has its name, and what was there before stays until then."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from captures import numbers, write

from inspector.capture import CaptureError, pack, write_atomically
from inspector.capture.pack import copy_capture

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


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which file a descriptor is of")
def test_a_copy_of_a_capture_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = write(tmp_path / "a.inspect", numbers()), tmp_path / "b.inspect"
    (source / "notes").mkdir()
    (source / "notes" / "own.txt").write_text("kept beside it")
    synced: list[Path] = []
    named: list[list[str]] = []

    def seen(real: Any) -> Any:
        def sync(descriptor: int) -> None:
            real(descriptor)
            synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())

        return sync

    rename = Path.rename

    def renamed(self: Path, to: Path) -> Path:
        held = {self, *self.rglob("*")}
        named.append(sorted(str(one.relative_to(self)) for one in held - set(synced)))
        return rename(self, to)

    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, seen(getattr(os, name)))
    monkeypatch.setattr(Path, "rename", renamed)
    copy_capture(source, target)
    assert named == [[]] and synced[-1] == tmp_path and (target / "notes" / "own.txt").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_whoever_could_read_what_was_there_can_read_the_new_one(mode: int, tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    before = os.umask(0o022)
    try:
        write_atomically(target, DATA)
        assert target.stat().st_mode & 0o777 == 0o644
        target.chmod(mode)
        write_atomically(target, b"after")
    finally:
        os.umask(before)
    assert target.stat().st_mode & 0o777 == mode and target.read_bytes() == b"after"


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


def test_a_file_system_without_modes_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a stick, which refuses a mode that it cannot keep."""

    def refused(self: Path, _mode: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refused)
    write_atomically(tmp_path / "a.csv", DATA)
    assert (tmp_path / "a.csv").read_bytes() == DATA and len(list(tmp_path.iterdir())) == 1


def test_what_a_link_leads_to_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "a.csv").symlink_to(tmp_path / "there" / "b.csv")
    write_atomically(tmp_path / "a.csv", DATA)
    assert (tmp_path / "a.csv").is_symlink() and (tmp_path / "there" / "b.csv").read_bytes() == DATA


@pytest.mark.skipif(os.name != "posix", reason="a named pipe")
def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(CaptureError, match=r"Cannot write .*a\.csv: it is a named pipe, not an ordinary file\.$"):
        write_atomically(tmp_path / "a.csv", DATA)
    assert (tmp_path / "a.csv").is_fifo() and len(list(tmp_path.iterdir())) == 1


def test_a_pack_that_a_disk_refuses_names_its_file_also_where_nothing_can_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that can only be read refuses to remove what is not there, too."""
    write(tmp_path / "run.inspect", numbers(5, 2))
    made, gone = os.open, Path.unlink

    def refused(path: Any, *more: Any, **others: Any) -> int:
        if Path(path).name.startswith(".run"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return made(path, *more, **others)

    def unlink(self: Path, *, missing_ok: bool = False) -> None:
        if self.name.startswith(".run"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))
        gone(self, missing_ok=missing_ok)

    monkeypatch.setattr(os, "open", refused)
    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(CaptureError, match=r"Cannot write .*run\.inspect\.zip: Read-only file system\.$"):
        pack(tmp_path / "run.inspect")


def test_a_pack_is_on_the_disk_before_it_takes_the_name_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.inspect", numbers(20, 4))
    target = pack(tmp_path / "a.inspect", tmp_path / "a.inspect.zip")
    before, seen = target.read_bytes(), list[int]()
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        assert target.read_bytes() == before
        seen.append(os.fstat(descriptor).st_size)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    pack(tmp_path / "a.inspect", target, overwrite=True)
    assert seen == [target.stat().st_size]


def test_a_pack_into_a_folder_that_is_gone_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.inspect", numbers(20, 4))
    with pytest.raises(CaptureError, match=r"^Cannot write .*gone.a\.inspect\.zip: No such file or directory\.$"):
        pack(tmp_path / "a.inspect", tmp_path / "gone" / "a.inspect.zip")


@pytest.mark.parametrize(
    ("code", "why"),
    [(sqlite3.SQLITE_CANTOPEN, "cannot be opened or made"), (sqlite3.SQLITE_FULL, "No space left on device"),
     (sqlite3.SQLITE_IOERR_WRITE, "the disk reported an error")],
)  # fmt: skip
def test_a_copy_that_a_disk_refuses_blames_the_disk_and_not_the_capture(
    code: int, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "run.inspect", numbers(5, 2))
    connect = sqlite3.connect

    def refused(target: Any, *more: Any, **others: Any) -> sqlite3.Connection:
        if Path(str(target)).parent.name.startswith((".copy", "inspector-")):
            problem = sqlite3.OperationalError("unable to open database file")
            problem.sqlite_errorcode = code
            raise problem
        return connect(target, *more, **others)

    monkeypatch.setattr(sqlite3, "connect", refused)
    with pytest.raises(CaptureError, match=rf"^Cannot save to .*copy\.inspect: .*{why}") as told:
        copy_capture(tmp_path / "run.inspect", tmp_path / "copy.inspect")
    assert "damaged" not in str(told.value) and str(told.value).endswith(".")
    with pytest.raises(CaptureError, match=rf"^Cannot write .*run\.inspect\.zip: .*{why}.* \(.*index\.sqlite\)\.$"):
        pack(tmp_path / "run.inspect")
    assert [one.name for one in tmp_path.iterdir()] == ["run.inspect"]


def test_a_folder_for_temporary_files_that_is_full_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "run.inspect", numbers(5, 2))

    def full(**_: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"{tempfile.gettempdir()}/inspector-x")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    with pytest.raises(CaptureError, match=r"Cannot write .*zip: No space left on device \(.*inspector-x\)\.$"):
        pack(tmp_path / "run.inspect")
