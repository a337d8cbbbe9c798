"""What a worker prints and says, bounded on its way: lines, progress bars, floods, and the end that is never behind them."""

from __future__ import annotations

import threading
import time

import pytest

from inspector.records import Failure, Log, Progress
from inspector.transport import inbox as module
from inspector.transport.inbox import Inbox
from inspector.transport.lines import CUT, MOST_CHARACTERS, Lines
from inspector.transport.process import Exit


def in_pieces(text: str, size: int) -> list[str]:
    """The lines of a text that comes in pieces of a size, to its end."""
    lines = Lines()
    found = []
    for start in range(0, len(text), size):
        found += lines.feed(text[start : start + size])
    return found + lines.close()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\nb\n\nc", ["a", "b", "", "c"]),
        ("a\r\nb\r\n", ["a", "b"]),
        (" 1%\r 50%\r100%\n", ["100%"]),
        (" 1%\r 50%\r100%", ["100%"]),
        ("\r 1%\r 50%\r100%\rdone\nnext", ["done", "next"]),
        ("a\r\r\nb", ["a", "b"]),
        ("\n\n", ["", ""]),
    ],
)
def test_lines_are_the_same_however_they_are_cut_into_pieces(text: str, lines: list[str], size: int) -> None:
    assert in_pieces(text, size) == lines


@pytest.mark.parametrize("size", [1000, 5000, 50_000])
def test_a_line_without_an_end_is_cut_and_the_next_one_is_whole(size: int) -> None:
    text = "x" * 30_000 + "\nnext\n" + "y" * MOST_CHARACTERS + "\n" + "z" * (MOST_CHARACTERS + 1)
    assert in_pieces(text, size) == [
        "x" * MOST_CHARACTERS + CUT, "next", "y" * MOST_CHARACTERS, "z" * MOST_CHARACTERS + CUT,
    ]  # fmt: skip


def test_a_progress_bar_that_never_ends_its_line_takes_no_room() -> None:
    lines = Lines()
    for percent in range(100_000):
        assert lines.feed(f"\r{percent} %|####    |") == []
        assert len(lines._begun) < 40
    assert lines.close() == ["99999 %|####    |"]


def text_of(lines: list[Log]) -> list[str]:
    return [line.text for line in lines]


def test_a_few_lines_pass_as_they_are() -> None:
    box = Inbox()
    box.on_output("stdout", "a\nb")
    box.on_output("stderr", "c\n")
    assert box.lines(10) == [Log("a", "info", "model"), Log("c", "info", "stderr")]
    box.on_output("stdout", "")
    assert text_of(box.lines(10)) == ["b"] and box.lines(10) == []


def test_of_a_flood_the_newest_lines_are_kept_and_the_others_counted() -> None:
    box = Inbox()
    for n in range(0, 12_000, 3):
        box.on_output("stdout", f"{n}\n{n + 1}\n{n + 2}\n")
    first = text_of(box.lines(500))
    assert first == ["… 10\u202f000 lines of stdout dropped …", *map(str, range(10_000, 10_500))]
    box.on_output("stdout", "".join(f"{n}\n" for n in range(12_000, 19_000)))
    rest = text_of(box.lines(module.MOST_LINES))
    assert rest == ["… 6\u202f500 lines of stdout dropped, 16\u202f500 so far …", *map(str, range(17_000, 19_000))]
    assert box.lines(10) == []


def test_long_lines_are_bounded_by_their_length_too() -> None:
    box = Inbox()
    for n in range(2_000):
        box.on_output("stderr", f"{n:04}" + "x" * 3_000 + "\n")
    kept = box.lines(module.MOST_LINES)
    assert "dropped" in kept[0].text and kept[-1].text.startswith("1999")
    assert sum(len(line.text) for line in kept) <= module.MOST_CHARACTERS + 100
    assert int("".join(c for c in kept[0].text if c.isdigit())) == 2_000 - (len(kept) - 1)


def test_a_flood_of_one_stream_leaves_the_lines_of_the_other() -> None:
    box = Inbox()
    box.on_output("stderr", "a warning\n")
    box.on_output("stdout", "x\n" * 50_000)
    box.on_output("stderr", "another\n")
    lines = box.lines(10_000)
    assert [line.text for line in lines if line.source == "stderr"] == ["a warning", "another"]
    assert text_of(lines)[:3] == ["… 48\u202f000 lines of stdout dropped …", "a warning", "x"]
    assert text_of(lines)[-1] == "another", "in the order in which they came"


def test_records_come_before_anything_printed_and_progress_is_only_the_newest() -> None:
    box = Inbox()
    for n in range(50_000):
        box.on_record(Progress(done=n, total=50_000))
    box.on_record(Log("a line", "info", "worker"))
    box.on_record(Failure(message="over"))
    box.on_exit(Exit(0, True, ""))
    assert box.record() == Failure(message="over") and isinstance(box.record(), Exit)
    assert box.record() == Progress(done=49_999, total=50_000) and box.record() is None
    assert text_of(box.lines(9)) == ["a line"]


def test_a_flood_of_log_records_is_bounded_too() -> None:
    box = Inbox()
    for n in range(10_000):
        box.on_record(Log(str(n), "warning", "thread"))
    assert len(box.lines(100_000)) == module.MOST_LINES + 1


def test_a_flood_of_records_makes_the_worker_wait_and_an_exit_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RECORDS", 3)
    box = Inbox()
    said = threading.Thread(target=lambda: [box.on_record(Failure(message=str(n))) for n in range(5)], daemon=True)
    said.start()
    said.join(0.3)
    assert said.is_alive()
    box.on_exit(Exit(1, False, "gone"))
    taken = []
    while len(taken) < 6:
        taken.append(box.record())
        time.sleep(0.01)
    said.join(5)
    assert not said.is_alive()
    assert [record.message for record in taken if isinstance(record, Failure)] == list("01234")


def test_a_reader_that_waits_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RECORDS", 1)
    box = Inbox()
    said = threading.Thread(target=lambda: [box.on_record(Failure(message="")) for _ in range(5)], daemon=True)
    said.start()
    said.join(0.2)
    box.close()
    said.join(5)
    assert not said.is_alive()
