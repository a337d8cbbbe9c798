"""Text files of commands: whole, or what was there before."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from inspector.cli.fault import Fault
from inspector.cli.whole_file import write_whole


def test_what_was_there_stays_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.py"

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    target.write_text("before")
    monkeypatch.setattr(os, "fsync", full)  # so it is synchronised before it has its name
    with pytest.raises(Fault, match=r"a\.py cannot be written \(No space left on device\); it is as it was\.$"):
        write_whole(target, "something else")
    monkeypatch.undo()
    assert target.read_text() == "before" and list(tmp_path.iterdir()) == [target]
    write_whole(target, "something else")
    assert target.read_text() == "something else" and list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    write_whole(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there").read_text() == "after"
    write_whole(Path(os.devnull), "nothing is made beside it")
    assert not Path(os.devnull).is_file()
