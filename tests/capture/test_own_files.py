"""What is copied or packed of a capture that somebody else made: its own files, and only where there is room for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from captures import numbers, write

from inspector.capture import CaptureError, open_capture, pack, snapshot
from inspector.capture.pack import copy_capture


def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_bytes(b"SECRET" * 5_000)
    return path


def test_a_link_to_a_private_file_is_neither_packed_nor_copied(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    pages = path / "pages-0000.bin"
    pages.rename(tmp_path / "pages")
    pages.symlink_to(secret(tmp_path))
    for done, act in (
        ("packed", lambda: pack(path, tmp_path / "b.inspect.zip")),
        ("copied", lambda: copy_capture(path, tmp_path / "b.inspect")),
    ):
        with pytest.raises(CaptureError) as told:
            act()
        assert str(told.value) == (
            f"{pages} is a link to another file, so it is not {done}; put the file itself there."
        )
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.inspect", "pages", "secret"]


def test_links_pipes_and_devices_are_left_out_of_a_copy(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    (path / "mine.txt").write_text("a note")
    (path / "leads-out").symlink_to(secret(tmp_path))
    (path / "folder").symlink_to("/etc")
    (path / "endless").symlink_to("/dev/zero")
    os.mkfifo(path / "pipe")
    (path / "spikes").mkdir()
    (path / "spikes" / "leads-out").symlink_to(secret(tmp_path))
    (path / "spikes" / "own").write_bytes(b"x")
    copy_capture(path, tmp_path / "b.inspect")
    found = sorted(str(one.relative_to(tmp_path / "b.inspect")) for one in (tmp_path / "b.inspect").rglob("*"))
    assert found == ["index.sqlite", "mine.txt", "pages-0000.bin", "spikes", "spikes/own"]
    with open_capture(tmp_path / "b.inspect") as capture:
        assert not capture.verify()


def test_files_with_holes_are_not_copied_until_the_disk_is_full(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    (path / "hole").touch()
    os.truncate(path / "hole", 1 << 42)
    with pytest.raises(CaptureError, match=r"has room for [\d,]+ bytes; 4,398,\d{3},\d{3},\d{3} are needed\.$"):
        copy_capture(path, tmp_path / "b.inspect")
    (path / "hole").unlink()
    os.truncate(path / "pages-0000.bin", 1 << 42)
    with pytest.raises(CaptureError, match=r"has room for [\d,]+ bytes; 4,398,\d{3},\d{3},\d{3} are needed\.$"):
        pack(path, tmp_path / "b.inspect.zip")
    assert [one.name for one in tmp_path.iterdir()] == ["a.inspect"]


def test_a_log_of_any_length_beside_an_index_is_not_copied(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    (path / "index.sqlite-wal").touch()
    os.truncate(path / "index.sqlite-wal", 1 << 42)
    with pytest.raises(CaptureError) as told:
        open_capture(path)
    assert str(told.value) == (
        f"a.inspect/index.sqlite-wal has {1 << 42:,} bytes; at most {snapshot.MOST_LOG:,} are read."
    )


def test_without_room_for_the_copy_of_a_log_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    (path / "index.sqlite-wal").touch()
    os.truncate(path / "index.sqlite-wal", 2 * snapshot.SMALL)
    monkeypatch.setattr(snapshot.shutil, "disk_usage", lambda _folder: type("Usage", (), {"free": 1}))
    with pytest.raises(CaptureError, match=r"for a copy of which .* has no room"):
        open_capture(path)
