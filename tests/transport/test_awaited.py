"""A training whose connection broke: it is waited for, by whom, and in which folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import CHECKOUT
from network import SECRET, begin, cut, kept, page, sender, until

from inspector.capture import awaited, open_capture
from inspector.capture.awaited import Awaiting, awaited_since
from inspector.capture.control import Controller
from inspector.records import RunStop
from inspector.transport.network import sender as sending
from inspector.transport.network.listener import Listener

links = pytest.mark.skipif(sys.platform == "win32", reason="links")


def test_a_training_whose_connection_broke_is_waited_for_and_never_said_to_have_ended(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "AGAIN_SECONDS", (1.0, 1.0))
    one = sender(listener)
    begin(one)
    one.write(page(0))
    one.flush()
    with open_capture(kept(tmp_path / "kept")) as capture:
        assert (capture.status, capture.awaited) == ("running", None)
        seen: list[tuple[str, bool]] = []

        def looked(state: tuple[str, bool]) -> bool:
            capture.refresh()
            seen.append((capture.status, capture.awaited is not None))
            return seen[-1] == state

        cut(listener)
        until(lambda: looked(("unfinished", True)))
        assert capture.awaited is not None and abs(time.time() - capture.awaited) < 60
        until(lambda: looked(("running", False)))
        assert ("unfinished", False) not in seen, "it was said to have ended"
        one.write(RunStop("done"))
        one.close()
        until(lambda: looked(("done", False)))
        assert ("unfinished", False) not in seen
    assert not list((kept(tmp_path / "kept") / "control").glob("*"))


def test_between_two_looks_a_training_that_comes_back_is_still_waited_for(tmp_path: Path) -> None:
    """Its writer takes the place of the word that it is waited for; a listener that was killed counts for nothing."""
    with Listener(tmp_path / "kept", SECRET) as first:
        one = sender(first)
        begin(one)
        one.write(page(0))
        one.flush()
        one._fail("the test begins")
        one._thread.join(10)
    path = kept(tmp_path / "kept")
    with open_capture(path) as capture:
        waiting = Awaiting(path)
        waiting.begin()
        capture.refresh()
        waiting.end()  # the training is back, which the next refresh finds
        assert capture.status == "unfinished" and capture.awaited is not None
        capture.refresh()
        assert capture.awaited is None


def test_a_listener_that_ends_waits_no_more(tmp_path: Path) -> None:
    with Listener(tmp_path / "kept", SECRET) as first:
        one = sender(first)
        begin(one)
        one.write(page(0))
        one.flush()
        cut(first)
        until(lambda: awaited_since(kept(tmp_path / "kept")) is not None or one._connected)
    with open_capture(kept(tmp_path / "kept")) as capture:
        assert (capture.status, capture.awaited) == ("unfinished", None)
    one._fail("the test is over")
    one._thread.join(10)


FORGED = [
    b"", b"[]", b"{}", b"\xff", b"[" * 5000, b'{"pid": true, "started": ""}', b'{"pid": 1, "started": ""}',
    b'{"pid": 1' + b"0" * 400 + b', "started": "", PLACE}',
    b'{"pid": "1", "started": "", PLACE}', b'{"pid": true, "started": "", PLACE}',
    b'{"pid": 999999999, "started": "x", PLACE}',
    b'{"pid": 1, "started": [], PLACE}', b'{"pid": 1, "started": "", "device": [1], "inode": "1", "path": "/"}',
]  # fmt: skip


@pytest.mark.parametrize("content", FORGED)
def test_a_forged_word_of_a_listener_is_no_listener(content: bytes, tmp_path: Path) -> None:
    found = tmp_path.stat()
    (tmp_path / "control").mkdir()
    place = b'"device": %d, "inode": %d, "path": "%s"' % (found.st_dev, found.st_ino, os.fsencode(tmp_path))
    told = content.replace(b"PLACE", place)
    (tmp_path / "control" / "listener.json").write_bytes(told)
    assert awaited_since(tmp_path) is None


@pytest.mark.parametrize("path", [None, [], 1, "", "x\0", "\ud800", "/" + "x" * 5000])
def test_a_forged_path_is_no_listener(path: object, tmp_path: Path) -> None:
    Awaiting(tmp_path).begin()
    word = tmp_path / "control" / "listener.json"
    told = json.loads(word.read_text())
    assert awaited_since(tmp_path) is not None
    word.write_text(json.dumps({**told, "path": path}))
    assert awaited_since(tmp_path) is None


def test_the_word_of_a_listener_that_was_killed_is_no_listener(tmp_path: Path) -> None:
    code = f"from inspector.capture.awaited import *; from pathlib import Path; p = Path({str(tmp_path)!r}); "
    code += "Awaiting(p).begin(); assert awaited_since(p)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=CHECKOUT)
    assert (tmp_path / "control" / "listener.json").exists() and awaited_since(tmp_path) is None
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "control" / "listener.json").unlink()
    (tmp_path / "control" / "listener.json").symlink_to(tmp_path / "pipe")
    assert awaited_since(tmp_path) is None


@pytest.mark.parametrize("name", ["own", "ä“\n", os.fsdecode(b"\xff")])
def test_neither_a_copy_of_a_capture_is_waited_for_nor_one_that_was_moved(name: str, tmp_path: Path) -> None:
    """Its training comes back to the place at which it wrote, whatever stands there by then."""
    own = tmp_path / name
    own.mkdir()
    Awaiting(own).begin()
    shutil.copytree(own, tmp_path / "copy")
    assert (tmp_path / "copy" / "control" / "listener.json").exists() and awaited_since(tmp_path / "copy") is None
    (tmp_path / "link").symlink_to(own)
    assert awaited_since(own) is not None and awaited_since(tmp_path / "link") is not None
    own.rename(tmp_path / "renamed")
    assert awaited_since(tmp_path / "renamed") is None
    own.mkdir()  # where the training comes back to
    assert awaited_since(tmp_path / "renamed") is None and awaited_since(own) is None
    own.rmdir()
    (tmp_path / "renamed").rename(own)
    assert awaited_since(own) is not None


def test_a_listener_takes_away_its_own_word_only(tmp_path: Path) -> None:
    first, second = Awaiting(tmp_path), Awaiting(tmp_path)
    first.begin()
    second.begin()
    first.end()
    assert awaited_since(tmp_path) is not None
    Awaiting(tmp_path).end()
    assert awaited_since(tmp_path) is not None, "one that never waited"
    second.end()
    assert awaited_since(tmp_path) is None and not list((tmp_path / "control").iterdir())


def test_two_listeners_of_one_folder(tmp_path: Path) -> None:
    """The one that ends was told of the training first; the other still waits for it."""
    with Listener(tmp_path / "kept", SECRET) as first:
        one = sender(first)
        begin(one)
        one.write(page(0))
        one.flush()
        path = kept(tmp_path / "kept")
        cut(first)
        until(lambda: awaited_since(path) is not None or one._connected)
        one._fail("the test begins")
        one._thread.join(10)
        second = Awaiting(path)
        second.begin()
    assert awaited_since(path) is not None
    second.end()
    assert awaited_since(path) is None


@links
def test_a_link_in_the_place_of_its_folder_chooses_nothing(tmp_path: Path) -> None:
    """Neither where a listener or a window writes, nor what they remove."""
    capture, other = tmp_path / "a.inspect", tmp_path / "other"
    for folder in (capture, other):
        folder.mkdir()
    waiting, window = Awaiting(capture), Controller(capture)
    waiting.begin()
    window.beat()
    (capture / "control").rename(other / "control")
    (capture / "control").symlink_to(other / "control")
    before = {path.name for path in (other / "control").iterdir()}
    assert awaited_since(capture) is None
    waiting.end()
    window.close()
    Awaiting(capture).begin()
    with pytest.raises(OSError, match="is a link"):
        Controller(capture).beat()
    assert {path.name for path in (other / "control").iterdir()} == before and len(before) == 2


def test_a_listener_that_cannot_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = os.fdopen

    def full(descriptor: int, *more: Any, **others: Any) -> Any:
        made(descriptor, *more, **others).close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    waiting = Awaiting(tmp_path)
    waiting.begin()
    monkeypatch.undo()
    assert awaited_since(tmp_path) is None and not list((tmp_path / "control").iterdir())
    waiting.end()


@pytest.mark.parametrize("links_there", [True, False])
@pytest.mark.parametrize("again", [False, True])
def test_a_word_that_another_listener_writes_at_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links_there: bool, again: bool
) -> None:
    """It comes between the look at the file and its removal; `again`: and once more while the first is put back."""
    first, at = Awaiting(tmp_path), tmp_path / "control" / "listener.json"
    first.begin()
    own, plain, looks = at.read_text(), awaited._told, []

    def told(path: Path, *name: str) -> Any:
        found = plain(path, *name)
        looks.append(name)
        if len(looks) == 1 or again:
            at.write_text(f'{{"pid": {len(looks)}}}')
        return found

    def refused(*_: Any) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(awaited, "_told", told)
    if not links_there:
        monkeypatch.setattr(os, "link", refused)
    first.end()
    assert at.read_text() == f'{{"pid": {1 + again}}}' != own
    assert [one.name for one in at.parent.iterdir()] == ["listener.json"]
