"""What the window says of two runs, of many, and of gradients that end: where nothing is to be seen it says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, shown, write_frames
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication

from inspector.capture import Difference, open_capture
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.charts.plane import Plane
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.window.bars.sequence_row import MANY, SequenceRow
from inspector.records import Labels, Refusal

STATE = np.random.default_rng(0).uniform(-1, 1, (7, 4)).astype(np.float32)


def frames(change: np.ndarray) -> tuple[Any, Any]:
    one = channel("enc.l0:h", "state", ("step", "unit"), STATE, title="hidden state", scale="diverging")
    return one, (one[0], (STATE + change).astype(np.float32))


def test_the_map_of_what_differs_by_rounding_is_even_and_says_so(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).choice([-1.2e-7, 0, 6e-8], STATE.shape)
    with shown(tmp_path, "states", *frames(noise), difference=True) as (_, panel):
        assert panel.row.plot.titleLabel.lines[0].endswith("Δ hidden state, enc.l0: no difference beyond rounding")
        assert not panel.data()["enc.l0:h"].any()
        panel.set_capture(panel.source.capture)
        assert "rounding" not in panel.row.plot.titleLabel.lines[0]


def test_the_map_of_a_change_does_not_say_so(tmp_path: Path) -> None:
    change = np.zeros_like(STATE)
    change[3, 1] = 0.1
    with shown(tmp_path, "states", *frames(change), difference=True) as (_, panel):
        assert "rounding" not in panel.row.plot.titleLabel.lines[0]


def test_a_number_that_the_second_run_lacks_colours_nothing(tmp_path: Path, qapp: object) -> None:
    alone = channel("e:gradient/embedding", "gradient", ("step",), np.arange(7, dtype=np.float32), compare="ratio")
    path = write_frames(tmp_path, *frames(np.zeros_like(STATE)), alone, Labels("step", tuple("abcdefg"), -1))
    with open_capture(path) as capture:
        row = SequenceRow(Cursor(), LIGHT, Settings())
        row.grown(capture, 7, frozenset())
        row.colour_by.setCurrentText("e:gradient/embedding")
        assert row.strip._shade is not None
        row.show_difference(Difference(capture, 0, 1))
        assert row.of_runs.text() == "not in frame 1" and row.strip._shade is None and not row.of_runs.isHidden()
        row.show_difference(None)
        assert row.of_runs.isHidden() and row.strip._shade is not None
        row.deleteLater()


def test_the_strip_of_a_run_of_many_sequences_says_what_it_is(tmp_path: Path, qapp: object) -> None:
    table = channel("sequences:loss", "sequences", ("sequence",), np.ones(3))
    with open_capture(write_frames(tmp_path, table)) as capture:
        row = SequenceRow(Cursor(), LIGHT, Settings())
        assert row.strip.nothing == "no sequence yet"
        row.grown(capture, 0, frozenset())
        assert row.strip.nothing == MANY and "many sequences" in MANY
        row.deleteLater()


@pytest.mark.parametrize("width", [120.0, 240.0])
def test_the_title_of_a_plane_ends_where_the_plane_does(width: float, qtbot: Any) -> None:
    import pyqtgraph as pg

    view = pg.GraphicsLayoutWidget()
    qtbot.addWidget(view)
    view.resize(int(width) + 80, 300)
    plane = Plane(LIGHT)
    view.addItem(plane)
    view.show()
    plane.set_title("state in principal components, the.place.of.a.layer.far.inside.l0")
    QApplication.processEvents()
    view.grab()
    label = plane.titleLabel
    assert label.itemRect().width() <= plane.vb.width() + 1 and ("…" in label.text or "<br>" in label.text)
    lines = label.text.count("<br>") + 1
    assert lines * QFontMetricsF(label.font()).height() <= label.size().height() + 1


@pytest.mark.usefixtures("qapp")
def test_the_jacobians_say_below_them_that_the_gradient_goes_elsewhere(tmp_path: Path) -> None:
    norm = channel("m:jacobian/n", "jacobian", ("step",), np.ones(5), title="a norm", scale="log")
    reason = "The steps of m detach a part of what their new state is made of."
    with shown(tmp_path, "jacobians", norm, Refusal("m:gradient/detached_parts", reason, 0)) as (_, panel):
        panel._missing.tell(panel)
        assert panel._missing.whole == f"m: {reason}"


def test_the_map_is_that_of_what_was_chosen_where_the_colours_span_the_same(tmp_path: Path) -> None:
    """States of both runs and their difference all have limits of ±1: no picture of one may stay for another."""
    one = channel("enc.l0:h", "state", ("step", "unit"), STATE, title="hidden state", scale="diverging", limits=(-1, 1))
    other = (one[0], -STATE)
    with shown(tmp_path, "states", one, other) as (stage, panel):
        assert panel.source is not None
        capture = panel.source

        def colours() -> list[str]:
            panel.grab()
            image, area = panel.row.map._growing.image, panel.row.map._cache
            found = area[1] if area is not None else image
            return [found.pixelColor(x, y).name() for x in range(found.width()) for y in range(found.height())]

        pictures = []
        for frame in (0, 1):
            stage.cursor.move(frame=frame)
            pictures.append(colours())
        assert pictures[0] != pictures[1]
        panel.set_capture(Difference(capture, 0, 0))
        assert len(set(colours())) == 1, "nothing differs"
        panel.set_capture(capture)
        stage.cursor.move(frame=1)
        assert colours() == pictures[1]
