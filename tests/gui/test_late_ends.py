"""What an old worker tells after another has replaced it is not taken for the new one's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inspector.gui.state.connection import Connection
from inspector.records import Failure, Log, Progress
from inspector.transport.process import Exit


class Scripted:
    """A worker whose callbacks the test calls."""

    def __init__(self, on_record: Callable[[Any], None], on_output: Any, on_exit: Callable[[Any], None]) -> None:
        self.on_record, self.on_exit, self.alive, self.sent = on_record, on_exit, True, list[Any]()

    def start(self) -> None:
        pass

    def send(self, request: Any) -> None:
        self.sent.append(request)

    def close(self, patience: float = 1.0) -> None:
        self.alive = False


def test_the_late_end_of_an_old_worker_is_not_the_new_ones() -> None:
    made: list[Scripted] = []

    def make(*callbacks: Any) -> Any:
        made.append(Scripted(*callbacks))
        return made[-1]

    connection = Connection(make)
    assert connection.start() and not connection.start(), "one that is alive stays"
    old = made[0]
    old.alive = False
    assert connection.start()
    old.on_record(Progress(done=0.5, total=1.0))
    old.on_record(Failure(message="It could not be opened."))
    old.on_exit(Exit(code=1, expected=False, sentence="The model ended."))
    assert connection.record() is None and connection.state == "starting"
    made[1].on_record(Failure(message="It could not be opened."))
    assert isinstance(connection.record(), Failure) and connection.record() is None
    made[1].on_exit(Exit(code=1, expected=False, sentence="This one ended."))
    ended = connection.record()
    assert isinstance(ended, Exit) and ended.sentence == "This one ended."
    connection.note(Log("said"))
    assert [line.text for line in connection.lines()] == ["said"]
