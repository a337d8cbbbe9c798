"""What two runs make is said by the channel: differences about 0, ratios about 1, or one run and then the other."""

from __future__ import annotations

import ast
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from captures import as_format_1
from panel_captures import Written, shown, write_frames

import inspector.engine.quantities
from inspector.capture import Difference, open_capture
from inspector.capture.layout import INDEX
from inspector.capture.older import SEPARATE
from inspector.gui.export.figure_files import save_data
from inspector.gui.panel.compared import compared_runs, for_file, meaning
from inspector.gui.widgets.images.quantise import extreme, levels_of
from inspector.records import Channel

STEPS = 6
NORM = Channel(name="rnn.l0:jacobian/n", kind="jacobian", dims=("step",), shape=(STEPS,), dtype="float64",
               title="a norm", scale="log", compare="ratio")  # fmt: skip
BEFORE = np.array([1.0, 2.0, 4.0, 1.0, 1.0, 2.0])
RATIO = np.array([1.0, 0.5, 100.0, 2.0, 1.0, 1.0])


def pair(channel: Channel, before: np.ndarray, after: np.ndarray) -> list[Written]:
    return [(channel, before), (channel, after)]


def limits(plot: object) -> tuple[float, float]:
    low, high = plot.vb.viewRange()[1]
    return float(low), float(high)


def test_ratios_are_drawn_as_times_with_1_in_the_middle(tmp_path: Path) -> None:
    with shown(tmp_path, "jacobians", *pair(NORM, BEFORE, BEFORE * RATIO), difference=True) as (stage, panel):
        (line,) = panel.curves.lines.values()
        np.testing.assert_allclose(10 ** line.getData()[1], RATIO)
        low, high = limits(panel.curves.plot)
        assert low == -high and high > 2, "10⁰ is in the middle"
        assert panel.curves.plot.getAxis("left").labelText == "ratio, ×"
        assert [name for _, name in panel.curves.legend.entries] == ["a norm"]
        stage.cursor.move(step=2)
        assert panel.labelled_readout() == [("a norm [2]  rnn.l0", "100 ×")]
        panel.set_capture(panel.source.capture)
        assert panel.curves.plot.getAxis("left").labelText == "norm of ∂sₜ/∂sₜ₋₁"


def test_a_map_of_ratios_has_1_in_the_middle_of_its_colours_and_times_on_its_bar(tmp_path: Path) -> None:
    grid = Channel(name="rnn.l0:gradient/map", kind="map", dims=("step", "source"), shape=(3, 3), dtype="float64",
                   title="a map", scale="log", compare="ratio", unit="nat")  # fmt: skip
    before = np.tril(np.full((3, 3), 2.0))
    change = np.array([[1.0, 1, 1], [10.0, 1, 1], [0.5, 1, 1]])
    with shown(tmp_path, "lags", *pair(grid, before, before * change), difference=True) as (_, panel):
        bar = panel.row.bar
        texts = [text for _, text in bar._ticks()]
        assert texts[1] == "1" and texts[2].endswith(" ×") and float(texts[2].split()[0]) == pytest.approx(10, rel=0.1)
        assert float(texts[0]) == pytest.approx(1 / float(texts[2].split()[0]), rel=0.01)
        index = panel.row.map._levels.index(np.array([1.0, 0.5, 10.0]))
        assert index[0] == 126 and index[1] < 126 < index[2]


def test_differences_are_drawn_with_0_in_the_middle(tmp_path: Path) -> None:
    state = Channel(name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=(STEPS, 2), dtype="float64",
                    title="hidden state", limits=(-1, 1))  # fmt: skip
    before = np.zeros((STEPS, 2))
    after = np.linspace(-0.1, 0.4, 2 * STEPS).reshape(STEPS, 2)
    with shown(tmp_path, "states", *pair(state, before, after), difference=True) as (stage, panel):
        levels = panel.row.map._levels
        assert (
            levels.scale == "diverging" and levels.low == -levels.high and levels.high == pytest.approx(0.4, rel=0.02)
        )
        stage.cursor.move(step=1, unit=1, place="rnn.l0")
        low, high = limits(panel.trace)
        assert low == -high and high > 0.4 and panel.trace.getAxis("left").labelText == "difference"
        ((what, value),) = panel.labelled_readout()
        assert what == "Δ h[1, 1]  rnn.l0" and float(value) == pytest.approx(after[1, 1], rel=1e-6)


@pytest.mark.parametrize(("compare", "scale"), [("separate", "sequential"), ("separate", "log")])
def test_what_stands_apart_turns_from_run_to_run_whatever_its_kind(tmp_path: Path, compare: str, scale: str) -> None:
    channel = Channel(name="rnn.l0:jacobian/n", kind="jacobian", dims=("step",), shape=(STEPS,), dtype="float64",
                      title="a verdict", scale=scale, compare=compare)  # fmt: skip
    with shown(tmp_path, "jacobians", *pair(channel, BEFORE, RATIO), difference=True) as (_, panel):
        assert not panel.differs and not panel.one_run.isHidden() and channel.name not in panel.source.channels
        np.testing.assert_array_equal(panel.data()[channel.name], RATIO)
        panel.one_run.activated.emit(1)
        np.testing.assert_array_equal(panel.data()[channel.name], BEFORE)


@pytest.mark.parametrize(("scale", "compare"), [("log", "difference"), ("sequential", "ratio"), ("log", "ratio")])
def test_the_channel_says_it_and_not_its_scale(tmp_path: Path, scale: str, compare: str) -> None:
    channel = Channel(name="rnn.l0:h", kind="state", dims=("step",), shape=(STEPS,), dtype="float64", scale=scale,
                      compare=compare, title="number, edited / as it was")  # fmt: skip
    path = write_frames(tmp_path, *pair(channel, BEFORE, BEFORE * RATIO))
    with open_capture(path) as capture:
        both = Difference(capture, 0, 1)
        wanted = RATIO if compare == "ratio" else BEFORE * RATIO - BEFORE
        np.testing.assert_allclose(both.array(channel.name), wanted, rtol=1e-6)
        assert meaning(both, channel.name) == compare
        described = both.channels[channel.name]
        assert (described.scale, described.unit) == (("ratio", "×") if compare == "ratio" else ("diverging", "1"))


def test_a_cell_of_ratios_shows_the_one_farther_from_1() -> None:
    low, high = np.array([0.01, 0.5, 0.0, np.nan]), np.array([10.0, 4.0, 2.0, np.nan])
    np.testing.assert_array_equal(extreme(low, high, "ratio"), [0.01, 4.0, 0.0, np.nan])
    levels = levels_of(np.array([0.1, 1.0, 1000.0]), "ratio", None)
    assert levels.log and levels.low == -levels.high and levels.high == pytest.approx(3, rel=0.02)


OLD = [("bptt", "log", "separate"), ("health", "sequential", "separate"), ("jacobian", "log", "ratio"),
       ("state", "diverging", "difference"), ("gate", "sequential", "difference")]  # fmt: skip


@pytest.mark.parametrize("kind", sorted(SEPARATE))
def test_every_kind_of_one_run_stood_apart_before_channels_said_so(tmp_path: Path, kind: str) -> None:
    assert _read_without_the_field(tmp_path, kind, "log") == "separate"


@pytest.mark.parametrize(("kind", "scale", "compare"), OLD)
def test_captures_from_before_the_field_get_it_from_one_table(
    tmp_path: Path, kind: str, scale: str, compare: str
) -> None:
    assert _read_without_the_field(tmp_path, kind, scale) == compare


def _read_without_the_field(tmp_path: Path, kind: str, scale: str) -> str:
    channel = Channel(name="a:b", kind=kind, dims=("compare",), shape=(2,), scale=scale, labels={"compare": ("x", "y")})
    path = write_frames(tmp_path, (channel, np.zeros(2, np.float32)))
    index = sqlite3.connect(as_format_1(path) / INDEX)
    ((text,),) = index.execute("SELECT record FROM channels").fetchall()
    record = json.loads(text)
    del record["compare"]
    with index:
        index.execute("UPDATE channels SET record = ?", (json.dumps(record),))
    index.close()
    with open_capture(path) as capture:
        return capture.channels["a:b"].compare


def test_every_quantity_of_such_a_kind_says_that_it_stands_apart() -> None:
    found = 0
    for path in Path(inspector.engine.quantities.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Describe":
                said = {one.arg: one.value.value for one in node.keywords if isinstance(one.value, ast.Constant)}
                if said.get("kind") in SEPARATE:
                    found += 1
                    assert said.get("compare") == "separate", f"{path.name}:{node.lineno}"
    assert found > 20


@pytest.mark.parametrize(
    ("compare", "said", "title", "file"),
    [
        ("ratio", "ratio_frame_1_by_frame_0", "ratio", "-ratio-of-frames-1-and-0"),
        ("difference", "difference_frame_1_minus_frame_0", "difference", "-difference-of-frames-1-and-0"),
        ("separate", "frame_1", "value", "-frame-1"),
    ],
)
def test_saved_numbers_say_what_two_runs_made(tmp_path: Path, compare: str, said: str, title: str, file: str) -> None:
    after = BEFORE * RATIO
    wanted = {"ratio": RATIO, "difference": after - BEFORE, "separate": after}[compare]
    with shown(tmp_path, "jacobians", *pair(replace(NORM, compare=compare), BEFORE, after), difference=True) as (
        _,
        panel,
    ):
        rows = save_data(panel, tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()
        assert rows[0] == f"channel,step,{title}" and for_file(panel) == file
        cells = [row.split(",") for row in rows[1:]]
        assert [cell[:2] for cell in cells] == [[f"{NORM.name}:{said}", str(n)] for n in range(STEPS)]
        np.testing.assert_allclose([float(cell[2]) for cell in cells], wanted, rtol=1e-6)
        words = {
            "ratio": "frame 1 (edited) / frame 0 (as it is)",
            "difference": "frame 1 (edited) − frame 0 (as it is)",
        }
        assert compared_runs(panel).endswith(words.get(compare, "frame 1 (edited)"))


@pytest.mark.parametrize("key", ["jacobians", "depth"])
def test_what_differs_by_rounding_alone_looks_like_1(tmp_path: Path, key: str) -> None:
    depth = Channel(name="layers:parameter/gradient", kind="depth", dims=("statistic", "module"), shape=(1, STEPS),
                    dtype="float64", scale="log", compare="ratio",
                    labels={"statistic": ("root mean square",), "module": tuple("abcdef")})  # fmt: skip
    rounding = 1 + 1e-9 * np.arange(STEPS)
    about, before = (NORM, BEFORE) if key == "jacobians" else (depth, BEFORE[None])
    with shown(tmp_path, key, *pair(about, before, before * rounding), difference=True) as (_, panel):
        plot = panel.curves.plot if key == "jacobians" else panel.parameters
        low, high = limits(plot)
        assert low == -high and 1.01 < 10**high < 1.05
        axis = plot.getAxis("left")
        ((spacing, values),) = axis.tickValues(low, high, 200)
        texts = axis.tickStrings(values, 1.0, spacing)
        assert "1" in texts and len(set(texts)) == len(texts) > 2
