"""50,000 frames: a window that shows one of them does not look at all of them for each word."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from inspector.gui.window.bars import frame_bar
from inspector.gui.window.bars.frame_bar import DIFFERENCE, NEWEST, FrameBar
from inspector.gui.window.what_is_shown import place_of, status_of, title_of
from inspector.records import Frame, RunStart

MANY = 50_000


class Counted(tuple[Frame, ...]):
    """Frames that count how many of them are looked at one after the other."""

    seen = 0

    def __iter__(self) -> Iterator[Frame]:
        for one in super().__iter__():
            Counted.seen += 1
            yield one


def of(count: int, first: int = 0) -> Any:
    frames = Counted(Frame(index=first + n, label=f"iteration {n}", step=n) for n in range(count))
    return SimpleNamespace(start=RunStart(run="r", title="t", checkpoint="a.pt"), frames=frames)


def test_title_and_status_of_the_newest_look_at_one(qtbot: Any) -> None:
    capture = of(MANY)
    Counted.seen = 0
    assert title_of(capture, NEWEST) == f"t · a.pt (step 49,999) · frame 49999 of 0–49999 (iteration {MANY - 1})"
    assert "frame 7 of 0–49999 (iteration 7)" in status_of(capture, 7)
    assert Counted.seen == 0


def test_the_place_of_a_frame() -> None:
    frames = of(5, first=10).frames
    assert [place_of(frames, n) for n in (-1, 3, 10, 14, 15)] == [None, None, 0, 4, None]
    assert [place_of(of(5).frames, n) for n in (-1, 0, 4, 5)] == [None, 0, 4, None]


def test_lines_are_worded_when_they_are_drawn(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    worded = 0
    real = frame_bar.clean

    def clean(text: str) -> str:
        nonlocal worded
        worded += 1
        return real(text)

    monkeypatch.setattr(frame_bar, "clean", clean)
    bar = FrameBar()
    qtbot.addWidget(bar)
    bar.show_capture(of(MANY))
    bar.show()
    bar.grab()
    assert bar.frames.count() == MANY and bar.current == MANY - 1
    bar.choose(123)
    assert bar.current == 123 and bar.frames.currentText() == "123: iteration 123"
    assert worded < 500


def test_two_have_their_difference_and_hostile_labels_are_plain(qtbot: Any) -> None:
    bar = FrameBar()
    qtbot.addWidget(bar)
    capture = of(0)
    capture.frames = (Frame(index=0, label="<b>a</b>\x1b[2J"), Frame(index=1))
    bar.show_capture(capture)
    assert [bar.frames.itemText(n) for n in range(3)] == ["0: <b>a</b>⟨001b⟩[2J", "1: ", "difference of the two"]
    bar.choose(DIFFERENCE)
    assert bar.current == DIFFERENCE
