"""A session that opens a model: what stays open when that fails, is refused, hangs or is cancelled."""

from __future__ import annotations

import pytest
from fakes import Fake, done, opened
from session_steps import open_another

from inspector.gui.state import session as module
from inspector.gui.state.session import Session
from inspector.records import (
    Cancel,
    CheckpointReport,
    Failure,
    Finished,
    InputSpec,
    Load,
    Loaded,
    Run,
    RunStop,
)  # fmt: skip
from inspector.transport.process import Exit


def test_a_failed_open_leaves_the_model_before_open_and_runnable(session: Session) -> None:
    fake = opened(session)
    done(session, fake)
    session.run(InputSpec(kind="text", value="mine"))
    done(session, fake)
    load = open_another(session, fake)
    assert session.opening is not None and session.busy and not session.running
    fake.say(Failure(message="There is no module 'y'.", request="Load", generation=load.generation))
    changes = session.tick()
    assert changes.failure is not None and changes.not_opened is not None and changes.not_opened.checkpoint == "w.pt"
    assert changes.loaded is None, "the input bar stays that of the model that is open"
    assert (
        session.opening is None
        and session.subject == "x"
        and session.loaded is not None
        and session.loaded.subject == "x"
    )
    assert session.sentence == "There is no module 'y'; x is still open."
    session.again()
    assert isinstance(fake.sent[-1], Run) and fake.sent[-1].input.value == "mine" and session.running
    session.close()


def test_a_run_in_progress_is_cancelled_by_an_opening_and_its_end_is_not_that_of_the_next(session: Session) -> None:
    fake = opened(session)
    old = fake.sent[-1]
    load = open_another(session, fake)
    assert isinstance(fake.sent[-2], Cancel) and not session.running
    fake.say(Finished(path=old.path, stop=RunStop("cancelled"), generation=old.generation))
    session.tick()
    assert session.opening is not None and session.sentence == "Opening y …"
    fake.say(Loaded(subject="y", generation=load.generation))
    session.tick()
    assert session.running and session.subject == "y" and fake.sent[-1].input.value == "to y"
    session.close()


def test_a_refused_consent_leaves_the_model_before_open(session: Session) -> None:
    fake = opened(session)
    done(session, fake)
    load = open_another(session, fake)
    report = CheckpointReport(path="w.pt", fits=False)
    fake.say(Loaded(subject="y", report=report, needs_consent=True, generation=load.generation))
    assert session.tick().consent is not None and session.subject == "x"
    assert not session.busy, "nothing goes on while the user is asked"
    session.refuse()
    assert session.opening is None and session.sentence == "The checkpoint was not loaded; x is still open."
    session.run(InputSpec(kind="text", value="mine"))
    assert isinstance(fake.sent[-1], Run) and session.running
    session.close()


def test_consent_keeps_what_was_to_be_run(session: Session) -> None:
    fake = opened(session)
    done(session, fake)
    load = open_another(session, fake)
    fake.say(Loaded(subject="y", report=CheckpointReport(path="w.pt"), needs_consent=True, generation=load.generation))
    session.tick()
    session.agree()
    assert fake.sent[-1].partial and fake.sent[-1].subject == "y"
    fake.say(Loaded(subject="y", generation=fake.sent[-1].generation))
    session.tick()
    assert fake.sent[-1].input.value == "to y" and session.subject == "y"
    session.close()


def test_nothing_else_runs_while_a_model_is_being_opened(session: Session) -> None:
    fake = opened(session)
    done(session, fake)
    open_another(session, fake)
    sent = list(fake.sent)
    session.run(InputSpec(kind="text", value="impatient"))
    session.again()
    assert fake.sent == sent and "still being opened" in session.sentence and session.opening is not None
    session.close()


def test_a_worker_that_dies_while_opening_is_started_again_with_the_model_before(session: Session) -> None:
    fake = opened(session)
    done(session, fake)
    open_another(session, fake)
    fake.alive = False
    fake.ended(Exit(-11, False, "The worker crashed."))
    changes = session.tick()
    assert changes.not_opened is not None and changes.not_opened.subject == "y" and session.opening is None
    session.start_again()
    again = Fake.made[-1]
    assert again is not fake and [request.subject for request in again.sent] == ["x"]
    again.say(Loaded(subject="x", title="X", generation=again.sent[0].generation))
    assert session.tick().loaded is not None and session.sentence == "X is open." and not session.running
    session.again()
    assert isinstance(again.sent[-1], Run)
    session.close()


def test_a_run_that_is_asked_for_while_the_model_is_opened_again_comes_after_it(session: Session) -> None:
    fake = opened(session)
    done(session, fake)
    fake.alive = False
    session.start_again()
    session.run(InputSpec(kind="text", value="at once"))
    again = Fake.made[-1]
    assert [type(request) for request in again.sent] == [Load]
    again.say(Loaded(subject="x", generation=again.sent[0].generation))
    session.tick()
    assert again.sent[-1].input.value == "at once" and session.running
    session.close()


def test_a_model_that_was_opened_after_nobody_waited_for_it_is_the_one_that_is_open(session: Session) -> None:
    fake = opened(session)
    done(session, fake)
    first = open_another(session, fake)
    session.open_subject(Load(subject="z"))
    second = fake.sent[-1]
    fake.say(Loaded(subject="y", generation=first.generation))
    fake.say(Failure(message="no z", request="Load", generation=second.generation))
    changes = session.tick()
    assert changes.loaded is not None and changes.loaded.subject == "y"
    assert session.subject == "y" and session.sentence == "no z; y is still open." and not session.running
    session.close()


# -- cancelling an opening


def test_an_opening_that_is_cancelled_leaves_the_model_before_open(session: Session) -> None:
    fake = opened(session)
    done(session, fake)
    load = open_another(session, fake)
    session.cancel()
    assert isinstance(fake.sent[-1], Cancel) and session.sentence == "Cancelling …"
    said = "Opening the model was cancelled."
    fake.say(Failure(message=said, request="Load", kind="cancelled", generation=load.generation))
    changes = session.tick()
    assert changes.failure is None and changes.not_opened is not None, "nobody needs to be told what they asked for"
    assert session.sentence == "Opening the model was cancelled; x is still open." and not session.busy
    assert fake.alive
    session.close()


def test_an_opening_that_hangs_loses_its_worker_and_the_model_before_is_opened_again(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = opened(session)
    done(session, fake)
    open_another(session, fake)
    session.cancel()
    session.tick()
    assert fake.alive, "it has some time to let go"
    monkeypatch.setattr(module, "CANCEL_PATIENCE", 0.0)
    assert session.tick().not_opened is not None
    again = Fake.made[-1]
    assert fake.closed.wait(5) and again is not fake and [request.subject for request in again.sent] == ["x"]
    assert session.sentence == "Opening the model was cancelled. Opening x again …"
    again.say(Loaded(subject="x", generation=again.sent[0].generation))
    session.tick()
    assert session.sentence == "Opening the model was cancelled. x is open." and len(again.sent) == 1
    session.close()


def test_cancelling_the_first_opening_leaves_a_worker_and_no_model(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CANCEL_PATIENCE", 0.0)
    session.open_subject(Load(subject="x"))
    session.cancel()
    session.tick()
    assert len(Fake.made) == 2 and Fake.made[1].alive and not Fake.made[1].sent
    assert session.sentence == "Opening the model was cancelled. Open a model first." and not session.busy
    session.run(InputSpec())
    assert not Fake.made[1].sent
    session.close()


def test_a_model_that_hangs_when_it_is_opened_again_is_not_tried_for_ever(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = opened(session)
    done(session, fake)
    fake.alive = False
    session.start_again()
    monkeypatch.setattr(module, "CANCEL_PATIENCE", 0.0)
    session.cancel()
    session.tick()
    assert len(Fake.made) == 3 and not Fake.made[2].sent and not session.busy and "F5" in session.sentence
    session.again()
    assert Fake.made[2].sent[0].subject == "x"
    session.close()


def test_a_model_that_was_open_before_it_could_be_cancelled_does_not_run(session: Session) -> None:
    session.open_subject(Load(subject="x"))
    fake = Fake.made[-1]
    session.cancel()
    fake.say(Loaded(subject="x", title="X", generation=fake.sent[0].generation))
    session.tick()
    assert session.sentence == "X is open." and session.subject == "x"
    assert [type(request) for request in fake.sent] == [Load, Cancel]
    session.close()
