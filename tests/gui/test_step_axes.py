"""Any number of step axes on screen: a strip, a cursor, a range, a word and labels for each, and none of another's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened
from panel_captures import channel, write_frames
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.capture import Capture, Writer, open_capture
from inspector.gui.dialogs.edit_dialog import EditDialog
from inspector.gui.export.offscreen import Stage
from inspector.gui.state.cursor import Cursor, Looking, Position
from inspector.gui.state.player import Player
from inspector.gui.state.settings import Settings
from inspector.gui.state.shown import Made
from inspector.gui.state.step_axes import axis_names, axis_of, lengths_of, places_along
from inspector.gui.widgets.grid_strip import GridStrip
from inspector.gui.widgets.theme import DARK, LIGHT
from inspector.gui.widgets.token_strip import TokenStrip
from inspector.gui.window.bars.sequence_row import SequenceRow
from inspector.gui.window.bars.sequence_rows import SequenceRows
from inspector.gui.window.cursor_readout import rows_of as rows_of_readout
from inspector.records import ANSWER_DOMAIN, Axis, Channel, Frame, Labels, Page, Run, RunStart, RunStop

LENGTHS = {"other lengths": (7, 4, 5), "equal lengths": (6, 6, 6)}
NAMES = {"step": "abcdefg", ANSWER_DOMAIN: "uvwxyz", "sound": ()}
PLACES = {"encoder.l0": "step", "decoder.l0": ANSWER_DOMAIN, "listener.l0": "sound"}
WORDS = {"step": "input", ANSWER_DOMAIN: "answer", "sound": "sound"}
TITLES = {"step": "step", ANSWER_DOMAIN: "answer step", "sound": "sound step"}


def write(path: Path, axes: list[Axis], states: dict[str, str], names: dict[str, Any]) -> Path:
    """One state of 3 units at each place, over the axis that is said; value = 100 · axis + 10 · step + unit."""
    lengths = {axis.name: axis.length or 0 for axis in axes}
    with Writer(path, RunStart(run="r", title="axes")) as writer:
        writer.write(Frame(index=0))
        for axis in axes:
            writer.write(axis)
            if names.get(axis.name):
                writer.write(Labels(axis.name, tuple(names[axis.name][: axis.length]), 0))
        for number, (place, axis_name) in enumerate(states.items()):
            shape = (lengths[axis_name], 3)
            values = 100 * number + np.add.outer(10 * np.arange(shape[0]), np.arange(3))
            for signal, kind, dims in (
                ("h", "state", ("step", "unit")),
                ("gradient/state_norm", "gradient", ("step",)),
            ):
                about = Channel(
                    name=f"{place}:{signal}", kind=kind, dims=dims, shape=shape[: len(dims)], title=signal,
                    domains={"step": axis_name},
                )  # fmt: skip
                writer.write(about)
                cells = values if len(dims) == 2 else values[:, 0]
                writer.write(Page(about.name, 0, (0,) * len(dims), cells.astype(np.float32)))
        writer.write(RunStop("done"))
    return path


@pytest.fixture(params=sorted(LENGTHS))
def stage(request: pytest.FixtureRequest, tmp_path: Path, qapp: object) -> Iterator[Stage]:
    axes = [
        Axis(name=name, title=TITLES[name], length=length)
        for name, length in zip(NAMES, LENGTHS[request.param], strict=True)
    ]
    with open_capture(write(tmp_path / "a.inspect", axes, PLACES, NAMES)) as capture:
        made = Stage(capture, (800, 500))
        yield made
        made.close()


def labels(capture: Capture) -> dict[str, tuple[str, ...]]:
    return {axis: capture.labels(axis) for axis in NAMES}


def test_every_axis_has_a_length_and_a_word(stage: Stage) -> None:
    lengths = lengths_of(stage.capture)
    assert list(lengths) == list(NAMES) and axis_names(stage.capture) == WORDS
    assert lengths == {name: stage.capture.axis(name).length for name in NAMES}


@pytest.mark.parametrize("key", ["states", "gradients"])
def test_a_panel_shows_one_axis_with_its_word_labels_range_and_cursor(stage: Stage, key: str) -> None:
    panel, lengths = stage.panel(key), lengths_of(stage.capture)
    at = {"step": 1, ANSWER_DOMAIN: 2, "sound": 3}
    stage.cursor.move(steps=at, unit=1)
    for number, (place, axis) in enumerate(PLACES.items()):
        stage.cursor.move(place=place)
        assert {one.place for one in panel.channels()} == {place} and panel.looking.axis == axis
        assert [panel.whose.itemText(i) for i in range(3)] == ["input", "answer", "sound"]
        assert panel.whose.currentText() == WORDS[axis] and not panel.whose.isHidden()
        plot = panel.plots[0]
        assert plot.step_axis.labelText == TITLES[axis] and plot.step_axis.names == labels(stage.capture)[axis]
        assert panel.steps.length == lengths[axis] and plot.vb.viewRange()[0] == [-0.5, lengths[axis] - 0.5]
        assert plot._line.value() == at[axis]
        prefix = "" if axis == "step" else f"{WORDS[axis]}: "
        rows = [(what, value) for what, value in panel.labelled_readout() if "[" in what]
        expected = 100 * number + 10 * at[axis] + (key == "states")
        assert rows and all(what.startswith(prefix) and f"[{at[axis]}" in what for what, _ in rows)
        assert [float(value.split()[0]) for _, value in rows] == [expected] * len(rows)
        saved = panel.data()
        assert saved and all(name.startswith(f"{place}:") for name in saved)
        for name, values in saved.items():
            np.testing.assert_array_equal(values, stage.capture.array(name))


def test_the_mouse_and_the_range_of_an_axis_leave_the_others_alone(stage: Stage) -> None:
    panel = stage.panel("gradients", place="listener.l0")
    stage.cursor.move(steps={"step": 4, ANSWER_DOMAIN: 0})
    panel.pointed(panel.plots[0], 2.2, 0.0)
    assert stage.cursor.position.steps == {"step": 4, ANSWER_DOMAIN: 0, "sound": 2}
    panel.steps.set(1.0, 3.0)
    assert stage.steps.along("sound").bounds == (1.0, 3.0) == tuple(panel.plots[0].vb.viewRange()[0])
    whole = {axis: (-0.5, length - 0.5) for axis, length in lengths_of(stage.capture).items() if axis != "sound"}
    assert {axis: stage.steps.along(axis).bounds for axis in whole} == whole


def test_what_has_steps_is_shown_with_them_and_what_has_none_with_its_place(tmp_path: Path, qapp: object) -> None:
    values, steps = np.zeros((4, 3), np.float32), ("step", "unit")
    parts = (
        channel("joint:h", "state", steps, values, domains={"step": "sound"}),
        channel("joint:c", "state", steps, values), channel("joint:h/units", "unit", ("statistic", "unit"), values),
        channel("head.weight:norm", "spectrum", ("rank",), values[0]),
    )  # fmt: skip
    with open_capture(write_frames(tmp_path, *parts)) as capture:
        places = places_along(capture)
        assert {name: axis_of(one, places) for name, one in capture.channels.items()} == {
            "joint:h": "sound", "joint:c": "step", "joint:h/units": "sound", "head.weight:norm": "step"
        }  # fmt: skip


def test_numbers_of_heads_are_shown_with_their_map(tmp_path: Path, qapp: object) -> None:
    """Also where the module that attends has a recurrence along another axis."""
    maps, heads = np.zeros((2, 3, 3), np.float32), np.zeros((2, 2), np.float32)
    parts = (
        channel("joint:attention", "attention", ("head", "query", "key"), maps, domains={"query": "step"}),
        channel("joint:attention/importance", "attention_statistic", ("head", "statistic"), heads),
        channel("joint:h", "state", ("step", "unit"), heads, domains={"step": "sound"}),
        channel("joint:h/units", "unit", ("statistic", "unit"), heads),
    )  # fmt: skip
    with open_capture(write_frames(tmp_path, *parts)) as capture:
        places = places_along(capture)
        assert [axis_of(one, places) for one in capture.channels.values()] == ["step", "step", "sound", "sound"]


def test_choices_that_were_remembered_before_are_still_known(qtbot: Any) -> None:
    rows = [SequenceRow(Cursor(), LIGHT, Settings(), axis) for axis in ("step", ANSWER_DOMAIN, "sound", "layer")]
    for row in rows:
        qtbot.addWidget(row)
    assert [row.setting for row in rows] == ["colour", "colour of the answer", "colour of sound", "colour of layer"]


def test_the_chooser_turns_to_any_axis(stage: Stage) -> None:
    panel = stage.panel("states")
    for index, axis in enumerate(NAMES):
        panel.whose.setCurrentIndex(index)
        panel.whose.activated.emit(index)
        assert panel.looking.axis == axis and {PLACES[one.place] for one in panel.channels()} == {axis}


def rows_of(capture: Capture, cursor: Cursor) -> SequenceRows:
    lengths = lengths_of(capture)
    cursor.set_lengths(lengths)
    rows = SequenceRows(cursor, LIGHT, Settings())
    rows.resize(600, 200)
    rows.grown(capture, lengths, frozenset(capture.channels))
    return rows


def test_every_axis_has_a_strip_of_its_own(stage: Stage, qtbot: Any) -> None:
    cursor = Cursor()
    rows = rows_of(stage.capture, cursor)
    qtbot.addWidget(rows)
    assert list(rows.rows) == list(NAMES) == [rows.column.itemAt(i).widget().axis for i in range(3)]
    for row, (axis, word) in zip(rows, WORDS.items(), strict=True):
        assert row.name.text() == word.capitalize() and not row.isHidden() and not row.name.isHidden()
        assert row.strip._names == labels(stage.capture)[axis] and row.strip._steps == lengths_of(stage.capture)[axis]
        assert row.strip.named(1).startswith(f"{TITLES[axis]} 1") and row.strip.editable is (axis == "step")
        offered = [row.colour_by.itemText(i) for i in range(row.colour_by.count())]
        places = {name.removeprefix("unit of ").partition(":")[0] for name in offered} - {"no colour"}
        assert {PLACES[place] for place in places} == {axis}
    rows.rows["sound"].looking.move(step=3)
    rows.rows[ANSWER_DOMAIN].looking.move(step=99)
    assert cursor.position.steps == {ANSWER_DOMAIN: lengths_of(stage.capture)[ANSWER_DOMAIN] - 1, "sound": 3}


def test_rows_of_another_capture_go(stage: Stage, a_capture: Path, qtbot: Any) -> None:
    cursor = Cursor()
    rows = rows_of(stage.capture, cursor)
    qtbot.addWidget(rows)
    with open_capture(a_capture) as other:
        cursor.set_lengths(lengths_of(other))
        rows.grown(other, lengths_of(other), frozenset())
        assert list(rows) == [rows.input] and rows.input.name.isHidden() and cursor.position.elsewhere == {}
    rows.grown(stage.capture, lengths_of(stage.capture), frozenset())
    assert list(rows.rows) == list(NAMES)


# -- layouts


def laid_out(path: Path, axis: Axis, names: tuple[str, ...] = ()) -> Path:
    return write(path, [Axis(name="step", length=2), axis], {"in": "step", "over": axis.name}, {axis.name: names})


def test_patches_are_drawn_in_rows_and_columns(tmp_path: Path, qtbot: Any) -> None:
    cursor = Cursor()
    path = laid_out(tmp_path / "a.inspect", Axis(name="image patch", layout="grid", grid=(3, 5)))
    with open_capture(path) as capture:
        rows = rows_of(capture, cursor)
        qtbot.addWidget(rows)
        row, strip = rows.rows["image patch"], rows.rows["image patch"].strip
        assert isinstance(strip, GridStrip) and (strip.rows, strip.columns) == (3, 5)
        assert not isinstance(rows.input.strip, GridStrip)
        strip.resize(400, strip.sizeHint().height())
        for step in range(15):
            assert strip.at(strip.box(step).center()) == step
        boxes = [strip.box(step) for step in (0, 4, 5, 14)]
        assert boxes[0].y() == boxes[1].y() < boxes[2].y() < boxes[3].y() and boxes[0].x() == boxes[2].x()
        assert boxes[1].x() == boxes[3].x() > boxes[0].x()
        assert strip.at(QPoint(boxes[1].right() + 3, boxes[1].center().y())) is None
        QTest.mouseClick(strip, Qt.MouseButton.LeftButton, pos=strip.box(7).center())
        assert cursor.position.at("image patch") == 7 and strip.named(7) == "image patch 7 (row 1, column 2)"
        for key, step in ((Qt.Key.Key_Down, 12), (Qt.Key.Key_Down, 12), (Qt.Key.Key_Up, 7)):
            QTest.keyClick(strip, key)
            assert cursor.position.at("image patch") == step
        assert rows_of_readout(capture, {}, (), rows)[-1] == ("image patch", "7  row 1, column 2")
        assert row.strip.focusPolicy() == Qt.FocusPolicy.StrongFocus


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_frame_stands_around_the_cell_of_the_cursor(tmp_path: Path, qtbot: Any, theme: Any) -> None:
    strip = GridStrip(Looking(Cursor(), "p"), theme, 4)
    qtbot.addWidget(strip)
    strip.set_sequence((), 12)
    strip.resize(300, strip.sizeHint().height())
    strip.cursor_.move(step=6)
    picture = strip.grab().toImage()
    framed = [
        step for step in range(12) if picture.pixelColor(strip.box(step).topLeft()).name() == theme.cursor
    ]  # fmt: skip
    assert framed == [6]


def test_hypotheses_are_rows_and_a_long_list_is_scrolled(tmp_path: Path, qtbot: Any) -> None:
    names = tuple(f"{'so it goes ' * (i + 1)}{i}" for i in range(40))
    cursor = Cursor()
    with open_capture(
        laid_out(tmp_path / "a.inspect", Axis(name="beam", layout="hypotheses", length=40), names)
    ) as capture:
        rows = rows_of(capture, cursor)
        qtbot.addWidget(rows)
        strip = rows.rows["beam"].strip
        assert isinstance(strip, GridStrip) and strip.texts
        strip.resize(400, strip.sizeHint().height())
        assert strip.name_of(3).strip() == names[3] and strip.name_of(39).endswith("…")
        assert strip.height() < 40 * strip.cell()[1] and strip.box(0).width() > 300
        cursor.move(steps={"beam": 30})
        assert strip.rect().contains(strip.box(30)) and strip.at(strip.box(30).center()) == 30


def test_layers_are_named_and_wear_no_token_of_the_input(tmp_path: Path, qapp: object) -> None:
    layers = tuple(f"layers.{i}" for i in range(4))
    axes = [Axis(name="step", length=4), Axis(name="layer", length=4, layout="layers")]
    path = write(tmp_path / "a.inspect", axes, {"layers": "layer", "rnn": "step"}, {"step": "abcd", "layer": layers})
    with open_capture(path) as capture:
        stage = Stage(capture, (800, 500))
        panel = stage.panel("states", place="layers")
        assert panel.plots[0].step_axis.names == layers and panel.plots[0].step_axis.labelText == "layer"
        stage.cursor.move(step=3)
        assert panel.looking.position.step is None and not panel.plots[0]._line.isVisible()
        stage.cursor.move(steps={"layer": 1}, unit=0)
        assert [what for what, _ in panel.labelled_readout()] == ["layer: h[1, 0]  layers"]
        stage.close()


def test_a_grid_that_becomes_a_line_is_drawn_as_one(qtbot: Any) -> None:
    row = SequenceRow(Cursor(), LIGHT, Settings(), "image patch")
    qtbot.addWidget(row)
    heard: list[bool] = []
    row.editing.connect(lambda: heard.append(True))
    row.describe(Axis(name="image patch", layout="grid", grid=(2, 2)))
    assert isinstance(row.strip, GridStrip)
    row.describe(Axis(name="image patch", length=4))
    assert type(row.strip) is TokenStrip and row.row.indexOf(row.strip) == 1 and row.row.count() == 4
    row.strip.editing.emit()
    assert heard == [True]


# -- cursor, keys and player


def test_a_position_is_seen_along_any_axis() -> None:
    here = Position(step=3, unit=1).moved("sound", 5)
    there = here.along("sound")
    assert (there.step, there.at("step"), there.unit, there.axis) == (5, 3, 1, "sound")
    assert there.along("step") == here and dict(here.steps) == {"step": 3, "sound": 5}
    assert here.moved("sound", None) == Position(step=3, unit=1) and here.along("beam").step is None
    with pytest.raises(TypeError):
        here.elsewhere["sound"] = 1  # type: ignore[index]


def test_a_step_of_a_third_axis_comes_back_when_it_is_long_enough_again() -> None:
    cursor = Cursor()
    cursor.set_lengths({"step": 9, "sound": 9})
    cursor.move(steps={"sound": 7, "step": 1})
    cursor.set_lengths({"step": 9, "sound": 2})
    assert cursor.position.steps == {"step": 1, "sound": 1}
    cursor.set_lengths({"step": 9, "sound": 8})
    assert cursor.position.steps == {"step": 1, "sound": 7}
    cursor.set_length(3)
    assert cursor.length_of("sound") == 8 and cursor.length == 3


def test_the_axis_in_focus_is_walked_and_one_that_is_not_there_is_not() -> None:
    cursor = Cursor()
    cursor.set_lengths({"step": 0, ANSWER_DOMAIN: 3, "sound": 5})
    assert cursor.focused == ANSWER_DOMAIN
    Looking(cursor, "sound").focus()
    assert cursor.focused == "sound"
    cursor.set_lengths({"step": 4})
    assert cursor.focused == "step"


def test_the_player_walks_the_axis_that_was_in_focus(qtbot: Any) -> None:
    cursor = Cursor()
    cursor.set_lengths({"step": 5, "sound": 3})
    cursor.move(steps={"step": 1, "sound": 2})
    cursor.focus("sound")
    player = Player(cursor, cursor)
    player._timer.setInterval(1)
    player.toggle()
    assert cursor.position.at("sound") == 0, "at the end it begins anew"
    cursor.focus("step")
    qtbot.waitUntil(lambda: not player._timer.isActive())
    assert cursor.position.steps == {"step": 1, "sound": 2}


def test_keys_in_the_window_move_the_axis_of_what_has_the_keyboard(
    stage: Stage, qtbot: Any, qapp: QApplication
) -> None:
    with opened(qtbot, background=False) as window:
        window.open_capture(str(stage.capture.path))
        window.activateWindow()
        rows = window.sequences.rows
        assert [row.isVisible() for row in rows.values()] == [True] * 3
        for axis, row in reversed(rows.items()):
            row.strip.setFocus()
            qtbot.waitUntil(row.strip.hasFocus)
            QTest.keyClick(row.strip, Qt.Key.Key_Right)
            QTest.keyClick(row.strip, Qt.Key.Key_Right)
            assert window.looking.position.at(axis) == 2
        assert dict(window.looking.position.steps) == dict.fromkeys(NAMES, 2)
        panel = window.panels["states"]
        window.looking.move(place="listener.l0")
        window.docks["states"].raise_()
        panel.setFocus()
        qtbot.waitUntil(panel.hasFocus)
        QTest.keyClick(panel, Qt.Key.Key_Left)
        assert dict(window.looking.position.steps) == {"step": 2, ANSWER_DOMAIN: 2, "sound": 1}
        window._read_out()
        shown = [(window.readout.item(i, 0).text(), window.readout.item(i, 1).text()) for i in range(3)]
        assert shown == [("step", "2  'c'"), ("answer step", "2  'w'"), ("sound step", "1")]
        window.steps.along("sound").set(0.0, 2.0)
        window.show_all_steps()
        assert window.steps.along("sound").bounds == (-0.5, lengths_of(stage.capture)["sound"] - 0.5)


@pytest.mark.parametrize(("name", "at"), [("decoder.l0:h", "start 2"), ("listener.l0:h", "start 3"), ("", "start 1")])
def test_the_dialog_of_an_edit_begins_at_the_step_of_the_axis_of_what_is_edited(
    stage: Stage, qtbot: Any, monkeypatch: pytest.MonkeyPatch, name: str, at: str
) -> None:
    """Asked by a panel for a channel, it is that channel's axis; asked by a key, that of the place under the cursor."""
    begun: list[str] = []
    monkeypatch.setattr(EditDialog, "exec", lambda dialog: begun.append(f"start {dialog.start.value()}") or 0)
    made = Made(Run(path="x"), "translator")
    with opened(qtbot, background=False) as window:
        window.open_capture(str(stage.capture.path))
        monkeypatch.setattr(type(window.session), "again_possible", property(lambda _session: made))
        window.looking.move(place="encoder.l0", steps={"step": 1, ANSWER_DOMAIN: 2, "sound": 3})
        window.edit(name)
    assert begun == [at]
