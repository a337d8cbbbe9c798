"""A finding's card leads to a script that shows its fault on its own."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QMenu

from inspector.diagnosis import reproduce
from inspector.diagnosis.words import Repeated
from inspector.gui.panel.overview.finding_cards import FindingCards
from inspector.gui.panel.overview.finding_menu import NO_SCRIPT, SCRIPT, FindingMenu
from inspector.gui.window.saving import save_script
from inspector.records import Finding

FOUND = Finding(rule="contracting-weight", id="IN205", severity="warning", place="rnn", message="γσ₁ is 0.5\nimport os")
OTHER = Finding(rule="quiet-state", id="QS401", severity="warning", place="rnn", message="of another package")


@pytest.fixture
def cards(qtbot: Any) -> FindingCards:
    made = FindingCards()
    qtbot.addWidget(made)
    made.show_findings([Repeated(FOUND, ()), Repeated(OTHER, ())], {})
    return made


def script(menu: FindingMenu) -> QAction:
    """The entry that reproduces the finding; there is one."""
    (entry,) = (action for action in menu.menu().actions() if action.text() == SCRIPT)
    return entry


def test_each_card_has_a_menu_of_its_finding(cards: FindingCards) -> None:
    asked: list[Finding] = []
    cards.reproducing.connect(asked.append)
    for menu in cards.menus:
        menu.fill()
    first, second = (script(menu) for menu in cards.menus)
    assert (first.text(), first.isEnabled()) == (SCRIPT, True)
    assert not second.isEnabled() and NO_SCRIPT in second.toolTip()
    first.trigger()
    assert asked == [FOUND]
    cards.show_findings([Repeated(OTHER, ())], {})
    assert [card.isHidden() for card in cards.cards] == [False, True]


def test_the_menu_follows_the_finding_of_its_card(cards: FindingCards) -> None:
    cards.show_findings([Repeated(OTHER, ()), Repeated(FOUND, ())], {})
    for menu in cards.menus:
        menu.fill()
    assert [script(menu).isEnabled() for menu in cards.menus] == [False, True]


def test_the_context_menu_is_the_same(cards: FindingCards, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[QMenu, QPoint]] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, at: opened.append((menu, at)))
    cards.cards[0].asked.emit(QPoint(3, 4))
    assert opened == [(cards.menus[0].menu(), QPoint(3, 4))]
    assert script(cards.menus[0]).isEnabled()


def test_the_button_lies_in_the_corner_of_its_card(cards: FindingCards) -> None:
    cards.resize(500, 400)
    cards.show()
    for width in (500, 320):
        cards.resize(width, 400)
        for card, menu in zip(cards.cards, cards.menus, strict=True):
            assert card.rect().contains(menu.geometry()) and card.width() - menu.geometry().right() < 5


def test_the_script_is_written_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, failed, proposed = list[str](), list[str](), list[str]()
    session = SimpleNamespace(sentence="")
    window: Any = SimpleNamespace(
        session=session, say_saved=lambda sentence, _path: shown.append(sentence), fail=failed.append
    )

    def answer(_window: Any, _title: str, name: str, _kinds: str) -> tuple[str, str]:
        proposed.append(name)
        return str(tmp_path / "folder" / "mine") if len(proposed) == 1 else str(tmp_path / "mine"), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    save_script(window, FOUND)
    assert proposed == ["IN205-contracting-weight.py"] and failed.pop().startswith("Cannot write")
    save_script(window, FOUND)
    assert (tmp_path / "mine.py").read_text("utf-8") == reproduce("IN205", [FOUND])
    assert shown[-1].startswith(f"Saved {tmp_path / 'mine.py'}: ") and not failed
    save_script(window, FOUND)
    assert failed.pop().endswith("mine.py exists; choose another name.")  # the dialog did not ask about mine.py
    save_script(window, OTHER)
    assert failed.pop().startswith("There is no rule 'QS401'") and len(proposed) == 3


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_script_that_is_replaced_stays_where_the_new_one_cannot_be_written(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("before")
    failed: list[str] = []
    window: Any = SimpleNamespace(session=SimpleNamespace(), say_saved=None, fail=failed.append)

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "mine.py"), ""))
    monkeypatch.setattr(os, "fsync", fails)
    save_script(window, FOUND)
    assert failed == [f"Cannot write {tmp_path / 'mine.py'}: {os.strerror(number)}."]
    assert (tmp_path / "mine.py").read_text() == "before" and len(list(tmp_path.iterdir())) == 1
