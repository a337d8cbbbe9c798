"""A worker that is started before its window: nothing that it tells is lost, and one of another kind is not used."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from inspector.transport import early
from inspector.transport.early import EarlyWorker, begin_early, early_worker

CHOSEN = (None, 2, 0.0)


def listener() -> tuple[list[tuple[str, Any]], tuple[Any, Any, Any]]:
    told: list[tuple[str, Any]] = []
    names = ("record", "output", "exit")
    return told, tuple(lambda *given, name=name: told.append((name, given)) for name in names)  # type: ignore[return-value]


def test_what_was_told_before_comes_first_and_the_rest_at_once() -> None:
    worker = EarlyWorker(CHOSEN)
    worker.on_record("catalogue")
    worker.on_output("stdout", "a line")
    kept = worker.on_record
    told, listening = listener()
    worker.belong_to(*listening)
    assert told == [("record", ("catalogue",)), ("output", ("stdout", "a line"))]
    kept("from a thread that had looked before")
    worker.on_record("loaded")
    assert [given for _, given in told[2:]] == [("from a thread that had looked before",), ("loaded",)]


def test_its_end_is_told_once_it_belongs_to_somebody() -> None:
    ended = threading.Event()
    worker = EarlyWorker(("/no/such/python", 0, 0.0))
    worker.start()
    worker.start()  # a session starts what it is given
    told, (record, output, leave) = listener()
    worker.belong_to(record, output, lambda *given: (leave(*given), ended.set()))
    assert ended.wait(30)
    assert len(told) == 1 and told[0][0] == "exit" and "/no/such/python" in told[0][1][0].sentence


def test_one_of_another_kind_is_ended_and_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = threading.Event()
    monkeypatch.setattr(EarlyWorker, "start", lambda _worker: None)
    monkeypatch.setattr(EarlyWorker, "close", lambda _worker: closed.set())
    told, listening = listener()
    begin_early(CHOSEN)
    assert early_worker((None, 1, 0.0), *listening) is None and closed.wait(30) and not early._waiting
    begin_early(CHOSEN)
    given = early_worker(CHOSEN, *listening)
    assert given is not None and early_worker(CHOSEN, *listening) is None
    given.on_record("catalogue")
    assert told == [("record", ("catalogue",))]
