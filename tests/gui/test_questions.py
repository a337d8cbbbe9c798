"""Questions about the run that is shown: asked of the worker that kept it, and where it did not, of a new run."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import Fake, opened, run_captured

from inspector.gui.state.session import Session
from inspector.records import Analyse, Failure, Finished, Progress, Run, RunStop


@pytest.fixture
def session(tmp_path: Path) -> Session:
    Fake.made = []
    return Session(Fake, tmp_path / "runs")


@pytest.fixture
def worker(session: Session) -> Fake:
    """A worker whose model has run, which is what the window shows."""
    worker = opened(session)
    run_captured(session, worker)
    return worker


def test_a_question_is_asked_of_the_run_that_is_shown(session: Session, worker: Fake) -> None:
    session.analyse(("bptt",))
    asked = worker.sent[-1]
    assert isinstance(asked, Analyse) and asked.quantities == ("bptt",)
    assert session.capture is not None and asked.path == str(session.capture.path)
    assert session.running and session.sentence == "Computing …" and session.computed == ()
    worker.say(Progress(done=1, total=2, text="half", generation=asked.generation))
    worker.say(Finished(path=asked.path, stop=RunStop("done", seconds=0.3), generation=asked.generation))
    changes = session.tick()
    assert changes.computed and not session.running and session.computed == ("bptt",)
    assert session.sentence == "Done in 0.3 s." and not changes.another_capture
    session.again()
    assert isinstance(worker.sent[-1], Run)
    run_captured(session, worker)
    assert session.computed == (), "of another run"


def test_a_question_that_needs_a_run_makes_it_and_says_why(session: Session, worker: Fake) -> None:
    session.analyse(("clipping",))
    said = "clipping needs what was not kept."
    worker.say(Failure(message=said, request="Analyse", kind="needs run", generation=worker.sent[-1].generation))
    changes = session.tick()
    assert isinstance(worker.sent[-1], Run) and session.running and changes.failure is None
    assert session.sentence == f"{said} Running …" and said in [line.text for line in session.log]


@pytest.mark.parametrize("kind", ["input", "capture"])
def test_a_question_that_fails_takes_nothing_from_the_run(session: Session, worker: Fake, kind: str) -> None:
    session.analyse(("bptt",))
    worker.say(Failure(message="No.", request="Analyse", kind=kind, generation=worker.sent[-1].generation))
    changes = session.tick()
    assert changes.failure is not None and changes.refused is None and not session.running
    assert session.computed == () and not changes.computed and isinstance(worker.sent[-1], Analyse)


def test_a_question_that_was_cancelled_was_not_answered(session: Session, worker: Fake) -> None:
    session.analyse(("bptt",))
    asked = worker.sent[-1]
    session.cancel()
    worker.say(Finished(path=asked.path, stop=RunStop("cancelled", "Cancelled."), generation=asked.generation))
    assert not session.tick().computed and session.computed == () and session.sentence == "Cancelled."


def test_without_the_worker_that_made_it_the_run_is_made_again(session: Session, worker: Fake) -> None:
    session.run(session.spec)
    running = worker.sent[-1]
    session.analyse(("bptt",))
    assert isinstance(worker.sent[-1], Run) and worker.sent[-1] is not running, "while another run goes on"
    run_captured(session, worker)
    worker.alive = False
    session.analyse(("bptt",))
    assert not isinstance(Fake.made[-1].sent[-1], Analyse)
