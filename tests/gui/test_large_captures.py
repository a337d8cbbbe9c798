"""A capture of many pages is opened in the background, and shown as one that is opened at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened

from inspector.capture import Writer
from inspector.gui.state import capture_opening
from inspector.gui.window.main_window import Window
from inspector.records import Channel, Frame, Page, RunStart, RunStop

STATES = Channel(name="rnn:state", kind="state", dims=("step", "unit"), shape=(8, 2), title="state")


@pytest.fixture
def window(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr(capture_opening, "LONG_INDEX", 0)
    with opened(qtbot) as made:
        yield made


def written(path: Path) -> Path:
    """A capture of one channel in eight pages."""
    with Writer(path, RunStart(run=path.stem, title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(STATES)
        for step in range(8):
            writer.write(Page(STATES.name, 0, (step, 0), np.full((1, 2), step, np.float32)))
        writer.write(RunStop("done"))
    return path


def test_only_a_long_index_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.inspect")
    size = (path / "index.sqlite").stat().st_size
    monkeypatch.setattr(capture_opening, "LONG_INDEX", size)
    assert not capture_opening.takes_long(path) and not capture_opening.takes_long(tmp_path / "none.inspect")
    (path / "index.sqlite-wal").write_bytes(b"x")
    assert capture_opening.takes_long(path)
    packed = tmp_path / "packed"
    packed.write_bytes(b"x" * 10)
    assert not capture_opening.takes_long(packed)
    monkeypatch.setattr(capture_opening, "LARGE_PACK", 9)
    assert capture_opening.takes_long(packed)


def test_it_is_shown_once_it_was_read(window: Window, tmp_path: Path, qtbot: Any) -> None:
    window.choose_overview(on=True)
    first, second = (written(tmp_path / f"{name}.inspect") for name in ("first", "second"))
    window.open_path(str(first))
    assert window.session.capture is None and window.session.sentence == "Reading first.inspect …"
    assert str(first) in window.settings.recent()
    qtbot.waitUntil(lambda: (window.tick(), window.session.capture is not None)[1])
    assert window.session.capture.start.run == "first" and "overview" in window.docking.seen
    assert window.session.sentence == "first.inspect is shown."
    np.testing.assert_array_equal(window.session.capture.array(STATES.name)[:, 0], np.arange(8))
    window.open_path(str(first))
    window.open_path(str(second))  # before the first was read again
    qtbot.waitUntil(lambda: (window.tick(), window.session.capture.start.run == "second")[1])
    assert window.session.reading is None


def test_what_cannot_be_opened_or_was_cancelled_leaves_what_is_shown(
    window: Window, tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.session.open_capture(written(tmp_path / "shown.inspect"))
    window.new_capture()
    shown = window.session.capture
    (broken := tmp_path / "broken.inspect").mkdir()
    (broken / "index.sqlite").write_bytes(b"no database" * 100)
    said: list[str] = []
    monkeypatch.setattr(window, "tell", lambda sentence, _details="": said.append(sentence))
    window.open_path(str(broken))
    qtbot.waitUntil(lambda: (window.tick(), window.session.reading is None)[1])
    assert len(said) == 1 and "broken.inspect" in said[0] and window.session.capture is shown
    window.open_path(str(written(tmp_path / "other.inspect")))
    window.session.cancel()
    qtbot.waitUntil(lambda: (window.tick(), window.session.reading is None)[1])
    assert window.session.capture is shown and "cancelled" in window.session.sentence
