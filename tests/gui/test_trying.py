"""Cures are tried from a finding: its menu, what it asks of the worker, the panel of the losses, and what stays."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from opened import finish, opened
from panel_captures import channel, shown, write_frames
from PySide6.QtWidgets import QLabel

import inspector
from inspector.capture import Writer, open_capture
from inspector.diagnosis import untried
from inspector.diagnosis.words import Repeated
from inspector.gui.panel.overview.finding_cards import FindingCards
from inspector.gui.panel.overview.finding_menu import CANNOT, LATER, NOTHING
from inspector.gui.panels.cures import over_seeds
from inspector.gui.panels.overview import _tried
from inspector.gui.window.training_trials import GOING, words_of
from inspector.gui.window.trying import try_cure
from inspector.records import Entry, Finding, InputSpec, Load

NAME = "model:trial/cure/{}"
CLIP = Entry(key="clip_gradient", title="Clip the gradient", summary="It is clipped at 1.", rules=("IN205", "IN301"))
SLOW = Entry(key="critical_rate", title="Another rate", summary="Another rate.", rules=("IN301",))
FOUND = Finding(rule="contracting-weight", id="IN205", severity="warning", place="rnn", message="γσ₁ is 0.5", frame=0)
OTHER = Finding(rule="future-leak", id="IN103", severity="error", place="", message="a leak", frame=0)


def losses(key: str, values: Any, after: Any, title: str = "Clip the gradient") -> tuple[Any, Any]:
    about: dict[str, Any] = {
        "unit": "nat", "title": f"{title}: loss", "compare": "separate", "labels": {"version": ("as it is", "cured")}
    }  # fmt: skip
    whole, end = np.asarray(values, np.float64), np.asarray(after, np.float64)
    name = NAME.format(key)
    return (
        channel(name, "cure", ("version", "seed", "iteration"), whole, **about),
        channel(f"{name}/after", "cure", ("version", "seed"), end, **about),
    )


HELPS = losses("clip_gradient", [[[3, 3], [3, 3], [3, 3]], [[3, 1], [3, 1], [3, 1]]], [[3, 3.1, 3], [1, 1, 1.1]])
HARMS = losses("critical_rate", [[[3, 1], [3, 1]], [[3, 5], [3, 5]]], [[1, 1], [5, 5.1]], "Another rate")


@pytest.fixture
def cards(qtbot: Any) -> FindingCards:
    made = FindingCards()
    qtbot.addWidget(made)
    return made


def entries(cards: FindingCards, number: int) -> list[Any]:
    cards.menus[number].fill()
    """Those before the first separator."""
    actions = cards.menus[number].menu().actions()
    return actions[: next(n for n, action in enumerate(actions) if action.isSeparator())]


def test_a_finding_offers_the_cures_that_name_its_rule(cards: FindingCards) -> None:
    asked: list[tuple[Finding, str]] = []
    cards.trying.connect(lambda *given: asked.append(given))
    cards.show_findings([Repeated(FOUND, (0,)), Repeated(OTHER, (0,))], {})
    (early,) = entries(cards, 0)  # the worker has not said yet what it offers
    assert early.text() == NOTHING and LATER in early.toolTip()
    cards.know([CLIP, SLOW])
    (one,) = entries(cards, 0)
    assert one.text() == "Try it: Clip the gradient" and "It is clipped at 1." in one.toolTip() and one.isEnabled()
    one.trigger()
    assert asked == [(FOUND, "clip_gradient")]
    (none,) = entries(cards, 1)
    said = CANNOT.format(untried("future-leak"))
    assert none.text() == NOTHING and not none.isEnabled() and said in html.unescape(none.toolTip())
    assert "the model's code" in said


def test_what_was_tried_is_told_at_its_finding(cards: FindingCards, tmp_path: Path) -> None:
    with open_capture(write_frames(tmp_path, *HELPS, *HARMS)) as capture:
        told = _tried(capture)
    cards.know([CLIP, SLOW])
    cards.show_findings([Repeated(FOUND, (0,)), Repeated(OTHER, (0,))], {}, told)
    assert (
        cards.cards[0].small == "Tried: Clip the gradient: it helped. " + told[0][0].sentence.partition("helped. ")[2]
    )
    assert "lower in 3 of 3 seeds" in cards.cards[0].small and "Another rate" not in cards.cards[0].small
    assert "Tried" not in cards.cards[1].small
    spike = Finding(rule="loss-spike", id="IN301", severity="warning", place="", message="a spike")
    cards.show_findings([Repeated(spike, ())], {}, told)
    assert "Another rate: it did harm." in cards.cards[0].small and "nat higher" in cards.cards[0].small


def test_the_panel_tells_every_cure_and_draws_the_one_that_is_chosen(tmp_path: Path) -> None:
    with shown(tmp_path, "cures", *HELPS, *HARMS) as (_stage, panel):
        assert "it helped" in panel.told.text and "it did harm" in panel.told.text
        for cure, last in (("critical_rate", 5.0), ("clip_gradient", 1.0)):
            panel.show_cure(cure)
            assert panel.shown().cure == cure and panel.bands[1].line.yData[-1] == last


def test_a_cure_that_is_awaited_is_shown_as_soon_as_it_is_there(tmp_path: Path) -> None:
    with shown(tmp_path, "cures", *HELPS, *HARMS) as (_stage, panel):
        found, panel.found = panel.found, []
        first = panel.which.currentText()
        panel.show_cure(next(one.cure for one in found if one.title != first))
        assert panel.which.currentText() == first
        panel.redraw()
        assert panel.which.currentText() != first
        panel.which.setCurrentText(first)  # the user's choice stays
        panel.redraw()
        assert panel.which.currentText() == first


def test_copies_that_diverge_leave_the_others_readable(tmp_path: Path) -> None:
    ill = [[2.0, 2.0, 1e9], [2.0, math.inf, math.nan]]
    parts = losses("clip_gradient", [ill, [[2.0, 1.0, 0.5], [2.0, 1.0, 0.5]]], [[1e9, math.nan], [0.5, 0.5]])
    with shown(tmp_path, "cures", *parts) as (_stage, panel):
        low, high = panel.plot.vb.viewRange()[1]
        assert low < 0.5 and 8.0 <= high < 10.0
        assert "Losses above 8 are not drawn." in panel.told.text
        assert "1 not finite" in panel.legend.entries[0][1] and "not finite" not in panel.legend.entries[1][1]


def test_a_training_that_begins_near_its_best_loss_is_drawn_whole(tmp_path: Path) -> None:
    noisy = np.linspace(0.01, 1.0, 20)[None].repeat(2, 0)
    with shown(tmp_path, "cures", *losses("clip_gradient", [noisy, noisy], np.ones((2, 2)))) as (_stage, panel):
        assert panel.plot.vb.viewRange()[1][1] > 1.0 and "not drawn" not in panel.told.text


def test_a_negative_loss_is_drawn_whole(tmp_path: Path) -> None:
    falling = np.linspace(-1.0, -9.0, 20)[None].repeat(2, 0)
    with shown(tmp_path, "cures", *losses("clip_gradient", [falling, falling], np.ones((2, 2)))) as (_stage, panel):
        low, high = panel.plot.vb.viewRange()[1]
        assert low < -9.0 and high > -1.0 and "not drawn" not in panel.told.text


def test_nothing_finite_is_drawn_as_nothing(tmp_path: Path) -> None:
    parts = losses("clip_gradient", np.full((2, 1, 3), math.nan), np.full((2, 1), math.nan))
    with shown(tmp_path, "cures", *parts) as (_stage, panel):
        assert panel.bands[0].line.xData is None or not len(panel.bands[0].line.xData)


def test_the_spread_is_that_of_the_finite_seeds() -> None:
    low, mean, high = over_seeds(np.array([[1.0, math.nan, math.nan], [3.0, math.inf, 5.0]]))
    np.testing.assert_array_equal(low, [1.0, math.nan, 5.0])
    np.testing.assert_array_equal(mean, [2.0, math.nan, 5.0])
    np.testing.assert_array_equal(high, [3.0, math.nan, 5.0])


def test_without_a_run_of_the_model_nothing_is_asked() -> None:
    failed = list[str]()
    session = SimpleNamespace(capture=None, can_run_again=False)
    window: Any = SimpleNamespace(session=session, fail=failed.append)
    try_cure(window, FOUND, "clip_gradient")
    assert failed == [
        "This cannot be tried on the capture that is shown. Open a model and run it: the cure is tried on that run."
    ]


MODEL = """
from types import SimpleNamespace
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.read = nn.RNN(2, 4, batch_first=True), nn.Linear(4, 1)
    def forward(self, x):
        return self.read(self.rnn(x)[0])
def make():
    return SimpleNamespace(model=Net(), width=2, loss=lambda out, batch: (out[..., 0] - 1).square(),
                           examples={"a": torch.ones(5, 2), "b": torch.zeros(5, 2)})
"""


@pytest.fixture
def window(qtbot: Any, tmp_path: Path) -> Iterator[Any]:
    file = tmp_path / "net.py"
    file.write_text(MODEL)
    with opened(qtbot, background=False, overview=True) as made:
        made.open_model(Load(subject=f"{file}:make", trusted=True))
        finish(made, qtbot)
        made.run(InputSpec(kind="example", value="a"))
        finish(made, qtbot)
        yield made


def test_the_worker_tries_it_and_the_capture_keeps_what_came(window: Any, qtbot: Any) -> None:
    path = window.session.capture.path
    before = {name: window.session.capture.array(name) for name in window.session.capture.channels}
    also = window.session.also
    overview = window.panels.get("overview")
    assert "clip_gradient" in {cure.key for cure in overview.page.findings.cures}
    overview.trying.emit(FOUND, "clip_gradient")
    finish(window, qtbot)
    panel = window.panels.get("cures")
    assert panel.state == "figure" and panel.shown().cure == "clip_gradient"
    assert window.session.also == also and window.session.capture.path == path  # later runs try nothing by themselves
    with open_capture(path) as again:
        assert NAME.format("clip_gradient") in again.channels and _tried(again)[0][0].cure == "clip_gradient"
        for name, values in before.items():
            np.testing.assert_array_equal(again.array(name), values)


def test_what_cannot_be_tried_is_told_where_it_would_be_shown(window: Any, qtbot: Any) -> None:
    window.panels.get("overview").trying.emit(FOUND, "open_memory")
    finish(window, qtbot)
    assert NAME.format("open_memory") not in window.session.capture.channels
    panel = window.panels.get("cures")
    shown = " ".join(label.text() for label in panel.findChildren(QLabel) if not label.isHidden())
    (reason,) = {one.reason for one in window.session.capture.refusals if "open_memory" in one.channel}
    assert panel.state == "empty" and reason in shown


def test_a_trial_can_be_cancelled(window: Any, qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = window.session.capture.path
    monkeypatch.setattr("inspector.gui.window.trying.REQUEST", "trial/cure@cure={}@iterations=100000")
    window.panels.get("overview").trying.emit(FOUND, "clip_gradient")
    qtbot.waitUntil(lambda: "clip_gradient" in str(window.session.sentence) or window.session.busy)
    window.session.cancel()
    finish(window, qtbot)
    with open_capture(path) as capture:
        assert NAME.format("clip_gradient") not in capture.channels and capture.stop.status == "done"
    assert window.session.can_run_again


def watched(path: Path) -> None:
    """Three steps of training of a net like that of the window, watched."""
    namespace: dict[str, Any] = {}
    exec(MODEL, namespace)
    subject, x = namespace["make"](), torch.ones(1, 5, 2)
    optimizer = torch.optim.Adam(subject.model.parameters())
    with inspector.watch(subject.model, optimizer, path, probe=x, every=1) as watcher:
        for _ in range(3):
            optimizer.zero_grad()
            loss = (subject.model(x)[..., 0] - 1).square().mean()
            loss.backward()
            optimizer.step()
            watcher.log(loss=loss)


def test_a_cure_for_a_training_is_kept_in_its_capture(
    window: Any, qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, failed = tmp_path / "t.inspect", list[str]()
    with torch.random.fork_rng():  # the net is made with a seed
        watched(path)
    few = "inspector.gui.window.training_trials.words_of"
    monkeypatch.setattr(few, lambda *given: [*words_of(*given), "--steps", "3", "--seeds", "1"])
    window.fail = failed.append
    window.open_capture(str(path))
    with Writer(path, window.session.capture.start, again=True):  # it is still being written
        window.panels.get("overview").trying.emit(FOUND, "clip_gradient")
    assert "being written" in failed.pop() and not window.trials.busy
    window.panels.get("overview").trying.emit(FOUND, "smaller_rate")
    assert window.trials.busy
    said = window.panels.get("cures")._empty.label.text()
    title = next(one.title for one in window.session.catalog.cures if one.key == "smaller_rate")
    assert f": {title} …" in said and "Being tried on " in said and "smaller_rate" not in said
    assert "Esc cancels" in said and "nothing is added" not in said
    monkeypatch.setattr("inspector.gui.window.training_trials.read_by", lambda _: "  12 s: it, 40 % of this run\n")
    window.trials._read()
    said = window.panels.get("cures")._empty.label.text()
    assert f"{title} … 12 s: it, 40 % of this run. Esc cancels." in said
    assert window.session.sentence.endswith("12 s: it, 40 % of this run")
    monkeypatch.undo()
    monkeypatch.setattr(few, lambda *given: [*words_of(*given), "--steps", "3", "--seeds", "1"])
    window.panels.get("overview").trying.emit(FOUND, "clip_gradient")
    assert failed.pop() == GOING
    qtbot.waitUntil(lambda: not window.trials.busy, timeout=120_000)
    assert not failed
    panel = window.panels.get("cures")
    qtbot.waitUntil(lambda: panel.state == "figure" and panel.shown().cure == "smaller_rate", timeout=10_000)
    assert not panel.going
    with open_capture(path) as again:
        assert _tried(again)[-1][0].cure == "smaller_rate" and "training" in again.start.meta
    window.panels.get("overview").trying.emit(FOUND, "clip_gradient")
    window.trials.stop()
    assert not window.trials.busy and "cancelled" in window.session.sentence
