"""The readout never says NaN of what is damaged or has not come, and says NaN of what the model made."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import NAME, START, channel, flip, numbers, place_of, write

from inspector.capture import Capture, Writer, open_capture
from inspector.capture.layout import INDEX
from inspector.gui.panel.exact import exact, exact_at, why_not_known
from inspector.gui.panel.registry import PANELS
from inspector.records import Channel, Frame, Page, RunStop


def every_page(path: Path) -> list[int]:
    """The ids of all pages."""
    index = sqlite3.connect(path / INDEX)
    found = [number for (number,) in index.execute("SELECT id FROM pages ORDER BY id").fetchall()]
    index.close()
    return found


def test_a_cell_says_why_it_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = numbers()
    values[9, 1] = np.nan
    path = write(tmp_path / "a.inspect", values, skip=(16,))
    flip(path, 1)
    with open_capture(path) as capture:
        found = exact(capture, NAME, 0, (slice(6, 18), slice(1, 2)))[:, 0]
        assert found[:2].tolist() == ["damaged"] * 2 and found[10:].tolist() == ["not there"] * 2
        assert isinstance(found[2], np.float32) and found[2] == 34 and np.isnan(found[3])
    running = write(tmp_path / "b.inspect", values, skip=(8,), done=False)
    monkeypatch.setattr(Capture, "status", "running")
    with open_capture(running) as capture:
        assert exact(capture, NAME, 0, (slice(9, 10),))[0].tolist() == ["not there yet"] * 4


@pytest.mark.parametrize("status, left, said", [
    ("failed", (), "not there"), ("cancelled", (), "not there"), ("failed", ("lens",), "not there"),
    ("cancelled", ("lens",), "not there"), ("done", ("lens",), "not there yet"), ("done", (), "not there"),
])  # fmt: skip
def test_of_a_run_that_has_ended_only_what_is_still_computed_comes(
    tmp_path: Path, status: Any, left: tuple[str, ...], said: str
) -> None:
    with open_capture(write(tmp_path / "a.inspect", numbers(), skip=(8,))) as capture:
        assert capture.stop is not None
        capture.stop = replace(capture.stop, status=status, left=left)
        assert exact(capture, NAME, 0, (slice(9, 10),))[0].tolist() == [said] * 4


def test_of_a_run_whose_writer_is_gone_nothing_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_capture(write(tmp_path / "a.inspect", numbers(), skip=(8,), done=False)) as capture:
        capture.writer_ended = True
        assert exact_at(capture, NAME, 0, 9, 0) == why_not_known(capture, NAME, 0) == "not there"
        monkeypatch.setattr(type(capture), "written_elsewhere", True)  # whether that still writes is not known
        assert exact_at(capture, NAME, 0, 9, 0) == "not there yet"


def test_the_readout_of_a_state_says_damaged_or_nan(tmp_path: Path, qtbot: Any, stage_of: Any) -> None:
    values = numbers()
    values[20, 1] = np.nan
    path = write(tmp_path / "a.inspect", values)
    flip(path, 2)
    stage = stage_of(path)
    for key in ("states", "units"):
        panel = stage.panel(key)
        for step, said in ((9, "damaged"), (20, "NaN"), (0, "2")):
            panel.looking.move(step=step, unit=1, place="rnn.l0")
            assert panel.labelled_readout()[0][1].partition(",")[0] == said, key


def test_no_panel_calls_what_is_damaged_nan(a_capture: Path, tmp_path: Path, qtbot: Any, stage_of: Any) -> None:
    path = tmp_path / "a.inspect"
    shutil.copytree(a_capture, path)
    for page in every_page(path):
        if place_of(path, page)[2]:
            flip(path, page, at=0)
    stage, said = stage_of(path), []
    for key in PANELS:
        panel = stage.panel(key)
        for place in ("rnn.l0", "attn", ""):
            panel.looking.move(step=150, unit=3, key=1, place=place)
            panel.redraw()
            rows = panel.labelled_readout()
            said += rows
            assert not [row for row in rows if "nan" in row[1].lower()], key
    assert sum("damaged" in value for _, value in said) > 10


def test_saturation_of_a_model_that_makes_nan_is_written_as_everywhere(
    tmp_path: Path, qtbot: Any, stage_of: Any
) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="a:gate/f", kind="gate", dims=("step", "unit"), shape=(4, 3), limits=(0, 1)))
        writer.write(Page("a:gate/f", 0, (0, 0), np.full((4, 3), np.nan, np.float32)))
        writer.write(
            Channel(name="a:gate/f/saturation", kind="unit", dims=("statistic", "unit"), shape=(3, 3),
                    dtype="float64", labels={"statistic": ("left", "right", "graded")})
        )  # fmt: skip
        writer.write(Page("a:gate/f/saturation", 0, (0, 0), np.full((3, 3), np.nan)))
        writer.write(RunStop("done"))
    panel = stage_of(path).panel("gates")
    panel.looking.move(step=1, unit=1, place="a")
    assert [value for _, value in panel.labelled_readout()] == ["NaN", "NaN / NaN / NaN"]


@pytest.mark.parametrize("steps", [1, 4])
def test_gate_openers_of_one_step_say_that_there_is_nothing_to_compare(
    tmp_path: Path, qtbot: Any, stage_of: Any, steps: int
) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        writer.write(Frame(index=0))
        writer.write(channel("a:gate/r", kind="gate", units=3))
        writer.write(Page("a:gate/r", 0, (0, 0), np.full((steps, 3), 0.5, np.float32)))
        writer.write(
            Channel(name="a:opener/r", kind="opener", dims=("feature", "unit"), shape=(2, 3), title="reset gate")
        )
        table = np.full((2, 3), np.nan, np.float32)
        if steps > 1:
            table[1] = 0.25
        writer.write(Page("a:opener/r", 0, (0, 0), table))
        writer.write(RunStop("done"))
    panel = stage_of(path).panel("openers")
    panel.looking.move(step=0, unit=1, place="a")
    told = dict(panel.labelled_readout())
    if steps == 1:
        assert told["reset gate, moves it most"] == "nothing to compare in one step"
        assert "reset gate, moves it least" not in told
    else:
        assert told["reset gate, moves it most"] == told["reset gate, moves it least"] == "'1': 0.25"


def test_the_words_of_gate_openers_say_damaged(a_capture: Path, tmp_path: Path, qtbot: Any, stage_of: Any) -> None:
    path = tmp_path / "a.inspect"
    shutil.copytree(a_capture, path)
    for page in every_page(path):
        if place_of(path, page)[2]:
            flip(path, page, at=0)
    panel = stage_of(path).panel("openers")
    for unit in (None, 3):
        lines = panel.summary_lines(unit)
        assert lines and not [line for line in lines if "nan" in line.lower()]
    assert "nan" not in panel.scales.plot.titleLabel.text.lower()
