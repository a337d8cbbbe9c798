"""A capture that is shown and that another run replaces: the window shows the new one."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import channel, numbers, write
from opened import opened

from inspector.capture import Writer, open_capture
from inspector.capture.pack import copy_capture
from inspector.gui.window import menus
from inspector.records import Page, RunStart, RunStop

NEW = RunStart(run="new", title="the new one")


@pytest.mark.skipif(sys.platform != "linux", reason="folders exchange their names on Linux")
def test_the_window_shows_what_has_taken_its_place(qtbot: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    with opened(qtbot, background=False) as window:
        window.open_path(str(path))
        with Writer(path, NEW, overwrite=True, whole=True) as writer:
            writer.write(channel())
            writer.write(Page("rnn.l0:h", 0, (0, 0), np.full((8, 4), 7, np.float32)))
            writer.flush()
            window.tick()
            assert window.session.capture.start.run == "r" and window.session.capture.path == path
            writer.write(RunStop("done"))
        qtbot.waitUntil(lambda: window.session.capture.start.run == "new", timeout=10_000)
        assert window.session.sentence == "a.inspect was replaced by another run, which is shown now."
        assert (np.asarray(window.session.capture.array("rnn.l0:h")) == 7).all()
        assert not window.session.capture.damaged and window.panels.source is window.session.capture


def test_a_run_that_goes_on_is_saved_as_it_is(qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Writer(tmp_path / "a.inspect", NEW) as writer, opened(qtbot, background=False) as window:
        writer.write(channel())
        writer.write(Page("rnn.l0:h", 0, (0, 0), numbers(8)))
        writer.flush()
        (tmp_path / "a.inspect" / "mine.txt").write_text("a note")
        window.open_path(str(tmp_path / "a.inspect"))
        monkeypatch.setattr(
            menus.QFileDialog, "getSaveFileName", staticmethod(lambda *_: (str(tmp_path / "b.inspect"), ""))
        )
        menus.save_as(window)
        writer.write(Page("rnn.l0:h", 0, (8, 0), numbers(8)))
        writer.flush()
        told: list[str] = []
        monkeypatch.setattr(window, "fail", told.append)
        menus.save_as(window)
        assert told == [f"{tmp_path / 'b.inspect'} exists already; choose another name."]
    with open_capture(tmp_path / "b.inspect") as capture:
        np.testing.assert_array_equal(np.asarray(capture.array("rnn.l0:h")), numbers(8))
        assert capture.status == "unfinished" and not capture.verify()
    assert (tmp_path / "b.inspect" / "mine.txt").read_text() == "a note"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.inspect", "b.inspect"]


def test_what_cannot_be_copied_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    monkeypatch.setattr(shutil, "copytree", _fails)
    with pytest.raises(Exception, match=r"Cannot save to .*: some of its files could not be copied\."):
        copy_capture(path, tmp_path / "b.inspect")
    assert [one.name for one in tmp_path.iterdir()] == ["a.inspect"]


def _fails(*_: object, **__: object) -> None:
    raise shutil.Error([("a", "b", "it is gone")])
