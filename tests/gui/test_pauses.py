"""Threads that read beside the window pause for it: by a clock that is fed, and in what they call while they read."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened

from inspector.capture import Writer, open_capture
from inspector.capture.turns import give_way, interrupted_by
from inspector.gui.state import pauses
from inspector.gui.state.pauses import (
    EACH_SECONDS,
    LATE_SECONDS,
    LONGEST_SECONDS,
    LOOK_SECONDS,
    MOMENT_SECONDS,
    Beats,
    Pause,
)
from inspector.gui.state.switch_interval import giving_way
from inspector.records import Channel, Frame, Page, RunStart, RunStop

PAGES = 700


class Fed:
    """A clock that goes on by sleeping; at some time the window turns."""

    def __init__(self) -> None:
        self.now, self.window = 100.0, Beats()
        self.slept: list[float] = []
        self.turns_at = float("inf")

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        if self.now >= self.turns_at:
            self.window.at, self.turns_at = self.now, float("inf")

    def pause(self) -> Pause:
        return Pause(self.window, lambda: self.now, self.sleep)


def test_without_a_late_window_a_thread_pauses_for_a_moment_now_and_then() -> None:
    fed = Fed()
    pause = fed.pause()
    for _ in range(100):
        fed.now += EACH_SECONDS / 10
        pause(True)
    assert 9 <= len(fed.slept) <= 10 and set(fed.slept) == {MOMENT_SECONDS}


def test_for_a_late_window_it_pauses_for_a_moment_only_while_a_file_is_locked() -> None:
    fed = Fed()
    pause = fed.pause()
    fed.window.at = fed.now
    fed.now += 2 * LATE_SECONDS
    pause(False)
    assert fed.slept == [MOMENT_SECONDS]


def test_a_thread_waits_until_the_window_turns_and_goes_on_at_once_then() -> None:
    fed = Fed()
    pause = fed.pause()
    fed.window.at = fed.now
    fed.now += LATE_SECONDS + EACH_SECONDS
    fed.turns_at = fed.now + LONGEST_SECONDS / 2
    pause(True)
    assert set(fed.slept) == {MOMENT_SECONDS, LOOK_SECONDS}
    assert 0 <= fed.now - fed.window.at <= LOOK_SECONDS and fed.window.at < fed.now + LONGEST_SECONDS


def test_one_late_beat_is_waited_for_once_since_the_window_may_wait_for_the_thread() -> None:
    fed = Fed()
    pause = fed.pause()
    fed.window.at = fed.now
    fed.now += LATE_SECONDS + EACH_SECONDS
    began = fed.now
    for _ in range(50):
        pause(True)
        fed.now += EACH_SECONDS
    waited = fed.slept.count(LOOK_SECONDS) * LOOK_SECONDS
    assert LONGEST_SECONDS <= waited <= LONGEST_SECONDS + 2 * LOOK_SECONDS and fed.now > began + waited
    fed.window.at = fed.now - 2 * LATE_SECONDS  # it has turned, and is late again
    pause(True)
    assert fed.slept.count(LOOK_SECONDS) * LOOK_SECONDS >= 2 * LONGEST_SECONDS


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "many.inspect"
    states = Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(None, 3), title="h")
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(states)
        for number in range(PAGES):
            writer.write(Page("rnn:h", 0, (2 * number, 0), np.full((2, 3), number, np.float32)))
        writer.write(RunStop("done"))
    return path


def test_reading_calls_what_its_thread_was_told_and_reads_the_same(many: Path) -> None:
    calls: list[tuple[str, bool]] = []
    where = ["opening"]
    with interrupted_by(lambda long: calls.append((where[0], long))), open_capture(many) as capture:
        where[0] = "all"
        found = capture.array("rnn:h")
        where[0] = "some"
        capture.release(0)
        some = capture.block("rnn:h", region=(slice(100, 300),))
    assert np.array_equal(found, np.repeat(np.arange(PAGES, dtype=np.float32), 2)[:, None] * np.ones(3))
    assert np.array_equal(some, found[100:300])
    assert calls.count(("opening", True)) >= PAGES and calls.count(("all", True)) >= PAGES
    assert calls.count(("some", True)) >= 100
    assert PAGES / 100 <= calls.count(("opening", False)) < PAGES / 10, (
        "while the index is locked, a moment now and then"
    )
    before = len(calls)
    give_way()
    assert len(calls) == before, "the thread has left"


def test_only_the_thread_that_was_told_pauses_and_what_it_was_told_before_comes_back() -> None:
    calls: list[str] = []
    with interrupted_by(lambda _long: calls.append("outer")):
        with interrupted_by(lambda _long: calls.append("inner")):
            give_way()
        other = threading.Thread(target=give_way)
        other.start()
        other.join()
        give_way()
    assert calls == ["inner", "outer"]


def test_threads_beside_the_window_pause_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(Pause, "__call__", lambda self, _long: seen.append(self))
    with giving_way():
        give_way()
    give_way()
    assert [type(one) for one in seen] == [Pause]


def test_a_window_tells_of_its_turns_until_it_is_closed(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses.WINDOW, "at", 0.0)
    with opened(qtbot) as window:
        window.tick()
        assert pauses.WINDOW.at > 0
    assert pauses.WINDOW.at == 0
