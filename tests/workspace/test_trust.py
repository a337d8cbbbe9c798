"""What was agreed to is remembered privately, whole, by several windows at once, and not where others may write it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.workspace import trust
from inspector.workspace.trust import NotRegularError, agree, agreed_files, digest, read_regular, store

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
A, B = digest(b"a"), digest(b"b")


def test_an_agreement_is_remembered_and_replaced() -> None:
    assert agreed_files() == ({}, "")
    agree({"/m.py": A, "/n.py": B})
    agree({"/m.py": B})
    assert agreed_files() == ({"/m.py": B, "/n.py": B}, "")
    agree({"/caf\udce9\u202e.py": A})
    assert agreed_files()[0]["/caf\udce9\u202e.py"] == A


@posix
def test_the_list_is_private(own_user_folders: Path) -> None:
    before = os.umask(0)
    try:
        agree({"/m.py": A})
    finally:
        os.umask(before)
    assert stat.S_IMODE(store().stat().st_mode) == 0o600 and stat.S_IMODE(store().parent.stat().st_mode) == 0o700
    store().parent.chmod(0o755)
    agree({"/n.py": A})
    assert stat.S_IMODE(store().parent.stat().st_mode) == 0o700


def test_windows_that_write_at_once_lose_nothing() -> None:
    code = "import sys\nfrom inspector.workspace.trust import agree\nfor n in range(25):\n    agree({f'/{sys.argv[1]}-{n}': '0' * 64})"
    windows = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "abcd"]
    assert [window.wait(60) for window in windows] == [0, 0, 0, 0]
    assert set(agreed_files()[0]) == {f"/{name}-{n}" for name in "abcd" for n in range(25)}


def test_a_write_that_fails_leaves_the_list_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    agree({"/m.py": A})

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        agree({"/n.py": B})
    assert agreed_files() == ({"/m.py": A}, "") and not list(store().parent.glob("*.part"))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[" * 100_000, b"\xff\xfe", b"nul", b'"text"'])
def test_a_list_that_cannot_be_read_counts_for_nothing_and_is_told(content: bytes) -> None:
    agree({"/m.py": A})
    store().write_bytes(content)
    known, problem = agreed_files()
    assert known == {} and str(store()) in problem and len(problem.splitlines()) == 1
    agree({"/n.py": B})
    assert agreed_files() == ({"/n.py": B}, "")


def test_entries_that_are_no_hashes_are_left_out() -> None:
    agree({"/m.py": A})
    store().write_text(f'{{"/m.py": "{A}", "/n.py": "yes", "/o.py": 1, "{B}": "/p.py"}}')
    assert agreed_files() == ({"/m.py": A}, "")


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_list_that_others_may_write_counts_for_nothing(mode: int) -> None:
    agree({"/m.py": A})
    store().chmod(mode)
    known, problem = agreed_files()
    assert known == {} and "other users may write" in problem


@posix
def test_a_pipe_or_a_folder_in_the_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotRegularError):
        read_regular(tmp_path / "pipe", 10)
    (tmp_path / "long").write_bytes(b"x" * 11)
    with pytest.raises(NotRegularError):
        read_regular(tmp_path / "long", 10)
    agree({"/m.py": A})
    store().unlink()
    os.mkfifo(store())
    known, problem = agreed_files()
    assert known == {} and "not a regular file" in problem


def test_the_oldest_agreements_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "MOST_FILES", 3)
    agree({f"/{name}.py": A for name in "abc"})
    agree({"/a.py": B})
    agree({"/d.py": B})
    assert set(agreed_files()[0]) == {"/c.py", "/a.py", "/d.py"}
