"""What is run again is what is shown: what was refused, cancelled or belongs to another model takes nothing from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import Fake, done, ended_early, opened, refuse, run_captured

from inspector.capture import Writer
from inspector.gui.state.session import Session
from inspector.records import Edit, Finished, InputSpec, Load, Loaded, Run, RunStart, RunStop

TYPED = InputSpec(kind="text", value="typed")
SHOWN = InputSpec(kind="text", value="shown")
HELD = (Edit(place="rnn.l0", signal="h", unit=1, value=0.5, start=4),)
WRONG = (Edit(place="rnn.l0", signal="h", unit=1000, value=0.5, start=4),)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    Fake.made = []
    return Session(Fake, tmp_path / "runs")


@pytest.fixture
def worker(session: Session) -> Fake:
    """A worker whose model has run SHOWN with edits, which is what the window shows."""
    worker = opened(session)
    done(session, worker)
    session.run(SHOWN, HELD)
    run_captured(session, worker)
    assert session.spec == SHOWN and session.edits == HELD
    return worker


def cancelled_before_it_began(session: Session, worker: Fake) -> None:
    session.cancel()
    refuse(session, worker, "Cancelled.", kind="cancelled")


@pytest.mark.parametrize(
    "wanted",
    [
        TYPED,
        InputSpec(kind="vectors", value="1 2; the"),
        InputSpec(kind="file", value="/nowhere/dropped.npy"),
        InputSpec(kind="generated", value="noise", options={"steps": 0}),
    ],
    ids=["text", "numbers", "dropped file", "signal"],
)
@pytest.mark.parametrize("how", [refuse, cancelled_before_it_began, ended_early], ids=lambda how: how.__name__)
def test_what_did_not_run_is_not_run_again(
    session: Session, worker: Fake, wanted: InputSpec, how: Callable[[Session, Fake], None]
) -> None:
    path = session.capture.path
    session.run(wanted)
    how(session, worker)
    assert session.spec == SHOWN and session.edits == HELD and session.capture.path == path
    session.again()
    assert isinstance(worker.sent[-1], Run)
    assert worker.sent[-1].input == SHOWN and worker.sent[-1].edits == HELD
    session.close()


def test_the_run_without_edits_and_with_others_is_of_what_is_shown(session: Session, worker: Fake) -> None:
    session.run(TYPED)
    refuse(session, worker)
    made = session.again_possible
    assert made is not None
    for edits in ((), WRONG):
        session.run_with(made, edits)
        assert worker.sent[-1].input == SHOWN and worker.sent[-1].edits == edits
    session.close()


def test_refused_edits_are_kept_for_correcting_and_not_run_again(session: Session, worker: Fake) -> None:
    session.run(SHOWN, WRONG)
    refuse(session, worker, "rnn.l0 has 8 units; 1000 is none of them.")
    assert session.shown.refused.edits == WRONG and "8 units" in session.shown.refused.sentence
    session.again()
    assert worker.sent[-1].edits == HELD
    run_captured(session, worker)
    assert not session.shown.refused.edits, "they were changes to what was shown then"
    session.close()


def test_a_run_that_was_cancelled_or_failed_in_the_middle_is_shown_and_run_again(
    session: Session, worker: Fake
) -> None:
    for status in ("cancelled", "failed"):
        session.run(TYPED)
        run_captured(session, worker, status)
        assert session.capture.status == status and session.spec == TYPED and session.edits == ()
        session.again()
        assert worker.sent[-1].input == TYPED
        done(session, worker)
    session.close()


def test_while_a_run_begins_it_is_the_one_that_runs(session: Session, worker: Fake) -> None:
    session.run(TYPED)
    assert session.spec == TYPED and session.edits == HELD, "edits are those of what is on screen"
    session.close()


def test_edits_that_were_begun_before_another_run_came_up_are_of_the_run_they_were_begun_on(
    session: Session, worker: Fake
) -> None:
    made = session.again_possible
    session.run(TYPED)
    run_captured(session, worker)
    session.run_with(made, WRONG)
    assert worker.sent[-1].input == SHOWN
    session.close()


def test_another_model_does_not_get_the_sequence_of_what_is_shown(session: Session, worker: Fake) -> None:
    made = session.again_possible
    session.open_subject(Load(subject="y"), TYPED)
    worker.say(Loaded(subject="y", generation=worker.sent[-1].generation))
    session.tick()
    refuse(session, worker)
    assert session.subject == "y" and session.again_possible is None
    sent = len(worker.sent)
    session.run_with(made, ())
    assert len(worker.sent) == sent and "a run of x" in session.sentence
    session.again()
    assert worker.sent[-1].input == InputSpec()
    session.close()


def test_a_capture_from_disk_was_not_run_here(session: Session, worker: Fake, tmp_path: Path) -> None:
    Writer(tmp_path / "other.inspect", RunStart(run="o", title="t")).close()
    session.open_capture(tmp_path / "other.inspect")
    session.run(TYPED)
    refuse(session, worker)
    sent = len(worker.sent)
    session.again()
    assert session.again_possible is None and len(worker.sent) == sent
    assert session.sentence.startswith("What is shown was opened, not run here")
    session.close()


def test_a_dead_worker_opens_its_model_again_and_runs_what_is_shown(session: Session, worker: Fake) -> None:
    session.run(TYPED)
    refuse(session, worker)
    worker.alive = False
    session.again()
    another = Fake.made[-1]
    another.say(Loaded(subject="x", generation=another.sent[-1].generation))
    session.tick()
    assert another.sent[-1].input == SHOWN and another.sent[-1].edits == HELD
    session.close()


def test_where_nothing_is_shown_the_last_run_is_tried_again(session: Session) -> None:
    worker = opened(session)
    refuse(session, worker)
    session.run(TYPED)
    refuse(session, worker)
    assert session.capture is None
    session.again()
    assert worker.sent[-1].input == TYPED
    session.close()


def test_what_is_refused_is_told_with_the_run(session: Session, worker: Fake) -> None:
    session.run(TYPED)
    changes = refuse(session, worker, "No such letters.")
    assert changes.refused is not None and changes.refused.input == TYPED and changes.failure is not None
    session.run(TYPED)
    worker.say(Finished(path=worker.sent[-1].path, stop=RunStop("failed"), generation=worker.sent[-1].generation))
    assert session.tick().refused is None, "a model that raises has refused nothing"
    session.close()
