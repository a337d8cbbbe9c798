"""A search for an answer that is begun in the window: its settings, its run in the worker, its tree, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes import Fake, done, refuse, run_captured
from fakes import opened as opened_session
from opened import finish, opened
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QWidget
from reading import numbers_of

import inspector
from inspector.analysis.decoded_tree import read_tree, tokens_until
from inspector.gui.dialogs.decode_dialog import DecodeDialog
from inspector.gui.state.session import Session
from inspector.gui.window.main_window import Window
from inspector.records import Decode, DecodedToken, DecodedTree, InputSpec, Load

TEXT = InputSpec(kind="text", value="tuesday, the 23rd of september 2025")
BEAM = Decode(how="beam", width=3, longest=12)


def node(token: int, parent: int, fate: Any = "pruned") -> DecodedToken:
    return DecodedToken(token=token, parent=parent, log_probability=-1.0, total=-1.0, score=-1.0, fate=fate)


def test_after_a_token_stands_what_was_tried_as_it_and_what_is_before_it() -> None:
    tokens = (
        node(0, -1, "continued"), node(1, -1, "finished"), node(2, -1),
        node(3, 0, "continued"), node(4, 0), node(5, 3, "finished"),
    )  # fmt: skip
    tree = DecodedTree(decode=Decode(), tokens=tokens)
    assert tree.depths == [1, 1, 1, 2, 2, 3]
    assert tokens_until(tree, 1) == [0, 1, 2]
    assert tokens_until(tree, 2) == [0, 1, 3, 4]
    assert tokens_until(tree, 3) == tokens_until(tree, 0) == [0, 1, 3, 5]
    assert tokens_until(tree, 2, everything=True) == [0, 1, 2, 3, 4]
    assert tokens_until(tree, 0, everything=True) == list(range(6))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    Fake.made = []
    return Session(Fake, tmp_path / "runs")


def test_a_search_is_a_run_that_is_repeated_as_a_search_and_edited_as_a_run(session: Session) -> None:
    worker = opened_session(session)
    done(session, worker)
    session.run(TEXT, decode=BEAM)
    assert (worker.sent[-1].input, worker.sent[-1].decode) == (TEXT, BEAM)
    assert session.sentence == "Searching for the answer …"
    run_captured(session, worker)
    session.again()
    assert worker.sent[-1].decode == BEAM
    run_captured(session, worker)
    session.run(TEXT)
    assert worker.sent[-1].decode is None
    refuse(session, worker)
    session.again()  # what is shown is the search still
    assert worker.sent[-1].decode == BEAM


def answer(window: Window, **values: Any) -> DecodeDialog:
    """Begin a search as a person does: by the menu, with these settings."""
    used: list[DecodeDialog] = []

    def fill() -> None:
        dialog = QApplication.activeModalWidget()
        assert isinstance(dialog, DecodeDialog)
        used.append(dialog)
        dialog.fields.show_values(values)
        dialog._accept()
        if dialog.problem.text():
            dialog.reject()

    QTimer.singleShot(0, fill)
    action(window, "Decode an answer").trigger()
    return used[0]


def action(window: Window, name: str) -> Any:
    return next(one for one in window.menu_actions if name in one.text().replace("&", ""))


def seen(field: QWidget) -> bool:
    return not field.isHidden()


def test_only_the_settings_of_the_kind_of_search_are_asked_for(qtbot: Any) -> None:
    dialog = DecodeDialog({"how": "sample", "top_k": 3}, parent := QWidget())
    qtbot.addWidget(parent)
    fields = dialog.fields.fields
    assert seen(fields["temperature"]) and seen(fields["top_k"]) and seen(fields["width"])
    dialog.fields.show_values({"how": "beam"})
    assert not seen(fields["temperature"]) and not seen(fields["top_k"])
    dialog._accept()
    assert dialog.decode == Decode(how="beam")
    dialog.fields.show_values({"how": "sample"})
    fields["top_p"].setText("0")
    dialog._accept()
    assert "top_p" in dialog.problem.text() and dialog.decode == Decode(how="beam")


def test_a_search_begun_in_the_window_is_that_of_python(qtbot: Any) -> None:
    expected = read_tree(inspector.decode("dates-state", TEXT.value, how="beam", width=3, longest=12, only=("states",)))
    assert expected is not None
    with opened(qtbot, background=False) as window:
        qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
        window.session.open_subject(Load(subject="dates-state"), TEXT)
        finish(window, qtbot)
        answer(window, how="beam", width=3, longest=12)
        finish(window, qtbot)
        qtbot.waitUntil(lambda: not window.session.sentence.startswith("Searching"), timeout=60_000)
        assert window.session.capture is not None
        found = read_tree(window.session.capture)
        assert found is not None and found.tokens == expected.tokens and found.decode == BEAM
        qtbot.waitUntil(lambda: "decoding" in window.docking.seen, timeout=10_000)
        panel = window.panels.get("decoding")
        panel.until.setValue(2)
        QApplication.processEvents()
        assert ", token 2 of " in panel.branches.titleLabel.text
        assert max(numbers_of(panel.dots["on the way"])[0]) <= 2 and max(numbers_of(panel.dots["pruned"])[0]) == 2


def test_a_model_that_says_no_answer_is_refused_in_one_sentence(qtbot: Any) -> None:
    with opened(qtbot, background=False) as window:
        with pytest.MonkeyPatch.context() as patch:
            told: list[str] = []
            patch.setattr(window, "fail", told.append)
            action(window, "Decode an answer").trigger()
        assert told == ["Open a model first; then the answer to its sequence can be searched for."]
        qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
        window.open_sample("acceptor-digits")
        finish(window, qtbot)
        shown = window.session.capture
        told = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(window, "tell", lambda sentence, _details="": told.append(sentence))
            answer(window)
            finish(window, qtbot)
        assert len(told) == 1 and "so nothing can be decoded" in told[0]
        assert window.session.capture is shown


def test_a_search_is_cancelled_while_it_goes_on(qtbot: Any) -> None:
    with opened(qtbot, background=False) as window:
        qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
        window.open_sample("char-gru")
        finish(window, qtbot)
        answer(window, how="beam", width=2, longest=5_000)
        qtbot.waitUntil(lambda: window.session.progress is not None, timeout=60_000)
        assert window.session.running and "searching" in window.session.progress.text
        action(window, "Cancel").trigger()
        qtbot.waitUntil(lambda: not window.session.running, timeout=60_000)
        assert window.session.connection.alive and window.session.loaded is not None  # it stopped by itself
