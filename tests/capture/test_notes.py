"""Notes of a person live in the capture: appended to its index, nothing else changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from inspector.capture import CaptureError, Writer, add_note, change_note, notes, open_any, open_capture, pack
from inspector.capture.layout import INDEX
from inspector.capture.noted import why_no_notes
from inspector.records import Channel, Frame, Note, Noted, Page, RunStart, RunStop, decode, encode


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="a")) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="x:h", kind="state", dims=("step",), shape=(3,), dtype="float32"))
        writer.write(Page("x:h", 0, (0,), np.arange(3, dtype=np.float32)))
        writer.write(RunStop("done"))
    return tmp_path / "a.inspect"


def pages(path: Path) -> dict[str, str]:
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in path.glob("pages-*.bin")}


def test_a_note_is_appended_and_nothing_else_changes(path: Path) -> None:
    before = pages(path)
    with open_capture(path) as capture:
        first = add_note(capture, Noted(frame=0, step=2), "  here\nit turns  ")
        add_note(capture, Noted(finding="IN101", place="rnn"), "known")
        assert notes(capture) == []  # until it is refreshed
        assert capture.changed()
        capture.refresh()
        assert [one.text for one in notes(capture)] == ["here\nit turns", "known"]
        assert first.written > 1e9 and notes(capture)[0] == first
        assert capture.status == "done" and not capture.damage
    assert pages(path) == before
    assert sorted(one.name for one in path.iterdir()) == sorted([INDEX, *before])
    with open_capture(path) as again:
        assert [one.where for one in notes(again)] == [Noted(frame=0, step=2), Noted(finding="IN101", place="rnn")]
        assert again.array("x:h").tolist() == [0, 1, 2] and not again.damage


def test_a_packed_capture_has_its_notes_and_takes_no_more(path: Path) -> None:
    with open_capture(path) as capture:
        add_note(capture, Noted(), "whole")
    with open_capture(pack(path)) as packed:
        assert [one.text for one in notes(packed)] == ["whole"]
        with pytest.raises(CaptureError, match="packed capture, which is read-only"):
            add_note(packed, Noted(), "more")


def test_while_a_run_writes_nothing_is_noted_and_the_reason_is_told(tmp_path: Path) -> None:
    with Writer(tmp_path / "b.inspect", RunStart(run="r", title="b")) as writer:
        writer.write(Frame(index=0))
        writer.flush()
        with open_capture(tmp_path / "b.inspect") as capture:
            assert "is being written" in why_no_notes(capture)
            with pytest.raises(CaptureError, match="is being written"):
                add_note(capture, Noted(), "early")
    with open_capture(tmp_path / "b.inspect") as capture:
        assert not why_no_notes(capture)


def test_what_is_read_only_or_no_capture_says_so(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.csv").write_text("step,loss\n0,1\n1,2\n2,3\n", encoding="utf-8")
    with open_any(tmp_path / "log.csv") as log:
        assert notes(log) == []
        with pytest.raises(CaptureError, match="its files are left as they are"):
            add_note(log, Noted(), "x")
    monkeypatch.setattr("os.access", lambda *_: False)  # the tests may be run by root, who may write anything
    with open_capture(path) as capture, pytest.raises(CaptureError, match="is read-only"):
        add_note(capture, Noted(), "x")


@pytest.mark.parametrize(("text", "why"), [(" \n", "at least one character"), ("x" * 20_001, "at most 20,000")])
def test_a_text_is_neither_empty_nor_endless(path: Path, text: str, why: str) -> None:
    with open_capture(path) as capture, pytest.raises(CaptureError, match=why):
        add_note(capture, Noted(), text)


def test_a_note_travels_and_says_what_it_is_about() -> None:
    note = Note(Noted(frame=2, step=5, axis="answer"), "\u202eé\n<b>", 1.5)
    assert decode(encode(note)) == note
    assert note.where.words == "step of answer 5, frame 2"
    assert Noted(finding="IN402", place="rnn").words == "IN402 rnn"
    assert Noted().words == "the whole"


def test_a_note_gets_other_words_or_is_removed_and_the_others_stay(path: Path) -> None:
    with open_capture(path) as capture:
        for text in ("first", "second", "third"):
            add_note(capture, Noted(frame=0), text)
        capture.refresh()
        first, second, third = notes(capture)
        change_note(capture, second, " better ")
        change_note(capture, first, "")
        capture.refresh()
        assert [(one.text, one.written) for one in notes(capture)] == [
            ("better", second.written),
            ("third", third.written),
        ]
        change_note(capture, notes(capture)[0], "best")
        capture.refresh()
        with pytest.raises(CaptureError, match="no such note"):
            change_note(capture, first, "it is gone")
    with open_capture(path) as again:
        assert [one.text for one in notes(again)] == ["best", "third"] and not again.damage
