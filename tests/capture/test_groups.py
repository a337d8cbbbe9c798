"""Groups on their way to the disk: whoever waits is told, whatever goes wrong on the way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from captures import START, channel, numbers

from inspector.capture import CaptureError, Writer, writer
from inspector.capture.groups import Group, Groups
from inspector.capture.store import Store
from inspector.records import Page


def in_time(action: Any) -> None:
    """Call it in a thread, which must end: what waits for ever would hold up this process too."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "it waits for ever"


@pytest.mark.parametrize("problem", [MemoryError, KeyboardInterrupt])
def test_a_group_that_cannot_be_finished_holds_up_none_of_the_next(problem: type[BaseException]) -> None:
    seen: list[int] = []

    def finish(group: Group) -> None:
        seen.append(len(group.records))
        raise problem

    groups, marks = Groups(finish), [threading.Event() for _ in range(6)]

    def go() -> None:
        for number, mark in enumerate(marks):
            groups.put(Group([0] * number, (0, number), marks=[mark]))
        groups.close()

    in_time(go)
    assert sum(seen) == 15 and all(mark.is_set() for mark in marks)


def test_a_writer_that_fails_without_memory_for_words_tells_whoever_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_given: object) -> str:
        raise MemoryError

    values, said = numbers(64), list[str]()
    written = Writer(tmp_path / "a.inspect", START)
    written.write(channel())
    written.flush()
    monkeypatch.setattr(Store, "finish", fails)
    monkeypatch.setattr(writer, "_explain", fails)

    def go() -> None:
        for action in (
            lambda: [written.write(Page(channel().name, 0, (n, 0), values[n : n + 8])) for n in range(0, 64, 8)],
            written.flush,
            written.close,
        ):
            try:
                action()
            except CaptureError as problem:
                said.append(str(problem))

    in_time(go)
    assert said and set(said) == {str(writer.UNTOLD)}


def test_what_is_on_its_way_when_a_writer_fails_is_written_before_its_files_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    close, groups_close = Store.close, Groups.close

    def noted(self: Any, name: str, call: Any) -> None:
        call(self)
        order.append(name)

    monkeypatch.setattr(Store, "close", lambda self: noted(self, "files", close))
    monkeypatch.setattr(Groups, "close", lambda self: noted(self, "groups", groups_close))
    written = Writer(tmp_path / "a.inspect", START)
    written.write(channel())
    written.write(Page(channel().name, 0, (0, 0), numbers(8)))
    written.flush()
    written.write(Page(channel().name, 0, (8, 0), numbers(8)))
    written.flush()

    def taken(_records: Any) -> None:
        raise TypeError("replaced")

    monkeypatch.setattr(written, "_taken", taken)
    written.write(Page(channel().name, 0, (16, 0), numbers(8)))

    def go() -> None:
        with pytest.raises(CaptureError):
            written.close()

    in_time(go)
    assert order == ["groups", "files"]
