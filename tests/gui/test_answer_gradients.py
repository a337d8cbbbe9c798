"""Gradients from an answer to its source: by themselves without attention, beside the weights with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, shown, write_frames
from PySide6.QtCore import Qt

from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.attention.on_request import has_source, listed
from inspector.records import ANSWER_DOMAIN, Labels

QUERIES, KEYS = 5, 8
SLOPES = np.abs(np.random.default_rng(0).normal(size=(QUERIES, KEYS)))
OVER: dict[str, Any] = {"domains": {"query": ANSWER_DOMAIN, "key": "step"}}
FOUND = channel("rnn:gradient/from_answer", "attention_map", ("query", "key"), SLOPES, unit="nat", scale="log",
                title="gradient from the answer to the encoder", **OVER)  # fmt: skip
STATES = channel("rnn:h", "state", ("step", "unit"), np.zeros((KEYS, 2), np.float32), title="state")
WORDS = (Labels("step", tuple("question"), -1), Labels(ANSWER_DOMAIN, tuple("reply"), -1))
WEIGHTS = np.full((1, QUERIES, KEYS), 1 / KEYS, np.float32)
ATTENTION = channel("a:attention", "attention", ("head", "query", "key"), WEIGHTS, limits=(0, 1), **OVER)


def test_without_attention_the_map_is_drawn_by_itself(tmp_path: Path) -> None:
    with shown(tmp_path, "attention", FOUND, STATES, *WORDS) as (_, panel):
        cells, _ = panel.row.map._look((0.0, 0.0, float(KEYS), float(QUERIES)), (KEYS, QUERIES))
        np.testing.assert_allclose(cells, SLOPES, rtol=1e-6)
        assert panel.row.plot.query_axis.names == tuple("reply") and panel.row.plot.step_axis.names == tuple("question")
        panel._move_to(panel.row.plot, 6.2, 3.1)
        assert panel.looking.position.key == 6
        (read,) = [value for what, value in panel.readout(panel.looking.position) if " 3 → 6  rnn" in what]
        assert read.startswith(f"{SLOPES[3, 6]:.6g}"[:6]) and read.endswith("nat")
        assert panel.row.heading.startswith("gradient from the answer to the encoder, rnn")
        assert not panel.overview.filter.isEnabled() and not panel.which.isEnabled() and panel.head_here() is None
        for view in ("Lines", "Alignment", "All heads", "Map"):
            panel.view.setCurrentText(view)
            assert panel.state == "figure", view
        panel.options._on["without_first"].trigger()
        np.testing.assert_allclose(panel.row.map._look((0.0, 0.0, 8.0, 5.0), (8, 5))[0], SLOPES, rtol=1e-6)


def test_with_attention_it_is_beside_the_weights(tmp_path: Path) -> None:
    with shown(tmp_path, "attention", FOUND, STATES, ATTENTION, *WORDS) as (_, panel):
        assert [one.name for one in panel.maps()] == ["a:attention"]
        panel.options.option("beside", "gradient/from_answer").trigger()
        cells, _ = panel.page.maps[1].map._look((0.0, 0.0, float(KEYS), float(QUERIES)), (KEYS, QUERIES))
        np.testing.assert_allclose(cells, SLOPES, rtol=1e-6)
        assert panel.overview.filter.isEnabled()


@pytest.mark.parametrize("answers", [True, False])
def test_it_is_offered_where_a_recurrent_encoder_is_answered(tmp_path: Path, qtbot: Any, answers: bool) -> None:
    with open_capture(write_frames(tmp_path, STATES, *WORDS[: 1 + answers])) as capture:
        assert has_source(capture) is answers
        stage = Stage(capture, (900, 400))
        try:
            panel: Any = stage.panel("attention")
            assert panel.state == "empty" and panel._empty.action.isVisibleTo(panel) is answers
            if answers:
                with qtbot.waitSignal(panel.wanted) as asked:
                    qtbot.mouseClick(panel._empty.action, Qt.MouseButton.LeftButton)
                assert asked.args == [("gradient/from_answer",)]
        finally:
            stage.close()


def test_what_cannot_be_of_a_model_is_not_listed() -> None:
    assert "gradient/from_answer" in listed({}, offered=True)
    assert "gradient/from_answer" not in listed({}, offered=True, without=("gradient/from_answer",))
