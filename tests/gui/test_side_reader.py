"""Work beside the window: the most urgent task first, errors as sentences, a thread that ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, write_frames

from inspector.capture import Capture, CaptureError, open_capture
from inspector.gui.state.side_reader import SideReader, Task


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Capture]:
    path = write_frames(tmp_path_factory.mktemp("beside"), channel("a:h", "state", ("step", "unit"), np.ones((3, 2))))
    with open_capture(path) as opened:
        yield opened


def test_the_most_urgent_task_gets_the_next_step(capture: Capture) -> None:
    reader, done, go = SideReader(), [], threading.Event()

    def steps(name: str, count: int) -> Any:
        def run(own: Capture) -> Iterator[None]:
            assert own is not capture and own.array("a:h").sum() == 6
            for number in range(count):
                if name == "slow" and number == 1:
                    go.wait(10)
                done.append(f"{name} {number}")
                yield

        return run

    reader.do(capture, Task("slow", steps("slow", 4)), at_once=False)
    reader.do(capture, Task("urgent", steps("urgent", 2), urgency=1), at_once=False)
    assert reader.busy
    go.set()
    reader.wait()
    assert not reader.busy and reader.news() and not reader.news()
    assert [one for one in done if one.startswith("urgent")] == ["urgent 0", "urgent 1"]
    assert done.index("urgent 1") < done.index("slow 2"), "the one that was asked for later does not wait"
    assert not any(thread.name == "maps" for thread in threading.enumerate())


def test_an_error_is_a_sentence_and_others_go_on(capture: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = SideReader()

    def fails(_own: Any) -> Iterator[None]:
        yield
        raise CaptureError("Page 3 is gone.")

    def works(_own: Any) -> Iterator[None]:
        yield

    first, second = Task("a", fails, urgency=1), Task("b", works)
    reader.do(capture, first, at_once=False)
    reader.do(capture, second, at_once=False)
    reader.wait()
    assert (first.error, second.error, second.done, reader.problem) == ("Page 3 is gone.", "", True, "Page 3 is gone.")

    def gone(_path: Path) -> Any:
        raise CaptureError("There is no capture.")

    monkeypatch.setattr("inspector.gui.state.side_reader.open_capture", gone)
    third = Task("c", works)
    reader.do(capture, third, at_once=False)
    reader.wait()
    assert third.done and reader.problem == "There is no capture."


def test_what_is_no_file_is_computed_where_it_is_asked_for() -> None:
    reader, here = SideReader(), []

    def steps(view: Any) -> Iterator[None]:
        here.append((view, threading.current_thread() is threading.main_thread()))
        yield

    task = Task("a", steps)
    reader.do("a comparison", task, at_once=False)
    assert task.done and here == [("a comparison", True)] and not reader.busy


def test_closing_gives_up_what_is_left(capture: Capture) -> None:
    reader, count = SideReader(), []

    def endless(_own: Any) -> Iterator[None]:
        while True:
            count.append(1)
            yield

    reader.do(capture, Task("a", endless), at_once=False)
    reader.close()
    assert not reader.busy and not any(thread.name == "maps" for thread in threading.enumerate())


def test_while_it_works_threads_take_turns_sooner(capture: Capture) -> None:
    usual, seen = sys.getswitchinterval(), []

    def steps(_own: Capture) -> Iterator[None]:
        seen.append(sys.getswitchinterval())
        yield

    reader = SideReader()
    reader.do(capture, Task("a", steps), at_once=False)
    reader.wait()
    assert seen[0] < usual == sys.getswitchinterval()
