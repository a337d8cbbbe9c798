"""The question whether code may run, from the session's answers to the dialog on screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import finish, opened
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QDialog, QMessageBox

from inspector.gui.dialogs.trust_dialog import TrustDialog
from inspector.gui.state.session import Session
from inspector.gui.window.main_window import Window
from inspector.records import (
    Catalog,
    CodeFile,
    InputSpec,
    Load,
    Loaded,
    NeedsTrust,
    Run,
    parse_edit,
)  # fmt: skip
from inspector.transport.process import Exit
from inspector.workspace.trust import agree, agreed_files, store

SHA = "0" * 64


class Fake:
    """A worker that records what it is asked."""

    made: list[Fake]

    def __init__(self, say: Callable[[Any], None], _output: object, ended: Callable[[Any], None]) -> None:
        self.say, self.ended = say, ended
        self.sent: list[Any] = []
        self.alive = False
        Fake.made.append(self)

    def start(self) -> None:
        self.alive = True
        self.say(Catalog(torch="2", threads=1, devices=("cpu",)))

    def send(self, request: Any) -> None:
        self.sent.append(request)

    def close(self, patience: float = 1.0) -> None:
        self.alive = False


@pytest.fixture
def session(tmp_path: Path) -> Session:
    Fake.made = []
    return Session(Fake, tmp_path / "runs")


def ask(session: Session, request: str = "Load") -> NeedsTrust:
    """The worker comes to a file that was not agreed to."""
    worker = Fake.made[-1]
    asked = NeedsTrust(
        files=(CodeFile(path="/m.py", sha256=SHA),), message="/m.py is code.", request=request,
        generation=worker.sent[-1].generation,
    )  # fmt: skip
    worker.say(asked)
    changes = session.tick()
    assert changes.untrusted == asked and changes.failure is None and not session.running
    assert session.sentence == "/m.py is code; it waits for your answer.", "nobody has said no"
    assert [line.text for line in session.log][-1] == session.sentence
    return asked


def dies(session: Session) -> None:
    """The worker is killed."""
    Fake.made[-1].alive = False
    Fake.made[-1].ended(Exit(-9, False, "The worker was killed."))
    session.tick()


def loaded(session: Session) -> Run:
    """The worker opens the model; the run that was waiting."""
    worker = Fake.made[-1]
    worker.say(Loaded(subject="m.py:M", generation=worker.sent[-1].generation))
    session.tick()
    return worker.sent[-1]


def test_a_load_carries_what_was_agreed_to_and_never_a_bare_yes(session: Session) -> None:
    agree({"/other.py": SHA})
    session.open_subject(Load(subject="m.py:M"))
    assert Fake.made[-1].sent[0].agreed == {"/other.py": SHA} and not Fake.made[-1].sent[0].trusted
    session.agree_to_code(ask(session))
    again = Fake.made[-1].sent[-1]
    assert again.agreed == {"/other.py": SHA, "/m.py": SHA} == agreed_files()[0] and not again.trusted
    assert isinstance(loaded(session), Run)


def test_a_run_on_a_dead_worker_asks_by_content(session: Session) -> None:
    agree({"/m.py": SHA})
    session.open_subject(Load(subject="m.py:M"))
    loaded(session)
    dies(session)
    agree({"/m.py": "1" * 64})
    edits = (parse_edit("input=x@5"),)
    session.run(InputSpec(kind="text", value="b"), edits)
    assert len(Fake.made) == 2 and Fake.made[-1].sent[0].agreed == {"/m.py": "1" * 64}
    session.agree_to_code(ask(session))
    assert Fake.made[-1].sent[-1].agreed == {"/m.py": SHA}
    run = loaded(session)
    assert run.input.value == "b" and run.edits == edits, "what waited for the answer goes on"


def test_a_worker_that_was_started_again_asks_and_runs_nothing(session: Session) -> None:
    session.open_subject(Load(subject="m.py:M"))
    loaded(session)
    dies(session)
    session.start_again()
    session.agree_to_code(ask(session))
    assert isinstance(loaded(session), Load) and not session.running


def test_code_that_a_run_comes_to_is_asked_about_and_the_run_made_again(session: Session) -> None:
    session.open_subject(Load(subject="m.py:M"), InputSpec(kind="text", value="a"))
    loaded(session)
    session.run(InputSpec(kind="text", value="b"), (parse_edit("input=x@5"),))
    session.agree_to_code(ask(session, "Run"))
    assert isinstance(Fake.made[-1].sent[-1], Load)
    run = loaded(session)
    assert run.input.value == "b" and len(run.edits) == 1


@pytest.mark.parametrize("request_", ["Load", "Run"])
def test_only_a_no_says_that_the_code_was_not_run(session: Session, request_: str) -> None:
    session.open_subject(Load(subject="m.py:M"))
    if request_ == "Run":
        loaded(session)
        session.run(InputSpec(kind="text", value="b"))
    ask(session, request_)
    session.refuse()
    assert session.sentence == "The code was not run."


def test_an_answer_that_cannot_be_remembered_holds_for_the_window(session: Session) -> None:
    store().parent.parent.mkdir(parents=True, exist_ok=True)
    store().parent.write_text("a file where the folder should be")
    session.open_subject(Load(subject="m.py:M"))
    session.agree_to_code(ask(session))
    assert Fake.made[-1].sent[-1].agreed == {"/m.py": SHA}
    assert any("could not be remembered" in line.text for line in session.tick().lines)
    loaded(session)
    session.open_subject(Load(subject="m.py:M"))
    assert Fake.made[-1].sent[-1].agreed == {"/m.py": SHA}


def test_a_list_that_cannot_be_read_is_told_in_the_log(session: Session) -> None:
    agree({"/m.py": SHA})
    store().write_text("{")
    session.open_subject(Load(subject="m.py:M"))
    assert Fake.made[-1].sent[-1].agreed == {}
    assert [line.text for line in session.tick().lines if str(store()) in line.text]


# -- on screen

MODEL = """
from torch import nn
import mine
with open({ran!r}, "a") as trace: trace.write(mine.name + " ")
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 3)
    def forward(self, x):
        return self.rnn(x)[0]
"""


@pytest.fixture
def window(qtbot: object, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        yield made


def question(qtbot: Any, qapp: QApplication) -> TrustDialog:
    """The dialog, as soon as it is there."""

    def shown() -> TrustDialog | None:
        return next((w for w in qapp.topLevelWidgets() if isinstance(w, TrustDialog) and w.isVisible()), None)

    qtbot.waitUntil(lambda: shown() is not None, timeout=60_000)
    found = shown()
    assert found is not None
    return found


def rows(dialog: TrustDialog) -> list[tuple[str, str]]:
    return [(dialog.table.item(n, 0).text(), dialog.table.item(n, 1).text()) for n in range(dialog.table.rowCount())]


@pytest.fixture
def ran(tmp_path: Path) -> Callable[[], str]:
    """Write the model; what it left when it ran."""
    trace = tmp_path / "ran"
    (tmp_path / "model.py").write_text(MODEL.format(ran=str(trace)))
    (tmp_path / "mine.py").write_text("name = 'first'\n")
    return lambda: trace.read_text() if trace.exists() else ""


def test_from_the_question_to_the_question_about_what_changed(
    window: Window, qtbot: Any, qapp: QApplication, tmp_path: Path, ran: Callable[[], str]
) -> None:
    window.open_model(Load(subject=f"{tmp_path / 'model.py'}:Model"))
    dialog = question(qtbot, qapp)
    assert rows(dialog) == [("mine.py", "new"), ("model.py", "new")]
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert not dialog.isVisible() and ran() == "", "Enter does not run it"
    assert "waits for" not in window.status.sentence.text(), "it was answered"
    window.open_model(Load(subject=f"{tmp_path / 'model.py'}:Model"))
    question(qtbot, qapp).run_button.click()
    finish(window, qtbot)
    assert ran() == "first " and window.session.capture.status == "done"
    (tmp_path / "mine.py").write_text("name = 'second'\n")
    window.session.worker.die()
    qtbot.waitUntil(lambda: window.session.worker_state == "ended", timeout=10_000)
    qtbot.wait(50)
    for box in [w for w in qapp.topLevelWidgets() if isinstance(w, QMessageBox) and w.isVisible()]:
        box.close()
    window.session.again()
    dialog = question(qtbot, qapp)
    assert rows(dialog) == [("mine.py", "changed since you agreed")] and ran() == "first "
    dialog.run_button.click()
    finish(window, qtbot)
    assert ran() == "first second "


def test_every_way_to_open_a_file_of_code_asks(
    window: Window, qtbot: Any, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Callable[[], str]
) -> None:  # fmt: skip
    assert window.acceptDrops()
    path = str(tmp_path / "model.py")
    dropped = QMimeData()
    dropped.setUrls([QUrl.fromLocalFile(path)])
    drop = QDropEvent(QPoint(5, 5), Qt.DropAction.CopyAction, dropped, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)  # fmt: skip
    for way in (
        lambda: window.open_path(path),
        lambda: window.dropEvent(drop),
        lambda: window.opener.path_chosen.emit(path),
    ):
        way()
        dialog = window.models.dialog
        assert dialog is not None and dialog.isVisible()
        dialog.subject.setText(f"{path}:Model")
        dialog._accept()
        question(qtbot, qapp).reject()
        assert ran() == ""


def test_hostile_names_are_plain_text(qtbot: Any, qapp: QApplication) -> None:
    names = ("/a/<b>x</b>\x1b[2J.py", "/a/\u202eyp.elif", "/a/" + "x" * 5000 + ".py")
    dialog = TrustDialog(NeedsTrust(files=tuple(CodeFile(path=name, sha256=SHA) for name in names)))
    qtbot.addWidget(dialog)
    texts = [dialog.table.item(n, 0).text() for n in range(3)]
    assert sorted(map(len, texts))[-1] <= 2000 and not any("\x1b" in text or "\u202e" in text for text in texts)
    dialog.show()
    assert dialog.width() <= 1280 and dialog.height() <= 800
    dialog.close()
    assert isinstance(dialog, QDialog)
