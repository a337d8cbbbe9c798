"""Findings are muted from their card, by rule or by place, and shown again: the project's file and the page agree."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inspector.diagnosis import Settings, read_settings
from inspector.diagnosis.settings import Mute
from inspector.diagnosis.words import Repeated
from inspector.gui.panel.overview.finding_cards import FindingCards
from inspector.gui.panel.overview.look_over import LookOver
from inspector.gui.window.muting import change_mute
from inspector.records import Finding

ONE = Finding(rule="saturated-gates", id="IN402", severity="info", place="rnn.l0", message="gates are shut")
MANY = Finding(
    rule="uniform-attention", id="IN412", severity="warning", place="", message="even", places=("a.0", "a[1]", "a.2")
)


@pytest.fixture
def cards(qtbot: Any) -> FindingCards:
    made = FindingCards()
    qtbot.addWidget(made)
    made.show_findings([Repeated(MANY, (0,)), Repeated(ONE, (0,))], {})
    return made


def entries(cards: FindingCards, number: int) -> dict[str, Any]:
    """{text: action} of the entries about muting; those of a submenu with its name before them."""
    cards.menus[number].fill()
    found: dict[str, Any] = {}
    below = cards.menus[number].places
    for action in cards.menus[number].menu().actions():
        if action.text() == "Mute at":
            found |= {f"Mute at {one.text()}": one for one in below.actions()}
        elif "ute" in action.text():
            found[action.text()] = action
    return found


def test_a_finding_is_muted_at_one_place_or_as_a_rule(cards: FindingCards) -> None:
    asked: list[tuple[Mute, bool]] = []
    cards.muting.connect(lambda *given: asked.append(given))
    assert list(entries(cards, 1)) == ["Mute at rnn.l0", "Mute this rule (IN402)"]
    many = entries(cards, 0)
    assert list(many) == ["Mute at a.0", "Mute at a[1]", "Mute at a.2", "Mute this rule (IN412)"]
    for name in ("Mute at a[1]", "Mute this rule (IN412)"):
        entries(cards, 0)[name].trigger()
    assert [on for _mute, on in asked] == [True, True] and asked[1][0] == Mute("IN412")
    assert asked[0][0].at("a[1]") and not asked[0][0].at("a1")
    assert Settings((asked[0][0],)).parted(MANY)[0].places == ("a.0", "a.2")  # type: ignore[union-attr]


def test_what_the_project_mutes_can_be_shown_and_taken_back(cards: FindingCards) -> None:
    asked: list[tuple[Mute, bool]] = []
    cards.muting.connect(lambda *given: asked.append(given))
    cards.mutes = (Mute("saturated-gates", "rnn.*", "meant"), Mute("IN412", "a.0"))
    cards.show_findings([Repeated(MANY, (0,))], {}, muted=[Repeated(ONE, (0,))])
    assert cards.quiet.text() == "Show 1 muted finding" and cards.quiet.isVisibleTo(cards)
    assert [one.isVisibleTo(cards) for one in cards.cards] == [True, False]
    cards.quiet.click()
    assert cards.cards[1].isVisibleTo(cards) and cards.cards[1].heading.startswith("Muted  ·  Information")
    assert not cards.cards[0].heading.startswith("Muted") and cards.quiet.text() == "Hide 1 muted finding"
    entries(cards, 1)["No longer mute IN402 at rnn.*"].trigger()
    assert asked == [(cards.mutes[0], False)]
    assert "Mute at a.0" not in entries(cards, 0) and "No longer mute IN412 at a.0" in entries(cards, 0)
    cards.quiet.click()
    assert not cards.cards[1].isVisibleTo(cards)
    cards.show_findings([], {}, muted=[Repeated(ONE, (0,))])
    assert cards.isVisibleTo(cards.parentWidget()) or cards.quiet.isVisibleTo(cards)


def test_the_window_writes_the_projects_file_and_the_page_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    look, said, failed = LookOver(), list[str](), list[str]()
    overview = SimpleNamespace(read_project=look.read_project)
    window: Any = SimpleNamespace(say=said.append, fail=failed.append, panels={"overview": overview})
    change_mute(window, Mute("IN402", "rnn.l0"), on=True)
    assert look.mutes == (Mute("IN402", "rnn.l0"),) == read_settings(tmp_path / "inspector.toml").muted
    assert said == [f"IN402 at rnn.l0 is muted in {tmp_path / 'inspector.toml'}."] and not failed
    change_mute(window, Mute("IN402", "rnn.l0"), on=False)
    assert look.mutes == () and "no longer muted" in said[-1]
    (tmp_path / "inspector.toml").write_text("[diagnosis")
    change_mute(window, Mute("IN402"), on=True)
    assert len(failed) == 1 and "is not TOML" in failed[0]
    assert (tmp_path / "inspector.toml").read_text() == "[diagnosis"
