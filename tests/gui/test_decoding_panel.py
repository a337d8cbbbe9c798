"""The tree of a search as it is drawn: where tokens stand, what is left out, and which frame it is read from."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases_runs import DECODING
from panel_captures import shown, write_frames
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from reading import numbers_of

from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.decoding import brief
from inspector.gui.widgets.tree_layout import tree_layout

TREE = tuple(part for part in DECODING.parts if not isinstance(part, tuple) or part[0].dims == ("node",))


def drawn(dots: Any) -> set[tuple[float, float]]:
    x, y = numbers_of(dots)
    return set(zip(x.tolist(), y.tolist(), strict=True))


def test_a_tree_without_drift_has_the_whole_room_and_its_tokens_lie_apart(tmp_path: Path, qapp: QApplication) -> None:
    with shown(tmp_path, "decoding", *TREE) as (_stage, panel):
        panel.resize(826, 287)
        qapp.processEvents()
        panel.redraw()
        qapp.processEvents()
        assert panel.parting.scene() is not None and not panel.parting.isVisible()
        assert panel.branches.sceneBoundingRect().bottom() >= panel.figure.height() - 12
        rows = sorted({round(text.scenePos().y()) for text in panel.texts})
        assert len(rows) > 1 and min(b - a for a, b in pairwise(rows)) >= 12


def test_what_is_longer_than_the_way_to_the_next_token_is_cut() -> None:
    assert [brief("understanding", n) for n in (20, 13, 6, 1)] == ["understanding", "understanding", "under…", "u…"]
    assert brief("ab", 0) == "ab"


def test_leaves_have_rows_of_their_own_and_the_best_way_is_straight() -> None:
    x, y = tree_layout([-1, -1, 0, 0, 2, 1], [3.0, 1.0, 1.0, 3.0, 1.0, 1.0])
    assert x.tolist() == [1, 1, 2, 2, 3, 2]
    assert y.tolist() == [0, 2, 1, 0, 1, 2]
    nothing, _ = tree_layout([], [])
    assert not len(nothing)


def test_a_deep_tree_is_laid_out() -> None:
    x, y = tree_layout([*range(-1, 9_999)], [0.0] * 10_000)
    assert x[-1] == 10_000 and not y.any()


def test_what_was_pruned_is_drawn_on_demand(tmp_path: Path) -> None:
    with shown(tmp_path, "decoding", *DECODING.parts) as (_, panel):
        assert "3 of 4 tokens" in panel.branches.titleLabel.text and not drawn(panel.dots["pruned"])
        assert drawn(panel.dots["on the way"]) == {(1.0, 0.0)}
        assert drawn(panel.dots["finished"]) == {(2.0, 0.0), (2.0, -1.0)}
        assert sorted(text.toPlainText() for text in panel.texts) == ["a", "c", "d"]
        panel.which.setCurrentText("everything tried")
        QApplication.processEvents()
        assert drawn(panel.dots["pruned"]) == {(1.0, -2.0)} and len(panel.texts) == 4


def test_hypotheses_are_listed_the_best_first(tmp_path: Path) -> None:
    with shown(tmp_path, "decoding", *DECODING.parts) as (_, panel):
        first, second = panel.told.text.splitlines()
        assert first.startswith("1. ad  (score -0.399") and second.startswith("2. ac  (score -0.948")
        assert "drawn 2 times" in first


def test_while_the_search_goes_on_what_is_alive_is_drawn_and_texts_stay(tmp_path: Path) -> None:
    fates = [(about, np.array([0, 4, 4, 4], np.uint8)) if about.name == "decoding:fate" else (about, values)
             for about, values in (part for part in TREE if isinstance(part, tuple))]  # fmt: skip
    labels = tuple(part for part in TREE if not isinstance(part, tuple))
    with shown(tmp_path, "decoding", *labels, *fates) as (_, panel):
        assert ", not at its end: " in panel.branches.titleLabel.text
        assert len(drawn(panel.dots["alive"])) == 3 and not drawn(panel.dots["finished"])
        assert "alive" in panel.told.text
        before = {text.toPlainText(): text for text in panel.texts}
        panel.update_contents()
        assert {text.toPlainText(): text for text in panel.texts} == before and before


def test_texts_that_would_be_written_over_each_other_wait_for_a_zoom(tmp_path: Path) -> None:
    with shown(tmp_path, "decoding", *DECODING.parts) as (_, panel):
        panel.branches.vb.setXRange(0, 4000, padding=0)
        assert panel.texts == []
        panel.branches.vb.setXRange(0, 4, padding=0)
        assert len(panel.texts) == 3


def test_without_a_right_answer_there_is_the_tree_alone(tmp_path: Path) -> None:
    with shown(tmp_path, "decoding", *TREE) as (_, panel):
        assert panel.branches.isVisible() and not panel.parting.isVisible()


def test_in_every_frame_the_tree_is_that_of_the_search(tmp_path: Path) -> None:
    parts = [part for part in DECODING.parts if isinstance(part, tuple) and part[0].dims == ("step",)]
    drifts = [(about, np.zeros_like(values)) for about, values in parts]
    with shown(tmp_path, "decoding", *DECODING.parts, *drifts) as (stage, panel):
        for frame in (0, 1):
            stage.cursor.move(frame=frame)
            QApplication.processEvents()
            assert panel.state == "figure" and "of 4 tokens" in panel.branches.titleLabel.text
            heights = numbers_of(panel.drifts["rnn:drift/state"])[1]
            assert bool(heights.any()) is (frame == 0)


def test_the_drift_stands_beside_the_tree_in_a_wide_panel_and_below_it_in_a_high_one(tmp_path: Path) -> None:
    with shown(tmp_path, "decoding", *DECODING.parts) as (_, panel):
        for size, beside in (((1000, 260), True), ((700, 800), False), ((1400, 500), True)):
            panel.resize(*size)
            QApplication.processEvents()
            panel.draw_if_seen()
            QApplication.processEvents()
            tree, drift = panel.branches.sceneBoundingRect(), panel.parting.sceneBoundingRect()
            assert panel.parting.isVisible() and not tree.intersects(drift)
            assert (drift.left() >= tree.right()) == beside and (drift.top() >= tree.bottom()) != beside


def test_step_by_step_the_hypotheses_are_those_of_that_step(tmp_path: Path) -> None:
    with shown(tmp_path, "decoding", *DECODING.parts) as (_, panel):
        panel.until.setValue(1)
        QApplication.processEvents()
        (only,) = panel.told.text.splitlines()[:1]
        tree = panel.tree
        numbers = f"score {tree.tokens[0].score:.4g}, ln p {tree.tokens[0].total:.4g} nat"
        assert only == f"1. a  ({numbers}, 1 token, on the way, drawn 3 times)"
        panel.until.setValue(0)
        QApplication.processEvents()
        assert panel.told.text.startswith("1. ad  (") and "finished" in panel.told.text


def test_the_token_that_is_read_has_a_ring_that_stays_with_it(tmp_path: Path) -> None:
    with shown(tmp_path, "decoding", *DECODING.parts) as (_, panel):
        panel.which.setCurrentText("everything tried")
        QApplication.processEvents()
        panel.pointed(panel.branches, 1.02, -2.1)
        assert drawn(panel.ring) == {(1.0, -2.0)} == drawn(panel.dots["pruned"])
        read = panel.readout(panel.looking.position)
        assert read[0][0] == "token 'b', pruned", read
        panel.which.setCurrentText("hypotheses")
        QApplication.processEvents()
        assert drawn(panel.ring) == set(), "it is not drawn there, and no other token is in its place"
        assert panel.readout(panel.looking.position) == read


def test_a_lower_panel_lists_fewer_hypotheses(tmp_path: Path, qapp: QApplication) -> None:
    many = [f"line {n}" for n in range(9)]
    with shown(tmp_path, "decoding", *TREE) as (_, panel):
        patched = pytest.MonkeyPatch()
        patched.setattr("inspector.gui.panels.decoding.hypothesis_lines", lambda *_: iter(many))
        panel.redraw()
        listed = []
        for height in (700, 280, 700):
            panel.resize(800, height)
            qapp.processEvents()
            listed.append(len(panel.told.text.splitlines()))
        patched.undo()
        assert listed == [7, 3, 7]


def test_the_empty_page_begins_a_search(tmp_path: Path, qtbot: Any) -> None:
    nothing = (part for part in DECODING.parts if not isinstance(part, tuple))
    with open_capture(write_frames(tmp_path, *nothing)) as capture:
        stage = Stage(capture, (800, 400))
        panel: Any = stage.panel("decoding")
        assert panel.state == "empty" and panel._empty.action.isVisibleTo(panel)
        with qtbot.waitSignal(panel.searching, timeout=1000):
            qtbot.mouseClick(panel._empty.action, Qt.MouseButton.LeftButton)
        stage.close()
