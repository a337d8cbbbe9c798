"""What the panels BPTT, Truncation and Clipping say in words, and what they do with the mouse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.bptt import DECADES, floored
from inspector.records import Channel, Frame, Page, RunStart, Scalar


def test_the_check_stands_in_the_title_of_the_map(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (800, 500))
        panel = stage.panel("bptt", place="rnn.l0")
        assert panel.which.currentText() == "weight_hh" and panel.which.count() == 2
        titles = [" ".join(plot.titleLabel.lines) for plot in (panel.row.plot, panel.plot)]  # drawn as far as they fit
        assert "autograd's gradient (relative difference 1.0e-07)" in titles[0]
        assert "total gradient 2, immediate part alone (lag 0) 1" in titles[1]
        stage.cursor.move(step=40, key=38)
        told = dict(panel.readout(stage.cursor.position))
        shown, unit = told["gradient of loss 40 through the use at 38, weight_hh  rnn.l0"].split()
        assert unit == "nat" and float(shown) == pytest.approx(np.exp(-0.4), rel=1e-6)
        panel.pointed(panel.row.plot, 12.2, 30.4)
        assert (stage.cursor.position.step, stage.cursor.position.key) == (30, 12)
        panel.which.setCurrentText("weight_ih")
        assert set(panel.data()) == {"rnn.l0:bptt/weight_ih", "rnn.l0:bptt/weight_ih/lag"}
        stage.close()


def test_what_is_far_below_the_largest_entry_is_counted_as_beyond() -> None:
    channel = Channel(name="p:bptt/W", kind="bptt", dims=("step", "source"), shape=(2, 2), scale="log")
    levels = floored(np.array([1e2, 1e-3, 1e-30, np.nan, 0.0]), channel)
    assert levels.high == 2 and levels.low == 2 - DECADES and levels.clipped == pytest.approx(1 / 3)
    assert levels.masked and floored(np.array([np.nan, 0.0]), channel).low == 0


def test_the_smallest_k_is_said_in_words_and_marked(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (800, 500))
        panel = stage.panel("truncation", place="rnn.l0")
        title = panel.error.titleLabel.text
        assert "error within 10 %: K = 13, 4 % of the cost; within 1 %: no K up to 300" in title
        assert panel.marks[0].value() == pytest.approx(np.log10(13)) and not panel.marks[1].isVisible()
        stage.cursor.move(step=7)
        assert ("smallest K [7] 10 % / 1 %", "8 / 16") in panel.readout(stage.cursor.position)
        stage.close()


def test_a_threshold_that_is_dragged_says_what_it_would_do(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (800, 500))
        panel = stage.panel("clipping")
        noted = capture.array("parameters:clipping/history")[1]
        over = int((~(noted <= 0.5)).sum())
        assert "c = 0.5, ‖g‖ = 2 by norm scaled by 0.25" in " ".join(panel.effect.titleLabel.lines)
        share = f"‖g‖ > 0.5 in {over:,} of 50,000 steps ({over / 500:.3g} %); it used 0.5"
        assert share in " ".join(panel.history.titleLabel.lines)
        panel.line.setValue(np.log10(4.0))
        assert panel.threshold == pytest.approx(4) and panel.level.value() == pytest.approx(np.log10(4.0))
        assert "by norm unchanged; by value nothing cut" in panel.effect.titleLabel.lines
        panel.level.setValue(-4.0)
        assert "by norm scaled by 5e-05; by value 50 % cut, cosine 0.750" in panel.effect.titleLabel.lines
        told = dict(panel.readout(stage.cursor.position))
        assert float(told["clipping threshold"]) == pytest.approx(1e-4)
        assert told["training steps above the threshold"].endswith("of 50,000")
        stage.close()


def test_frames_with_gradient_norms_are_a_history_too(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        name = "parameters:clipping/norms"
        writer.write(
            Channel(
                name=name,
                kind="clipping",
                dims=("statistic", "parameter"),
                shape=(6, 1),
                dtype="float64",
                labels={"statistic": ("norm", "root mean square", "largest", "zeros", "underflow", "entries")},
            )
        )
        for frame, norm in enumerate((4.0, 2.0, 0.5)):
            writer.write(Frame(index=frame, step=100 * frame))
            writer.write(Page(name, frame, (0, 0), np.full((6, 1), norm)))
            writer.write(Scalar("parameters:clipping/gradient_norm", frame, norm))
    with open_capture(tmp_path / "a.inspect") as capture:
        stage = Stage(capture, (800, 500))
        panel = stage.panel("clipping")
        assert panel.noted_norms().tolist() == [[0, 100, 200], [4.0, 2.0, 0.5]]
        assert "‖g‖ > 1 in 2 of 3 steps (66.7 %)" in panel.history.titleLabel.lines[0]
        stage.close()


def test_gradients_say_that_they_are_of_the_sum(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (800, 500))
        panel = stage.panel("gradients", place="rnn.l0")
        assert "of the gradient of the sum of the losses" in panel.curves.plot.titleLabel.text
        stage.close()
