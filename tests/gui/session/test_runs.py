"""A session that runs a model: its runs, their ends, and what it removes."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from fakes import Fake, done, opened
from session_steps import open_another

from inspector.capture import CaptureError, Writer
from inspector.gui.state import connection, shown
from inspector.gui.state import session as module
from inspector.gui.state.session import Session
from inspector.records import (
    Cancel,
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
    session.wait_for_end()
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
    assert fake.closed.wait(5) and not session.running and "did not stop" in session.sentence
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
    fake.output("stdout", "epoch <b>1</b>\nepo")
    assert session.tick().lines == [Log("epoch <b>1</b>", "info", "model")]
    fake.output("stdout", "ch 2\n")
    assert session.tick().lines == [Log("epoch 2", "info", "model")]


def test_only_the_newest_runs_are_kept(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "KEPT_RUNS", 2)
    for name in ("a", "b", "c"):
        Writer(session.runs / f"{name}.inspect", RunStart(run=name, title="t")).close()
    opened(session)
    assert sorted(path.name for path in session.runs.glob("*.inspect")) == ["b.inspect", "c.inspect"]
    session.close()


def test_what_one_window_shows_or_runs_another_does_not_remove(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "KEPT_RUNS", 0)
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


def test_what_a_dead_worker_still_says_is_not_of_the_next_one(session: Session) -> None:
    fake = opened(session)
    done(session, fake)
    load = open_another(session, fake)
    fake.alive = False
    fake.output("stderr", "last words\n")
    session.start_again()
    fake.say(Loaded(subject="y", generation=load.generation))
    fake.ended(Exit(-9, False, "The worker was killed."))
    changes = session.tick()
    assert session.worker_state == "starting" and changes.failure is None and changes.loaded is None
    assert session.subject == "x" and changes.lines == [Log("last words", "info", "stderr")]
    session.close()


@pytest.mark.parametrize("known", [True, False])
def test_a_fault_of_the_worker_itself_ends_what_was_asked(session: Session, known: bool) -> None:
    fake = opened(session)
    generation = fake.sent[-1].generation if known else 0
    fake.say(Failure(message="The worker had an internal error.", kind="worker", generation=generation))
    assert session.tick().failure is not None and not session.running
    session.close()


def test_ending_a_worker_that_hangs_keeps_nobody_waiting(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = opened(session)
    done(session, fake)
    open_another(session, fake)
    monkeypatch.setattr(module, "CANCEL_PATIENCE", 0.0)
    fake.lets_go.clear()
    session.cancel()
    assert session.waited_for and session.cancelling
    session.tick()
    assert not fake.closed.is_set() and Fake.made[-1] is not fake, "another one starts before this one has gone"
    assert not session.waited_for and not session.cancelling, "nothing is left that could be cancelled once more"
    session.run(InputSpec(kind="text", value="at once"))
    assert session.waited_for, "this run is waited for, and can be cancelled"
    other = Fake.made[-1]
    other.lets_go.clear()
    began = time.monotonic()
    session.close()
    assert not other.closed.is_set() and time.monotonic() - began < 3.0, "nor does closing wait"
    assert [fake.closed.wait(0), other.closed.wait(0)] == [False, False]
    fake.lets_go.set()
    other.lets_go.set()
    session.wait_for_end()
    assert fake.closed.is_set() and other.closed.is_set(), "no worker outlives the window"


# -- what is printed


def test_the_end_of_a_run_is_not_behind_its_prints(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = opened(session)
    run = fake.sent[-1]
    for start in range(0, 1_000_000, 10_000):
        fake.output("stdout", "".join(f"{n}\n" for n in range(start, start + 10_000)))
    fake.say(Finished(path=run.path, stop=RunStop("done", seconds=2.0), generation=run.generation))
    changes = session.tick()
    assert not session.running and "2.0 s" in session.sentence
    lines = list(changes.lines)
    assert len(lines) <= connection.TICK_LINES + 1
    assert not session.tick().lines, "a flood is not looked at sixty times a second"
    monkeypatch.setattr(connection, "FLOOD_SECONDS", 0.0)
    session.connection._printed_at = 0.0
    while more := session.tick().lines:
        lines += more
    dropped = int("".join(c for c in lines[0].text if c.isdigit()))
    assert "lines of stdout dropped" in lines[0].text and lines[-1].text == "999999"
    assert [line.text for line in lines[1:]] == [str(n) for n in range(dropped, 1_000_000)], "what is left is the end"
    session.close()


def test_f5_belongs_to_the_model_that_is_open(session: Session) -> None:
    fake = opened(session)
    session.run(InputSpec(kind="text", value="to x"))
    done(session, fake)
    load = open_another(session, fake)
    session.cancel()
    fake.say(Loaded(subject="y", generation=load.generation))
    session.tick()
    assert not session.can_run_again
    session.again()
    assert fake.sent[-1].input == InputSpec(), "what x read may be nothing for y"
    session.close()
