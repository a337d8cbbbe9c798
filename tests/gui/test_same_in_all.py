"""What is the same in every panel: wheel, drag and double click, legends, the menu, colours, words, and a rerun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
import pytest
from mouse import LEFT, SHIFT, double_click, drag, point, wheel
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from inspector.capture import Writer, open_capture
from inspector.cli.view_options import colours_in
from inspector.gui.export.figure_files import picture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.colours import Colours, colours_of
from inspector.gui.panel.explained import in_full, named_in
from inspector.gui.panel.missing import GOES_ON
from inspector.gui.panel.plot_menu import PlotMenu, plain_number
from inspector.gui.panel.registry import ordered
from inspector.gui.state.pins import pins_of
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.images.colour_choice import FULL, OWN, ROBUST, ColourChoice, why_no_range
from inspector.gui.widgets.images.quantise import Levels, levels_of
from inspector.gui.widgets.plots.legend import legends_in
from inspector.gui.widgets.plots.view import View, views_in
from inspector.gui.widgets.theme import BEYOND, BEYOND_COLOUR
from inspector.records import Channel, Frame, Labels, Page, Place, RunStart, RunStop, ViewAt

CONTROL, ALT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier
PARTS = [("copy", "Copy picture"), ("save", "Save picture…"), ("numbers", "Save numbers…")]


@pytest.fixture
def stage(a_capture: Path) -> Iterator[Stage]:
    with open_capture(a_capture) as capture:
        made = Stage(capture, (900, 500))
        yield made
        made.close()


def spans(view: View) -> tuple[float, float]:
    (left, right), (low, high) = view.viewRange()
    return right - left, high - low


def actions(menu: QMenu) -> dict[str, Any]:
    return {action.text().replace("&", "").partition("\t")[0]: action for action in menu.actions() if action.text()}


def test_every_panel_has_the_same_view_menu_and_words(stage: Stage) -> None:
    """Each plot is one of ours, is told, and zooms with the wheel; the menu has the same entries everywhere."""
    for key, _ in ordered():
        panel = stage.panel(key)
        if panel.state != "figure":
            continue
        stage.cursor.move(step=117, unit=5, place="rnn.l0")
        menu = actions(PlotMenu(panel))
        assert {"Copy picture", "Save picture…", "Save numbers…", "Pin here", "Reset view", "What is this?"} <= set(
            menu
        )
        assert panel.hint.partition(". ")[0].rstrip(".") in panel.explained(), key
        for item in (one for one in panel.scene.items() if isinstance(one, pg.PlotItem)):
            assert isinstance(item.vb, View) and not item.menuEnabled(), (key, item)
        views = [
            one for one in views_in(panel.figure.scene()) if one.isVisible() and min(one.width(), one.height()) > 8
        ]
        for view in views[:1]:
            stage.steps.show_whole()
            before = spans(view)
            wheel(panel, point(panel, view))
            after = spans(view)  # a panel may fit the other axis to what is in view
            assert after[0] < before[0] and (not view.both or after[1] < before[1]), key
            assert view.both or not view.held[1], key
            panel.redraw()
            assert spans(view)[0] < before[0], f"{key}: what was zoomed is kept when the panel draws again"
            panel.reset_view()
            np.testing.assert_allclose(spans(view), before, rtol=1e-6, err_msg=key)


def test_wheel_drag_box_and_double_click(stage: Stage) -> None:
    panel = stage.panel("lags")
    view = panel.plot.vb
    (left, right), (low, high) = view.viewRange()
    wheel(panel, point(panel, view, 0.25))
    (l1, r1), y1 = view.viewRange()
    fixed = left + 0.25 * (right - left)
    assert l1 + 0.25 * (r1 - l1) == pytest.approx(fixed, abs=0.02 * (right - left)) and y1 == [low, high]
    wheel(panel, point(panel, view), SHIFT)
    assert spans(view)[1] < high - low and spans(view)[0] == pytest.approx(r1 - l1)
    drag(panel, point(panel, view, 0.5), point(panel, view, 0.3))
    assert view.viewRange()[0][0] > l1, "what is dragged to the left shows what was at the right"
    double_click(panel, point(panel, view, 0.6, 0.6))
    assert view.viewRange() == [[left, right], [low, high]] and view.held == [False, False]
    drag(panel, point(panel, view, 0.2, 0.2), point(panel, view, 0.6, 0.6), SHIFT)
    (l2, r2), (b2, t2) = view.viewRange()
    width, height = right - left, high - low
    assert (l2, r2) == pytest.approx((left + 0.2 * width, left + 0.6 * width), abs=0.02 * width)
    assert (b2, t2) == pytest.approx((high - 0.6 * height, high - 0.2 * height), abs=0.03 * height)
    assert not pins_of(stage.cursor).all, "a drag is no click: nothing was pinned"
    QTest.keyClick(panel, Qt.Key.Key_0, CONTROL)
    assert view.viewRange() == [[left, right], [low, high]]


def test_a_zoom_that_would_show_nothing_of_new_numbers_is_given_up(qtbot: Any) -> None:
    widget = pg.GraphicsLayoutWidget()
    qtbot.addWidget(widget)
    plot = pg.PlotItem(viewBox=View(), enableMenu=False)
    widget.addItem(plot)
    view = plot.vb
    view.setYRange(0, 10, padding=0)
    with view.moved_by_user((False, True)):
        view.setYRange(2, 3, padding=0)
    view.setYRange(1, 8, padding=0)
    assert view.viewRange()[1] == [2, 3]
    view.reset()
    assert view.viewRange()[1] == [1, 8]
    with view.moved_by_user((False, True)):
        view.setYRange(2, 3, padding=0)
    view.setYRange(100, 200, padding=0)
    assert view.viewRange()[1] == [100, 200]


def test_legends_switch_curves_by_mouse_and_keys_and_remember_it(stage: Stage) -> None:
    panel = stage.panel("jacobians")
    stage.panel("jacobians")
    legend = legends_in(panel.figure.scene())[0]
    legend.clear()
    lines = [pg.PlotDataItem([0, 1], [n, n]) for n in range(3)]
    for n, line in enumerate(lines):
        panel.plots[0].addItem(line)
        legend.addItem(line, f"curve {n} (3 NaN)")
    at = panel.figure.mapFromScene(legend.mapToScene(legend._places[1] + QPointF(25, 8)))
    port = panel.figure.viewport()
    QTest.mouseClick(port, LEFT, pos=at)
    assert [line.opacity() for line in lines] == [1, 0, 1] and all(line.isVisible() for line in lines)
    assert not stage.cursor.fixed, "a click on a name is none on the plot"
    legend.clear()
    assert [line.opacity() for line in lines] == [1, 1, 1]
    for n, line in enumerate(lines):
        legend.addItem(line, f"curve {n} (4 NaN)")
    assert [line.opacity() for line in lines] == [1, 0, 1], "the same curve, of which other things are told"
    QTest.mouseClick(port, LEFT, ALT, pos=panel.figure.mapFromScene(legend.mapToScene(QPointF(25, 8))))
    assert [line.opacity() for line in lines] == [1, 0, 0]
    QTest.keyClick(panel, Qt.Key.Key_1, ALT)
    assert [line.opacity() for line in lines] == [1, 1, 1]
    QTest.keyClick(panel, Qt.Key.Key_3)
    assert [line.opacity() for line in lines] == [1, 1, 0]
    assert "curve 2 (4 NaN): hidden" in panel.figure.about_in_words()
    curves = next(menu for menu in PlotMenu(panel).findChildren(QMenu) if menu.title().startswith("Curves"))
    assert [actions(curves)[f"curve {n} (4 NaN)"].isChecked() for n in range(3)] == [True, True, False]
    actions(curves)["All"].trigger()
    assert [line.opacity() for line in lines] == [1, 1, 1]


def test_the_menu_copies_pins_edits_and_explains(stage: Stage, qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, *_: shown.append(menu))
    panel = stage.panel("states")
    at = point(panel, panel.row.plot.vb, 0.4, 0.3)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, panel.figure.mapToGlobal(at))
    QApplication.sendEvent(panel.figure.viewport(), event)
    position = stage.cursor.position
    menu = actions(shown[0])
    value = stage.capture.array("rnn.l0:h")[position.step, position.unit]
    menu[f"Copy {dict(panel.labelled_readout())[f'h[{position.step}, {position.unit}]  rnn.l0']}"].trigger()
    assert np.float32(QGuiApplication.clipboard().text()) == pytest.approx(value, rel=1e-6)
    menu["Pin here"].trigger()
    assert pins_of(stage.cursor).all[0].position.unit == position.unit
    with qtbot.waitSignal(panel.editing, timeout=1000) as told:
        menu["Edit this unit of the hidden state from here…"].trigger()
    assert told.args == ["rnn.l0:h"]
    for what, text in PARTS:
        with qtbot.waitSignal(panel.picturing, timeout=1000) as told:
            menu[text].trigger()
        assert told.args == [what]
    with qtbot.waitSignal(panel.explaining, timeout=1000) as told:
        menu["What is this?"].trigger()
    assert "Formula: h" in told.args[1] and "Channel: rnn.l0:h" in told.args[1]
    QTest.keyClick(panel, Qt.Key.Key_F10, SHIFT)
    assert "Edit this unit of the hidden state from here…" in actions(shown[1])
    for menu_ in shown:
        menu_.close()


@pytest.mark.parametrize(
    ("text", "number"),
    [("−1.5 nat", "-1.5"), ("12,000", "12000"), ("NaN", "nan"), ("0.25, on", "0.25"), ("off", "off")],
)
def test_a_number_is_copied_as_programs_read_it(text: str, number: str) -> None:
    assert plain_number(text) == number


def test_what_is_told_is_what_the_quantity_says() -> None:
    def of(title: str, formula: str) -> Channel:
        return Channel(name=f"m:{title.replace(' ', '_')}", kind="loss", dims=("step",), shape=(1,), title=title,
                       formula=formula, unit="nat", source="A book")  # fmt: skip

    loss, by_step = of("loss", "L"), of("loss by step", "L_t")
    assert named_in("Loss by step, rnn; lossless", [loss, by_step]) == [by_step]
    assert named_in("loss by step and loss", [loss, by_step]) == [by_step, loss]
    for part in ("Formula: L_t", "Unit: nat", "Source: A book", "Axes: step"):
        assert part in in_full(by_step)


# -- colours


def test_ranges_are_those_of_all_numbers_and_of_all_but_one_percent() -> None:
    values = np.random.default_rng(3).normal(size=200_000)
    values[17], values[23] = 40.0, -90.0
    values[5], values[6] = np.nan, np.inf
    known = values[np.isfinite(values)]
    levels = levels_of(values, "sequential", None)
    assert levels.full == (known.min(), known.max()), "no sample: the extremes of all"
    assert levels.robust == pytest.approx(tuple(np.percentile(known, [0.5, 99.5])), rel=0.05)
    assert levels_of(values, "diverging", None).full == (-90.0, 90.0)
    assert levels_of(np.abs(values), "sequential", (0.0, 1.0)).full == (np.abs(known).min(), 90.0)
    assert levels_of(np.array([1e-3, 10.0]), "log", None).full == pytest.approx((-3.0, 1.0))


def test_a_choice_changes_range_map_and_marks() -> None:
    levels = Levels(0.0, 1.0, robust=(0.1, 0.9), full=(-2.0, 3.0))
    assert (ColourChoice(span=FULL).of(levels).low, ColourChoice(span=ROBUST).of(levels).high) == (-2.0, 0.9)
    own = ColourChoice(span=OWN, low=0.25, high=0.75, marked=True).of(levels)
    values = np.array([0.2, 0.25, 0.5, 0.75, 0.8, np.nan, np.inf])
    assert list(own.index(values)) == [BEYOND, 0, 126, 251, BEYOND, 255, 254]
    assert own.table[BEYOND] == BEYOND_COLOUR and own.beyond == (True, True)
    plain = ColourChoice(span=OWN, low=0.25, high=0.75).of(levels)
    assert list(plain.index(values))[:5] == [0, 0, 126, 252, 252]
    log = Levels(-3.0, 0.0, "log", log=True)
    assert ColourChoice(span=OWN, low=0.01, high=10.0).of(log).low == pytest.approx(-2.0)
    assert ColourChoice(span=OWN, low=-1.0, high=10.0).of(log).low == -3.0, "no logarithm: as it was"
    assert "below" not in why_no_range(0.0, 1.0, log=False) and why_no_range(0.0, 1.0, log=True)
    assert why_no_range(1.0, 1.0, log=False) and why_no_range(float("nan"), 1.0, log=False)


def test_colours_are_shared_by_panels_of_a_kind_drawn_exported_and_kept(stage: Stage) -> None:
    one, other, gates = stage.panel("states"), stage.panel("states"), stage.panel("gates")
    before = [picture(panel, 1.0) for panel in (one, other, gates)]
    store = colours_of(stage.cursor)
    store.choose("states", "diverging", ColourChoice(colours="CET-D2", span=OWN, low=-0.1, high=0.1, marked=True))
    after = [picture(panel, 1.0) for panel in (one, other, gates)]
    assert [now == then for now, then in zip(after, before, strict=True)] == [False, False, True]
    for panel in (one, other):
        assert (panel.row.map.levels.low, panel.row.bar.levels.high) == (-0.1, 0.1)
    text = store.text
    read = Colours()
    read.take_text(text)
    assert read.as_data() == store.as_data() and read.text == text
    assert ViewAt(colours=text).words == [f"--map-colours={text}"] and colours_in(text) == text
    again = Stage(stage.capture, (900, 500))
    drawn = again.panel("states", at=ViewAt(colours=text))
    assert drawn.row.map.levels == one.row.map.levels, "a figure that is exported has the same colours"
    again.close()
    store.choose("states", "diverging", ColourChoice())
    assert store.text == "" and [picture(panel, 1.0) for panel in (one, other)] == before[:2]


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"states": 3}', '{"states": {"diverging": {"range": [1, 0]}}}',
             '{"states": {"diverging": {"colours": "viridis", "range": ["a", 2], "marked": 1}}}']
)  # fmt: skip
def test_colours_that_cannot_be_read_are_as_usual(text: str) -> None:
    store = Colours()
    store.take_text(text)
    assert store.text == ""


def test_a_map_over_steps_and_steps_is_a_square_with_a_switch(stage: Stage) -> None:
    panel = stage.panel("bptt")
    for size in ((900, 500), (700, 420), (1000, 300)):
        panel.resize(*size)
        QApplication.processEvents()
        view = panel.row.plot.vb
        assert view.width() == pytest.approx(view.height(), rel=0.05), size
        assert panel.figure.sceneRect().contains(panel.plot.sceneBoundingRect())
    actions(PlotMenu(panel))["Equal sides"].trigger()
    QApplication.processEvents()
    assert view.width() != pytest.approx(view.height(), rel=0.1)
    assert "equal sides" in colours_of(stage.cursor).text
    assert "Equal sides" not in actions(PlotMenu(stage.panel("states")))


# -- another run of the same model


def test_the_part_in_view_comes_back_as_soon_as_a_rerun_has_the_steps() -> None:
    steps = StepRange()
    steps.set_lengths({"step": 300})
    steps.set(100, 150)
    steps.keep()
    steps.set_lengths({})
    for length, seen in ((64, (-0.5, 74.5)), (140, (-0.5, 179.5)), (200, (100, 150)), (300, (100, 150))):
        steps.set_lengths({"step": length}, growing=True)
        assert steps.bounds == seen or length < 150, length
    assert steps.bounds == (100, 150)
    steps.show_whole()
    steps.keep()
    steps.set_lengths({"step": 280})
    assert steps.bounds == (-0.5, 279.5)
    steps.forget()


def test_a_rerun_keeps_the_old_picture_pale_until_there_is_another(stage: Stage, tmp_path: Path) -> None:
    panel = stage.panel("states")
    legend_of = legends_in(panel.figure.scene())
    places = (Place(name="", module="Model"), Place(name="rnn", module="LSTM", parameters=3))
    state = Channel(name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=(9, 4), scale="diverging", title="h")
    with Writer(tmp_path / "b.inspect", RunStart(run="again", title="again", places=places)) as writer:
        writer.write(Frame(index=0))
        writer.flush()
        with open_capture(tmp_path / "b.inspect") as again:
            panel.set_capture(again)
            assert panel.state == "empty" and panel.old.shown and panel.same_model
            assert panel.old.geometry() == panel.stack.rect() and panel.control_row.isVisible()
            above = [one for one in panel.stack.children() if isinstance(one, QWidget) and not one.isHidden()]
            assert above[-1] is panel.old, "no empty page lies over it"
            assert panel._empty.button.isHidden(), "what comes by itself is not offered"
            writer.write(state)
            writer.write(Page(state.name, 0, (0, 0), np.ones((9, 4), np.float32)))
            writer.flush()
            again.refresh()
            panel.refresh(frozenset(again.channels))
            assert panel.state == "figure" and not panel.old.shown and legends_in(panel.figure.scene()) == legend_of
            panel.set_capture(stage.capture)  # which has ended: nothing is awaited
            assert not panel.old.shown
            panel.set_capture(again)
            panel.set_capture(None)
    with Writer(tmp_path / "c.inspect", RunStart(run="fails", title="fails", places=places)) as writer:
        writer.write(Frame(index=0))
        writer.flush()
        panel.set_capture(stage.capture)
        with open_capture(tmp_path / "c.inspect") as failed:
            panel.set_capture(failed)
            assert panel.old.shown
            writer.write(RunStop("failed"))
            writer.flush()
            failed.refresh()
            panel.refresh(frozenset())
            assert panel.state == "empty" and not panel.old.shown, "nothing will come"
            panel.set_capture(None)


@pytest.mark.parametrize("another", [False, True], ids=["the same tokens", "others"])
def test_a_pale_picture_stands_beside_no_other_tokens(stage: Stage, tmp_path: Path, another: bool) -> None:
    panel = stage.panel("states")
    names = panel.step_names() if not another else tuple("another sequence")
    places = (Place(name="", module="Model"), Place(name="rnn", module="LSTM", parameters=3))
    with Writer(tmp_path / "b.inspect", RunStart(run="again", title="again", places=places)) as writer:
        writer.write(Frame(index=0))
        writer.flush()
        with open_capture(tmp_path / "b.inspect") as again:
            panel.set_capture(again)
            assert panel.old.shown, "whose tokens come is not known yet"
            writer.write(Labels("step", names))
            writer.flush()
            again.refresh()
            panel.refresh(frozenset())
            assert panel.old.shown is not another and panel.state == "empty"
            assert GOES_ON in panel._empty.text(), "a run that goes on is no run that has nothing"
            writer.write(RunStop("done"))
            writer.flush()
            again.refresh()
            panel.refresh(frozenset())
            assert not panel.old.shown and GOES_ON not in panel._empty.text()
            panel.set_capture(None)
