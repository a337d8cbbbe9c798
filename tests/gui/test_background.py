"""What a run has left is computed while nobody waits: what is looked at first, within a budget, and never in the way."""

from __future__ import annotations

import itertools
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import Fake
from opened import finish, opened
from PySide6.QtWidgets import QFileDialog, QMessageBox, QPushButton

from inspector.capture import Writer, open_capture
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.work import Work
from inspector.gui.export.figure_files import save_figure
from inspector.gui.panel.empty_page import compute_text
from inspector.gui.panel.missing import why_empty
from inspector.gui.panels.state_derivatives import StateDerivatives
from inspector.gui.state.background import Rest
from inspector.gui.state.session import Session
from inspector.gui.window.bars.frame_bar import DIFFERENCE
from inspector.gui.window.main_window import Window
from inspector.gui.window.menus import pack_as, save_as
from inspector.gui.window.saving import FIRST, WITHOUT, save_panel
from inspector.records import (
    Analyse,
    Cancel,
    Catalog,
    Channel,
    Entry,
    Failure,
    Finished,
    InputSpec,
    Load,
    Loaded,
    Progress,
    Run,
    RunStart,
    RunStop,
    parse_edit,
)
from inspector.transport.process import Exit

KEYS = ("light", "near", "seen", "heavy", "far")
CATALOG = Catalog(
    torch="2", threads=1, devices=("cpu",),
    quantities=tuple(Entry(key=key, default=True, cheap=key in ("states", "light")) for key in ("states", *KEYS)),
)  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    Fake.made = []
    made = Session(Fake, tmp_path / "runs")
    yield made
    made.close()


def answer(session: Session, fake: Fake, left: tuple[str, ...], status: str = "done", **costs: float) -> None:
    """The request in progress ends; what the capture lacks then is `left`."""
    request = next(one for one in reversed(fake.sent) if isinstance(one, (Run, Analyse)))
    again = isinstance(request, Analyse)
    path = Path(request.path)
    with Writer(path, RunStart(run=str(path), title="t"), again=again) as writer:
        writer.write(RunStop("done" if again else status, left=left))
    stop = RunStop(status, left=left)
    fake.say(Finished(path=request.path, stop=stop, costs=costs, generation=request.generation))
    session.tick()


def begun(session: Session, left: tuple[str, ...] = KEYS, **costs: float) -> Fake:
    """A model is open, and its first run has ended."""
    session.open_subject(Load(subject="x"))
    fake = Fake.made[-1]
    fake.say(CATALOG)
    fake.say(Loaded(subject="x", generation=fake.sent[-1].generation))
    session.tick()
    session.background.looked_at = lambda: {"seen"}
    assert fake.sent[-1].now == ("states", "light")
    answer(session, fake, left, **costs)
    return fake


def asked(fake: Fake) -> list[str]:
    return [one.quantities[0] for one in fake.sent if isinstance(one, Analyse)]


def test_one_after_the_other_what_is_seen_first_then_what_is_cheap(session: Session) -> None:
    fake = begun(session)
    said = session.sentence
    for number, key in enumerate(("seen", "light", "near", "heavy", "far"), 1):
        assert asked(fake)[-1] == key and len(asked(fake)) == number
        assert not session.busy and not session.running and not session.waited_for and session.sentence == said
        session.tick()
        assert len(asked(fake)) == number, "one at a time"
        done = asked(fake)
        answer(session, fake, tuple(one for one in KEYS if one not in done))
    session.tick()
    assert len(asked(fake)) == 5 and session.background.idle


def test_what_exceeds_the_budget_waits_until_it_is_asked_for(session: Session) -> None:
    fake = begun(session, ("heavy", "near"), heavy=40.0, near=3.0)
    assert asked(fake) == ["near"]
    rest = session.background.rests([(("heavy", "near", "states"), ())])[0]
    assert (rest.present, rest.offered, rest.waiting) == ("near", ("heavy",), ())
    assert rest.sentence == "Being computed: near. Not computed: heavy." and compute_text(rest.seconds) == (
        "Compute it (about 40 s)"
    )
    answer(session, fake, ("heavy",), heavy=40.0)
    session.tick()
    assert asked(fake) == ["near"] and session.background.idle
    session.analyse(("heavy",))
    assert asked(fake) == ["near", "heavy"] and session.running
    answer(session, fake, ())
    assert not session.running and session.background.rests([(("heavy",), ())])[0].sentence == ""


def test_a_second_question_joins_the_first(session: Session) -> None:
    fake = begun(session, ("heavy", "far"), heavy=40.0, far=40.0)
    session.analyse(("heavy",))
    first = fake.sent[-1]
    session.analyse(("far",))
    assert [type(one) for one in fake.sent[-2:]] == [Cancel, Analyse] and fake.sent[-1].quantities == ("heavy", "far")
    fake.say(Finished(path=first.path, stop=RunStop("cancelled", left=("heavy", "far")), generation=first.generation))
    session.tick()
    assert session.running and session.question == ("heavy", "far"), "the first answer is of no interest any more"
    answer(session, fake, ())
    assert not session.running and session.shown.later == ("heavy", "far")


def test_what_the_user_has_switched_on_needs_no_budget(session: Session) -> None:
    session.also = ("heavy@3",)
    fake = begun(session, ("heavy@3",), heavy=400.0)
    assert asked(fake) == ["heavy@3"]


def test_a_run_of_the_user_ends_it_at_once_and_its_answer_changes_nothing(session: Session) -> None:
    fake = begun(session)
    before = fake.sent[-1]
    session.run(InputSpec(value="more"))
    assert [type(one) for one in fake.sent[-2:]] == [Cancel, Run] and session.running
    sentence = session.sentence
    fake.say(Progress(done=1, total=2, generation=before.generation))
    fake.say(Finished(path=before.path, stop=RunStop("cancelled", "No."), generation=before.generation))
    session.tick()
    assert session.running and session.sentence == sentence and session.progress is None
    assert session.background.left == () and isinstance(fake.sent[-1], Run), "the rest is that of another run"


def test_what_becomes_visible_does_not_wait_for_what_is_not(session: Session) -> None:
    fake = begun(session, ("near", "far"))
    assert asked(fake) == ["near"]
    session.background.looked_at = lambda: {"far"}
    session.tick()
    session.tick()
    assert [type(one) for one in fake.sent[-2:]] == [Analyse, Cancel], "it is cancelled once"
    answer(session, fake, ("near", "far"), "cancelled")
    assert asked(fake) == ["near", "far"]
    answer(session, fake, ("near",))
    assert asked(fake) == ["near", "far", "near"], "what was cut short is computed again"


def test_a_worker_that_has_not_stored_the_run_is_not_asked_again(session: Session) -> None:
    fake = begun(session)
    fake.say(Failure(message="No run.", kind="needs run", request="Analyse", generation=fake.sent[-1].generation))
    changes = session.tick()
    session.tick()
    assert len(asked(fake)) == 1 and not changes.needs_run and changes.failure is None
    assert session.background.rests([(("near",), ())])[0].offered == ("near",), "its panel offers it"


def test_what_fails_is_tried_once(session: Session) -> None:
    fake = begun(session, ("near",))
    fake.say(Failure(message="No.", kind="input", request="Analyse", generation=fake.sent[-1].generation))
    changes = session.tick()
    session.tick()
    assert asked(fake) == ["near"] and changes.failure is None and not session.busy
    assert any("near was not computed: No." in line.text for line in changes.lines)


def test_a_worker_that_dies_meanwhile_leaves_everything_as_it_is(session: Session) -> None:
    fake = begun(session)
    fake.alive = False
    fake.ended(Exit(-9, False, "The worker was killed."))
    session.tick()
    session.tick()
    assert len(asked(fake)) == 1 and session.background.idle and session.capture is not None
    assert session.capture.stop is not None and session.capture.stop.left == KEYS
    session.start_again()
    again = Fake.made[-1]
    again.say(Loaded(subject="x", generation=again.sent[0].generation))
    session.tick()
    assert not asked(again), "the new worker has no run"


def test_another_capture_that_is_shown_is_not_added_to(session: Session, tmp_path: Path) -> None:
    fake = begun(session)
    with Writer(tmp_path / "other.inspect", RunStart(run="o", title="o")) as writer:
        writer.write(RunStop("done", left=("near",)))
    session.open_capture(tmp_path / "other.inspect")
    answer(session, fake, KEYS[1:])
    session.tick()
    assert len(asked(fake)) == 1, "it stops after the quantity in progress"
    rest = session.background.rests([(("near", "far"), ())])[0]
    assert rest.offered == ("near",) and rest.seconds == 0 and not rest.waiting
    with open_capture(tmp_path / "other.inspect") as other:
        assert other.stop is not None and other.stop.left == ("near",) and not other.channels


def test_a_model_that_does_not_open_lets_it_go_on(session: Session) -> None:
    fake = begun(session)
    session.open_subject(Load(subject="y"))
    load = fake.sent[-1]
    assert [type(one) for one in fake.sent[-2:]] == [Cancel, Load]
    session.tick()
    assert len(asked(fake)) == 1
    fake.say(Failure(message="no y", request="Load", generation=load.generation))
    session.tick()
    assert len(asked(fake)) == 2


def test_a_run_that_was_cancelled_is_not_gone_on_with(session: Session) -> None:
    session.open_subject(Load(subject="x"))
    fake = Fake.made[-1]
    fake.say(CATALOG)
    fake.say(Loaded(subject="x", generation=fake.sent[-1].generation))
    session.tick()
    answer(session, fake, KEYS, "cancelled")
    session.tick()
    assert not asked(fake) and session.background.rests([(("near",), ())])[0].offered == ("near",)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "Compute it"), (0.4, "Compute it (less than 1 s)"), (3.2, "Compute it (about 3 s)"),
        (38.0, "Compute it (about 40 s)"), (300.0, "Compute it (about 5 min)"), (9000.0, "Compute it (about 2 h)"),
    ],
)  # fmt: skip
def test_an_estimate_is_told_as_one(seconds: float, text: str) -> None:
    assert compute_text(seconds) == text


# -- in a window, with a worker


def endless(monkeypatch: pytest.MonkeyPatch, key: str) -> threading.Event:
    """A quantity that is computed only once the event is set, and until then ends only where it is cancelled."""
    goes, plain = threading.Event(), QUANTITIES[key]

    def run(trace: Any, emit: Any, **values: Any) -> None:
        for n in itertools.count():
            emit.check()
            emit.progress(n % 100, 100.0, "on and on")
            if goes.wait(0.01):
                break
        plain.run(trace, emit, **values)

    monkeypatch.setitem(QUANTITIES._entries, key, replace(plain, run=run))
    return goes


def begin_sample(window: Window, qtbot: Any, sample: str = "adding-elman") -> None:
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
    window.open_sample(sample)


def test_a_tab_that_is_opened_says_what_is_being_computed_and_then_shows_it(
    qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(qtbot) as window:
        goes = endless(monkeypatch, "jacobian/lag")
        begin_sample(window, qtbot)
        qtbot.waitUntil(lambda: window.session.background.present == "jacobian/lag", timeout=60_000)
        assert not window.status.stop.isVisible() and not window.status.bar.isVisible()
        assert window.status.background.text().startswith("in the background: jacobian/lag")
        window.docks["lags"].raise_()
        qtbot.waitUntil(lambda: "Being computed: jacobian/lag" in window.panels["lags"]._empty.text(), timeout=10_000)
        qtbot.waitUntil(lambda: window.panels["lags"].isVisible(), timeout=10_000)
        assert window.panels["lags"].state == "empty"
        assert not window.panels["lags"]._empty.button.isVisible()
        window.docks["spectra"].raise_()  # it needs others, so the endless one is put off
        qtbot.waitUntil(lambda: window.panels["spectra"].state == "figure", timeout=30_000)
        window.docks["lags"].raise_()
        goes.set()
        qtbot.waitUntil(lambda: window.panels["lags"].state == "figure", timeout=30_000)
        finish(window, qtbot)
        assert window.session.capture is not None and window.session.capture.stop.left == ()
        assert not window.session.capture.damage


def test_a_run_does_not_wait_for_it_and_nothing_is_lost(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(qtbot) as window:
        endless(monkeypatch, "lyapunov")
        begin_sample(window, qtbot)
        qtbot.waitUntil(lambda: window.session.background.present == "lyapunov", timeout=60_000)
        first = window.session.capture
        assert first is not None
        path = first.path
        window.run_again()
        qtbot.waitUntil(lambda: not window.session.running and window.session.capture is not first, timeout=30_000)
        with open_capture(path) as before:
            assert before.status == "done" and not before.damage and "lyapunov" in before.stop.left  # type: ignore[union-attr]
        qtbot.waitUntil(lambda: window.session.background.present == "lyapunov", timeout=60_000)
        path = window.session.capture.path  # type: ignore[union-attr]
    with open_capture(path) as closed:
        assert closed.status == "done" and not closed.damage and "lyapunov" in closed.stop.left  # type: ignore[union-attr]


def test_over_the_budget_the_figure_has_a_line_with_a_button(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    radius = QUANTITIES["jacobian/spectral_radius"]
    monkeypatch.setitem(QUANTITIES._entries, "jacobian/spectral_radius", replace(radius, work=lambda _run: Work(1e14)))
    with opened(qtbot) as window:
        begin_sample(window, qtbot)
        finish(window, qtbot)
        panel = window.panels["jacobians"]
        button = panel.findChild(QPushButton, "compute-remaining")
        assert panel.state == "figure" and panel.remaining.offered == ("jacobian/spectral_radius",)
        assert button.isVisible() and button.text().startswith("Compute it (about")
        button.click()
        finish(window, qtbot)
        assert not button.isVisible() and window.session.capture.stop.left == ()  # type: ignore[union-attr]
        assert window.session.also == (), "a default quantity is not switched on for later runs"


def test_saving_names_what_is_not_computed_and_offers_to_compute_it(
    qtbot: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    radius = QUANTITIES["jacobian/spectral_radius"]
    monkeypatch.setitem(QUANTITIES._entries, "jacobian/spectral_radius", replace(radius, work=lambda _run: Work(1e14)))
    questions: list[str] = []
    answers = [WITHOUT, "Cancel", FIRST]

    def reply(box: QMessageBox) -> int:
        questions.append(box.text())
        wanted = answers.pop(0)
        next(button for button in box.buttons() if button.text().replace("&", "") == wanted).click()
        return 0

    monkeypatch.setattr(QMessageBox, "exec", reply)
    packed = [tmp_path / f"{n}.inspect.zip" for n in range(2)]
    names = iter([packed[0], tmp_path / "states.png", packed[1]])
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(next(names)), "PNG (*.png)"))
    with opened(qtbot) as window:
        begin_sample(window, qtbot)
        finish(window, qtbot)
        pack_as(window)
        assert questions == ["This capture lacks what this run has not computed: jacobian/spectral_radius."]
        with open_capture(packed[0]) as capture:
            assert capture.stop is not None and capture.stop.left == ("jacobian/spectral_radius",)
        save_panel(window, window.panels["states"], "states", save_figure, "PNG (*.png)")
        assert len(questions) == 1, "the states lack nothing"
        names = iter([tmp_path / "jacobians.png", packed[1]])
        save_panel(window, window.panels["jacobians"], "jacobians", save_figure, "PNG (*.png)")
        assert len(questions) == 2 and questions[1].startswith("Jacobians lacks")
        assert not (tmp_path / "jacobians.png").exists(), "cancelled"
        save_as(window)
        assert window.session.running, "it is computed first"
        finish(window, qtbot)
        pack_as(window)
        assert len(questions) == 3
        with open_capture(packed[1]) as capture:
            assert capture.stop is not None and capture.stop.left == ()


def test_the_budget_is_a_choice_that_is_remembered(qtbot: Any) -> None:
    with opened(qtbot) as window:
        assert window.session.background.budget == 10.0
        action = next(one for one in window.menu_actions if one.text() == "What takes up to a minute")
        action.trigger()
        assert window.session.background.budget == 60.0
    with opened(qtbot) as window:
        assert window.session.background.budget == 60.0


def test_a_comparison_and_a_capture_from_disk_say_what_is_not_computed(
    qtbot: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    radius = QUANTITIES["jacobian/spectral_radius"]
    monkeypatch.setitem(QUANTITIES._entries, "jacobian/spectral_radius", replace(radius, work=lambda _run: Work(1e14)))
    with opened(qtbot) as window:
        begin_sample(window, qtbot)
        finish(window, qtbot)
        made = window.session.again_possible
        assert made is not None
        window.session.run_with(made, (parse_edit("input=0.5@3"),))
        finish(window, qtbot)
        assert window.session.capture is not None and len(window.session.capture.frames) == 2
        window._choose_frame(DIFFERENCE)
        panel = window.panels["jacobians"]
        button = panel.findChild(QPushButton, "compute-remaining")
        assert panel.differs and button.isVisible() and panel.remaining.offered == ("jacobian/spectral_radius",)
        copied = shutil.copytree(window.session.capture.path, tmp_path / "c.inspect")
        window.open_capture(str(copied))
        qtbot.waitUntil(lambda: not panel.differs and button.isVisible())
        assert button.text() == "Run adding-elman", "the model is open, and has not run this capture here"


def test_what_can_only_be_refused_is_not_offered(session: Session, tmp_path: Path) -> None:
    session.open_subject(Load(subject="x"))
    fake = Fake.made[-1]
    fake.say(CATALOG)
    fake.say(Loaded(subject="x", generation=fake.sent[-1].generation))
    session.tick()
    request = next(one for one in reversed(fake.sent) if isinstance(one, Run))
    with Writer(Path(request.path), RunStart(run=request.path, title="t")) as writer:
        writer.write(Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(3, 2)))
        writer.write(RunStop("done"))
    reason = "∂h_t/∂W has 67,108,864 numbers; the limit is 33,554,432."
    told = {"gradient/state_derivatives": reason}
    fake.say(Finished(path=request.path, stop=RunStop("done"), refused=told, generation=request.generation))
    session.tick()
    extra = StateDerivatives.extra
    rest = session.background.rests([((), extra)])[0]
    assert rest.refused == reason and not rest.offered
    some = session.background.rests([((), (*extra, "other"))])[0]
    assert some.refused == "" and some.partly == reason, "the other one may be computed"
    panel: Any = SimpleNamespace(
        hint="", capture=session.capture, source=session.capture, extra=extra, shows=(), needs=(), computed=False, remaining=Rest(),
        of_recurrences=True, concerns=lambda name: ":state_derivative" in name,
    )  # fmt: skip
    assert why_empty(panel) == ([], True), "nothing is known against it yet"
    panel.remaining = some
    assert why_empty(panel) == ([reason], True), "what cannot be is said beside the button of the rest"
    assert compute_text(some.seconds, rest=bool(some.partly)) == "Compute the rest"
    panel.remaining = rest
    assert why_empty(panel) == ([reason], False)
