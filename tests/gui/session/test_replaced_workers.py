"""A model's call lowered a limit of its process for good: the worker answers, ends, and another takes its place."""

from __future__ import annotations

import pytest
from fakes import Fake, done, opened

from inspector.gui.state.session import Session
from inspector.records import Catalog, InputSpec, Load, Loaded, Run
from inspector.transport.process import ALTERED, ALTERED_CODE, SPENT, SPENT_CODE, Exit


def ends(fake: Fake, code: int = SPENT_CODE, said: str = SPENT) -> None:
    fake.alive = False
    fake.ended(Exit(code, False, said))


def test_another_worker_opens_what_was_open_and_runs_nothing(session: Session) -> None:
    fake = opened(session)
    done(session, fake)
    said = session.sentence
    ends(fake)
    changes = session.tick()
    assert changes.failure is None and [line.text for line in changes.lines] == [SPENT]
    new = Fake.made[-1]
    assert new is not fake and [type(one) for one in new.sent] == [Load] and new.sent[0].subject == "x"
    assert said in session.sentence and "again" in session.sentence
    new.say(Catalog(torch="2", threads=1, devices=("cpu",)))
    new.say(Loaded(subject="x", generation=new.sent[0].generation))
    session.tick()
    assert session.loaded is not None and not session.busy and [type(one) for one in new.sent] == [Load]
    session.close()


def test_what_was_asked_for_meanwhile_is_done_by_the_other_worker(session: Session) -> None:
    fake = opened(session)
    done(session, fake)
    session.run(InputSpec(kind="text", value="abc"))  # sent to a worker that is about to end
    ends(fake)
    session.tick()
    new = Fake.made[-1]
    new.say(Catalog(torch="2", threads=1, devices=("cpu",)))
    new.say(Loaded(subject="x", generation=new.sent[-1].generation))
    session.tick()
    assert session.running and isinstance(new.sent[-1], Run) and new.sent[-1].input.value == "abc"
    session.close()


@pytest.mark.parametrize(("code", "said"), [(SPENT_CODE, SPENT), (ALTERED_CODE, ALTERED)])
def test_another_model_that_was_asked_for_meanwhile_is_opened(session: Session, code: int, said: str) -> None:
    fake = opened(session)
    done(session, fake)
    session.open_subject(Load(subject="y"))
    ends(fake, code, said)
    changes = session.tick()
    assert changes.failure is None and [line.text for line in changes.lines] == [said]
    new = Fake.made[-1]
    assert new is not fake and new.sent[-1].subject == "y"
    new.say(Loaded(subject="y", generation=new.sent[-1].generation))
    session.tick()
    assert session.subject == "y" and session.running
    session.close()


def test_a_run_that_no_worker_answers_is_tried_again_once(session: Session) -> None:
    first = opened(session)
    done(session, first)
    session.run(InputSpec(kind="text", value="abc"))
    for turn in range(2):
        fake = Fake.made[-1]
        ends(fake)
        changes = session.tick()
        if turn == 0:
            new = Fake.made[-1]
            assert new is not fake
            new.say(Loaded(subject="x", generation=new.sent[-1].generation))
            session.tick()
            assert session.running
    assert Fake.made[-1] is fake and not session.busy and session.sentence.startswith(SPENT.rstrip("."))
    assert changes.failure is not None and changes.failure.message == SPENT
    session.close()
