"""The session without Qt: generations, cancelling, dying workers, consent, by a worker that is a fake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import CaptureError, Writer
from inspector.gui.state import session as module
from inspector.gui.state.session import Session
from inspector.records import (
    Cancel,
    Catalog,
    Channel,
    CheckpointReport,
    Failure,
    Finished,
    InputSpec,
    Load,
    Loaded,
    Log,
    Page,
    Progress,
    Run,
    RunStart,
    RunStop,
)  # fmt: skip
from inspector.transport.process import Exit


class Fake:
    """A worker that records what it is asked and says what the test wants."""

    made: list[Fake]

    def __init__(
        self, say: Callable[[Any], None], output: Callable[[str, str], None], ended: Callable[[Any], None]
    ) -> None:
        self.say, self.output, self.ended = say, output, ended
        self.sent: list[Any] = []
        self.alive = False
        Fake.made.append(self)

    def start(self) -> None:
        self.alive = True

    def send(self, request: Any) -> None:
        self.sent.append(request)

    def close(self, patience: float = 1.0) -> None:
        self.alive = False


@pytest.fixture
def session(tmp_path: Path) -> Session:
    Fake.made = []
    return Session(Fake, tmp_path / "runs")


def opened(session: Session) -> Fake:
    session.open_subject(Load(subject="x"))
    fake = Fake.made[-1]
    fake.say(Catalog(torch="2", threads=1, devices=("cpu",)))
    fake.say(Loaded(subject="x", generation=fake.sent[-1].generation))
    session.tick()
    return fake


def test_opening_runs_the_first_example(session: Session) -> None:
    fake = opened(session)
    assert isinstance(fake.sent[0], Load) and isinstance(fake.sent[1], Run)
    assert session.running and session.worker_state == "ready"
    fake.say(Progress(done=1, total=2, text="half", generation=fake.sent[1].generation))
    session.tick()
    assert session.progress is not None and session.progress.text == "half"
    fake.say(Finished(path=fake.sent[1].path, stop=RunStop("done", seconds=2.0), generation=fake.sent[1].generation))
    session.tick()
    assert not session.running and "2.0 s" in session.sentence


def test_a_second_run_cancels_the_first_and_its_answers_die(session: Session) -> None:
    fake = opened(session)
    first = fake.sent[-1]
    session.run(InputSpec(kind="text", value="b"))
    assert isinstance(fake.sent[2], Cancel) and fake.sent[3].input.value == "b"
    fake.say(Finished(path=first.path, stop=RunStop("cancelled"), generation=first.generation))
    fake.say(Failure(message="old trouble", generation=first.generation))
    changes = session.tick()
    assert session.running and changes.failure is None


def test_the_capture_of_the_run_is_shown_as_soon_as_it_is_there(session: Session) -> None:
    fake = opened(session)
    assert session.capture is None
    with Writer(fake.sent[-1].path, RunStart(run="r", title="t")) as writer:
        writer.flush()
        assert session.tick().another_capture
        assert session.capture is not None and session.capture.status == "running"
        writer.write(RunStop("done"))
        writer.flush()
        session.tick()
        assert session.capture.status == "done"
    session.close()
    assert not fake.alive


def test_a_dead_worker_is_told_once_and_the_capture_stays(session: Session) -> None:
    fake = opened(session)
    Writer(fake.sent[-1].path, RunStart(run="r", title="t")).close()
    session.tick()
    fake.alive = False
    fake.ended(Exit(-11, False, "The worker crashed."))
    changes = session.tick()
    assert changes.failure is not None and changes.failure.message == "The worker crashed."
    assert session.worker_state == "ended" and not session.running and session.capture is not None
    session.start_again()
    assert Fake.made[-1] is not fake and isinstance(Fake.made[-1].sent[0], Load)
    Fake.made[-1].say(Loaded(subject="x", generation=Fake.made[-1].sent[0].generation))
    session.tick()
    assert not session.running, "user code is not run again by itself"
    session.close()


def test_a_model_that_ignores_the_cancel_loses_its_worker(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = opened(session)
    monkeypatch.setattr(module, "CANCEL_PATIENCE", 0.0)
    session.cancel()
    assert isinstance(fake.sent[-1], Cancel)
    session.tick()
    assert not fake.alive and not session.running and "did not stop" in session.sentence
    assert isinstance(Fake.made[-1].sent[0], Load)


def test_a_misfit_asks_before_it_runs(session: Session) -> None:
    session.open_subject(Load(subject="x", checkpoint="w.pt"))
    fake = Fake.made[-1]
    report = CheckpointReport(path="w.pt", fits=False)
    fake.say(Loaded(subject="x", report=report, needs_consent=True, generation=fake.sent[0].generation))
    changes = session.tick()
    assert changes.consent is not None and not session.running and len(fake.sent) == 1
    session.agree()
    assert fake.sent[1].partial


def test_output_of_the_model_is_log(session: Session) -> None:
    fake = opened(session)
    fake.output("stdout", "epoch <b>1</b>")
    assert session.tick().lines == [Log("epoch <b>1</b>", "info", "model")]


def test_only_the_newest_runs_are_kept(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_RUNS", 2)
    for name in ("a", "b", "c"):
        Writer(session.runs / f"{name}.inspect", RunStart(run=name, title="t")).close()
    opened(session)
    assert sorted(path.name for path in session.runs.glob("*.inspect")) == ["b.inspect", "c.inspect"]
    session.close()


def test_what_one_window_shows_or_runs_another_does_not_remove(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_RUNS", 0)
    first = opened(session)
    run = Path(first.sent[-1].path)
    Writer(run, RunStart(run="r", title="t")).close()  # done, and not yet seen by its window
    other = Session(Fake, session.runs)
    opened(other)
    assert run.is_dir()
    session.tick()
    assert session.capture is not None and session.capture.path == run
    opened(other)
    assert run.is_dir()
    session.close()
    opened(other)
    assert not run.exists()
    other.close()


def test_a_capture_that_cannot_be_opened_holds_nothing(session: Session) -> None:
    opened(session)
    with pytest.raises(CaptureError):
        session.open_capture(session.runs / "nowhere.inspect")
    held = [path.read_text() for path in (session.runs / ".held").iterdir()]
    assert len(held) == 1 and "nowhere" not in held[0]
    session.close()


def test_another_run_at_the_path_that_is_shown_is_another_capture(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    channel = Channel(name="a:h", kind="state", dims=("step",), shape=(None,), title="h")
    for run in ("first", "second"):
        with Writer(path, RunStart(run=run, title=run), overwrite=True) as writer:
            writer.write(channel)
            writer.write(Page("a:h", 0, (0,), np.full(3, len(run), np.float32)))
        if run == "first":
            session.open_capture(path)
    assert session.tick().another_capture and session.capture is not None
    assert session.capture.start.run == "second" and session.capture.array("a:h").tolist() == [6, 6, 6]
    assert not session.tick().another_capture
    session.close()


def test_the_windows_own_runs_replace_nothing(session: Session) -> None:
    fake = opened(session)
    assert not fake.sent[-1].overwrite and not Path(fake.sent[-1].path).exists()
    session.close()
