"""The panel of inputs: curves, marks, pictures, sound and tokens, each compared with the numbers that were read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from inspector.capture import Capture, Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.inputs.marks import is_mark
from inspector.gui.panel.inputs.pixels import boxes_of
from inspector.gui.panel.inputs.tokens import rows_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.widgets.theme import LIGHT
from inspector.records import Channel, Frame, Labels, Page, RunStart, RunStop, Scalar

TEXT = "to be, or not to be"
random = np.random.default_rng(3)


def captured(path: Path, *parts: tuple[str, tuple[str, ...], np.ndarray], **more: str) -> Capture:
    """A capture with these inputs: (signal, dims, numbers)."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        letters = tuple(sorted(set(TEXT)))
        writer.write(Labels("vocabulary", letters, -1))
        for signal, dims, values in parts:
            domain = "vocabulary" if signal == "token" else ""
            writer.write(
                Channel(
                    name=f"input:{signal}", kind="input", dims=dims, shape=values.shape, dtype=str(values.dtype),
                    title=signal, value_domain=domain,
                )
            )  # fmt: skip
            writer.write(Page(f"input:{signal}", 0, (0,) * values.ndim, values))
        writer.write(Scalar("input:waveform/rate", 0, 8000.0))
        writer.write(RunStop("done"))
    return open_capture(path)


def test_features_are_curves_and_what_only_marks_steps_is_marks(tmp_path: Path) -> None:
    marks = np.zeros(30, np.float32)
    marks[[12, 27]] = 1
    values = np.stack((random.normal(size=30).astype(np.float32), marks), 1)
    with captured(tmp_path / "a.inspect", ("value", ("step", "feature"), values)) as capture:
        stage = Stage(capture, (800, 300))
        panel = stage.panel("inputs")
        assert panel.how.currentData() == "curves"
        np.testing.assert_array_equal(panel.banded.lines[0].getData()[1], values[:, 0].astype(np.float64))
        assert panel.marks.rows[0].getData()[0].tolist() == [12, 27]
        stage.cursor.move(step=12)
        told = dict(panel.readout(stage.cursor.position))
        assert float(told["value[12, 0]  input"]) == pytest.approx(values[12, 0], rel=1e-6)
        assert told["value[12, 1]  input"] == "1"
        stage.close()


def test_curves_beside_a_picture_are_drawn_for_the_width_that_they_get(tmp_path: Path) -> None:
    """The plot has no width yet when it is drawn first: eight steps stood at one place as one mean."""
    values = random.uniform(size=(8, 8)).astype(np.float32)
    parts = (("value", ("step", "feature"), values), ("picture", ("row", "column"), values))
    with captured(tmp_path / "a.inspect", *parts) as capture:
        stage = Stage(capture, (820, 260))
        stage.cursor.set_lengths({"step": 8})
        stage.steps.set_lengths({"step": 8})
        panel: Any = PANELS["inputs"](stage.cursor, stage.steps, LIGHT)
        panel.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        panel.resize(820, 260)
        panel.show()
        panel.set_capture(capture)  # drawn once, as in the window
        for _ in range(5):
            QApplication.processEvents()
        assert panel.series.isVisible() and not panel.banded.dense
        for n, line in enumerate(panel.banded.lines):
            np.testing.assert_array_equal(line.getData()[0], np.arange(8))
            np.testing.assert_array_equal(line.getData()[1], values[:, n].astype(np.float64))
        assert "mean and extremes" not in " ".join(panel.series.titleLabel.lines)
        panel.close()
        panel.deleteLater()
        stage.close()


def test_bits_that_are_one_half_of_the_time_are_no_marks() -> None:
    assert not is_mark(np.array([0.0, 1, 1, 0, 1, 1]))
    assert not is_mark(np.array([0.0, 1, np.nan, 0, 0, 0])) and not is_mark(np.zeros(9))
    assert is_mark(np.array([0.0, 1, 0, 0, 0, 0]))


@pytest.mark.parametrize(("steps", "features"), [(6, 4), (24, 1), (3, 8), (8, 3)])
def test_a_picture_frames_what_a_step_reads(tmp_path: Path, steps: int, features: int) -> None:
    values = random.uniform(size=(steps, features)).astype(np.float32)
    picture = values.reshape(6, 4)
    parts = (("value", ("step", "feature"), values), ("picture", ("row", "column"), picture))
    with captured(tmp_path / "a.inspect", *parts) as capture:
        stage = Stage(capture, (800, 300))
        panel = stage.panel("inputs")
        assert panel.how.currentData() == "picture"
        for step in range(steps):
            stage.cursor.move(step=step)
            path = panel.pixels.frame.path()
            framed = {
                6 * 0 + row * 4 + column
                for row in range(6) for column in range(4)
                if path.contains(path.boundingRect().center().__class__(column, row))
            }  # fmt: skip
            assert framed == set(range(step * features, (step + 1) * features))
        panel.pointed(panel.pixels.plot, 2.2, 4.8)  # row 5, column 2: number 22
        assert stage.cursor.position.at("step") == 22 // features
        assert ("pixel [5, 2]  input", panel.readout(stage.cursor.position)[-1][1]) == (
            panel.readout(stage.cursor.position)[-1][0], f"{picture[5, 2]:.7g}",
        )  # fmt: skip
        stage.close()


def test_cells_of_a_step_that_begins_within_a_row() -> None:
    assert boxes_of(6, 14, 4) == [(2, 1, 2, 1), (0, 2, 4, 1), (0, 3, 2, 1)]


def test_tokens_have_a_row_each_the_most_frequent_first(tmp_path: Path) -> None:
    letters = sorted(set(TEXT))
    ids = np.array([letters.index(one) for one in TEXT])
    counts = Counter(TEXT)
    rows = rows_of(ids, letters, 60)
    assert list(rows.counts) == sorted(counts.values(), reverse=True) and rows.different == len(counts)
    order = sorted(counts, key=lambda one: (-counts[one], TEXT.index(one)))
    shares, _ = rows.shares((0, len(TEXT)), 4)
    cells = [[ids[at] for at in range(len(ids)) if at * 4 // len(ids) == cell] for cell in range(4)]
    expected = [[part.count(letters.index(name)) / len(part) for name in order] for part in cells]
    np.testing.assert_allclose(shares, expected)
    few = rows_of(ids, letters, 4)
    assert few.names[-1] == f"{len(counts) - 3} others" and sum(few.counts) == len(TEXT)
    hidden = rows_of(np.ma.masked_array(ids, mask=np.arange(len(ids)) < 5), letters, 60)
    assert (hidden.row[:5] == -1).all() and sum(hidden.counts) == len(TEXT) - 5
    assert np.isnan(hidden.shares((0, 5), 1)[0]).all()
    with captured(tmp_path / "a.inspect", ("token", ("step",), ids)) as capture:
        stage = Stage(capture, (800, 300))
        panel = stage.panel("inputs")
        stage.cursor.move(step=3)
        assert dict(panel.readout(stage.cursor.position))["token [3]  input"] == f"{ids[3]}  'b'"
        assert panel.tokens.level_line.value() == panel.rows.row[3]
        stage.close()


def test_sound_lies_over_the_steps_that_were_made_of_it(tmp_path: Path) -> None:
    samples = np.zeros(8000, np.float32)
    samples[6000] = 0.5  # three quarters of it
    frames = random.uniform(size=(40, 20)).astype(np.float32)
    parts = (("value", ("step", "feature"), frames), ("waveform", ("sample",), samples))
    with captured(tmp_path / "a.inspect", *parts) as capture:
        stage = Stage(capture, (800, 400))
        panel = stage.panel("inputs")
        assert panel.how.currentData() == "map" and panel.sound.plot.isVisible()
        x, y = panel.sound.line.getData()
        assert x[int(np.nanargmax(y))] == pytest.approx(40 * 0.75 - 0.5, abs=0.1)
        assert "1 s at 8,000 Hz" in panel.sound.plot.titleLabel.lines[0]
        stage.close()


def test_what_is_read_is_kept_with_its_picture_and_its_recording(tmp_path: Path) -> None:
    import soundfile

    import inspector
    from inspector.engine.model.subject import Subject

    images = random.uniform(size=(4, 6)).astype(np.float32)
    model = torch.nn.GRU(6, 2, batch_first=True)
    subject = Subject(model=model, kind="vectors", width=6, picture=(8, 3), examples={"a": images, "b": images[:3]})
    with inspector.run(subject, out=tmp_path / "a.inspect", only=["input"]) as capture:
        np.testing.assert_array_equal(capture.array("input:picture"), images.reshape(8, 3))
    with inspector.run(subject, images[:3], out=tmp_path / "b.inspect", only=["input"]) as capture:
        assert "input:picture" not in capture.channels
        assert "no picture of 8 × 3" in {one.channel: one.reason for one in capture.refusals}["input:picture"]
    sound = (random.uniform(-0.5, 0.5, size=1200)).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", sound, 8000, subtype="FLOAT")
    heard = Subject(model=model, kind="vectors", width=6, frames=lambda samples, rate: samples.reshape(-1, 6))
    from inspector.engine.pipeline.batches import batch_of_spec
    from inspector.records import InputSpec

    batch = batch_of_spec(heard, InputSpec(kind="audio", value=str(tmp_path / "a.wav")), 0)
    assert torch.equal(batch.first.sound[0][0], torch.from_numpy(sound)) and batch.first.sound[0][1] == 8000
