"""Panels are made when they are first visible or asked for; until then tabs, menus and docks are as if they were there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QFileDialog, QPlainTextEdit, QTabBar

from inspector.capture import Difference, Writer, open_capture
from inspector.gui.export.panels_of import panels_of
from inspector.gui.panel.registry import PANELS, ordered
from inspector.gui.panels.gates import Gates
from inspector.gui.widgets.theme import DARK
from inspector.gui.window.docking.docks import ON_OCCASION
from inspector.gui.window.docking.panels_on_demand import has_data_for
from inspector.gui.window.main_window import Window
from inspector.gui.window.saving import export_all
from inspector.records import Channel, Frame, Page, RunStart, RunStop


@pytest.fixture
def window(qtbot: Any) -> Iterator[Window]:
    with opened(qtbot) as made:
        yield made


def colours(window: Window) -> dict[str, str]:
    bars = [bar for bar in window.findChildren(QTabBar) if bar.parent() is window and bar.isVisible()]
    return {bar.tabText(i): bar.tabTextColor(i).name() for bar in bars for i in range(bar.count())}


SATURATION = Channel(
    name="rnn.l0:saturation", kind="unit", dims=("statistic", "unit"), shape=(3, 4), title="saturation",
    labels={"statistic": ("left", "right", "graded")},
)  # fmt: skip
GRADIENT = Channel(name="rnn.l0:gradient", kind="gradient", dims=("step",), shape=(4,), title="gradient")


def small(path: Path, *channels: Channel) -> Path:
    """A capture of some channels."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for channel in channels:
            writer.write(channel)
            writer.write(Page(channel.name, 0, (0,) * len(channel.dims), np.ones(channel.shape, np.float32)))
        writer.write(RunStop("done"))
    return path


def test_only_what_is_visible_is_made(window: Window, qapp: QApplication) -> None:
    assert list(window.panels.made) == ["states", "jacobians"]
    assert list(window.panels) == [key for key, _ in ordered()] and len(window.panels) == len(PANELS)
    window.docks["gates"].raise_()
    qapp.processEvents()
    assert list(window.panels.made) == ["states", "gates", "jacobians"], "from left to right, whichever was first"
    gates = window.panels["gates"]
    assert gates.isVisible() and window.docks["gates"].isAncestorOf(gates)
    assert window.docking.bars["gates"].isAncestorOf(gates.control_row)
    assert window.panels["gates"] is gates


def test_tabs_and_menus_know_panels_that_are_not_made(window: Window, tmp_path: Path) -> None:
    window.open_capture(str(small(tmp_path / "a.inspect", SATURATION, GRADIENT)))
    window.tick()
    window.docking.label_tabs()
    pale = {title for title, colour in colours(window).items() if colour == window.theme.muted}
    made = set(window.panels.made)
    assert made < set(window.panels)
    expected = {kind.title for key, kind in ordered() if not window.panels[key].channels() and key not in ON_OCCASION}
    assert pale == expected and "Gradients" not in pale
    assert PANELS["openers"].accepts(SATURATION) and "Openers" in pale, (
        "shares of units, of a layer without gates, are shown beside others only"
    )
    assert {action.text() for action in window.menu_actions} >= {f"{kind.title}: Save figure…" for _, kind in ordered()}


def test_a_class_knows_what_its_panel_would_show(window: Window, a_capture: Path) -> None:
    window.open_capture(str(a_capture))
    capture = window.session.capture
    assert capture is not None and capture.frames
    for source in (capture, Difference(capture, capture.frames[0].index, capture.frames[0].index)):
        window.panels.source = source
        for key, panel in window.panels.items():
            panel.set_capture(source)
            assert has_data_for(type(panel), source, -1) is bool(panel.channels()), key


def test_a_panel_that_comes_late_is_as_one_that_was_there(
    window: Window, a_capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = window.panels["bptt"]
    window.choose_theme("Dark")
    window.open_capture(str(a_capture))
    monkeypatch.setattr(type(window.session), "computed", (*early.extra, *PANELS["truncation"].extra))
    window.say_what_was_computed()
    window.looking.move(step=3)
    late = window.panels["truncation"]
    assert late.theme is DARK and late.source is early.source is window.session.capture
    assert late.state == "figure" and late.looking.position.step == 3
    assert early.computed and late.computed and not window.panels["dynamics"].computed
    window.panels.source = Difference(window.session.capture, 0, 0)
    assert window.panels["spectra"].source is window.panels.source


def test_the_catalogue_reaches_a_panel_that_comes_after_it(window: Window, qtbot: Any) -> None:
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
    window.tick()
    assert "bptt" not in window.panels.made
    assert window.panels["bptt"].needs and "Cost" in window.panels["bptt"]._empty.button.toolTip()


def test_what_is_empty_gives_way_and_nothing_else_is_made(window: Window, tmp_path: Path, qapp: QApplication) -> None:
    window.open_capture(str(small(tmp_path / "a.inspect", GRADIENT)))
    window.docking.raise_useful()
    qapp.processEvents()
    assert window.panels.made["gradients"].isVisible() and "gradients" in window.docking.seen
    assert set(window.panels.made) == {"states", "lens", "jacobians", "gradients"}  # Token has gradients too


def test_an_empty_panel_that_was_chosen_stays_when_more_is_computed(window: Window, tmp_path: Path, qtbot: Any) -> None:
    window.open_capture(str(small(tmp_path / "a.inspect", GRADIENT)))
    window.docking.give_way(window.session.capture)
    qtbot.waitUntil(lambda: "gradients" in window.docking.seen, timeout=30_000)
    window.docks["jacobians"].raise_()
    qtbot.waitUntil(lambda: "jacobians" in window.docking.seen, timeout=30_000)
    window.docking.give_way(window.session.capture)
    qtbot.wait(100)
    assert "jacobians" in window.docking.seen and "gradients" not in window.docking.seen
    window.open_capture(str(small(tmp_path / "b.inspect", GRADIENT)))
    window.docking.give_way(window.session.capture)
    qtbot.waitUntil(lambda: "gradients" in window.docking.seen, timeout=30_000)  # another capture


def test_of_a_large_capture_panels_give_way_one_after_the_other(window: Window, tmp_path: Path, qtbot: Any) -> None:
    window._ticker.stop()  # the catalogue of the worker would offer to compute what is empty
    window.open_capture(str(small(tmp_path / "a.inspect", GRADIENT)))
    window.docking.give_way(window.session.capture)
    assert "gradients" not in window.docking.seen, "events come first"
    qtbot.waitUntil(lambda: "gradients" in window.docking.seen, timeout=30_000)
    window.docks["jacobians"].raise_()
    qtbot.waitUntil(lambda: "jacobians" in window.docking.seen, timeout=30_000)
    window.open_capture(str(small(tmp_path / "b.inspect", GRADIENT)))
    window.docking.give_way(window.session.capture)
    another = type("Another", (), {})()
    window.docking.give_way(another)  # before its turn: the steps of the first are left
    qtbot.waitUntil(lambda: "gradients" in window.docking.seen, timeout=30_000)


@pytest.mark.parametrize(("asked", "front"), [("states", "gradients"), ("jacobians", "jacobians")])
def test_what_is_behind_a_panel_that_fills_the_window_gives_way_once_it_is_seen(
    window: Window, tmp_path: Path, qtbot: Any, asked: str, front: str
) -> None:
    """It stood empty beside panels that had numbers; what was asked for by its name stays."""
    window._ticker.stop()  # the catalogue of the worker would offer to compute what is empty
    window.open_capture(str(small(tmp_path / "a.inspect", GRADIENT)))
    window.docks["jacobians"].raise_()
    qtbot.waitUntil(lambda: "jacobians" in window.docking.seen, timeout=30_000)
    window.docking.enlarge("overview")
    qtbot.waitUntil(lambda: "jacobians" not in window.docking.seen, timeout=30_000)
    window.docking.give_way(window.session.capture)
    window.docking.show_panel(asked)
    window.docking.restore()
    qtbot.waitUntil(lambda: front in window.docking.seen, timeout=30_000)
    qtbot.wait(50)
    assert front in window.docking.seen


def test_a_panel_whose_quantities_were_computed_stays_though_it_is_empty(
    window: Window, tmp_path: Path, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "has_computed", lambda _keys: True)
    window.open_capture(str(small(tmp_path / "a.inspect", GRADIENT)))
    window.docking.raise_useful()
    qapp.processEvents()
    assert "jacobians" in window.docking.seen, "it says why it has nothing to show"


def test_a_panel_that_cannot_be_made_says_so_in_its_place(
    window: Window, a_capture: Path, tmp_path: Path, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise ValueError("no <b>axis</b> here")

    monkeypatch.setattr(Gates, "build", fail)
    told: list[str] = []
    monkeypatch.setattr(window, "tell", lambda sentence, _details="": told.append(sentence))
    window.open_capture(str(a_capture))
    assert not [line for line in window.session.log if "Broken" in line.text]
    window.docks["gates"].raise_()
    qapp.processEvents()
    (line,) = [line.text for line in window.session.log if "Broken" in line.text]
    assert line == "Broken: the panel gates: ValueError: no <b>axis</b> here"
    page = window.docks["gates"].findChild(QPlainTextEdit)
    assert page.isVisible() and page.isReadOnly() and "no <b>axis</b> here" in page.toPlainText()
    assert "gates" not in window.panels and window.panels.get("gates") is None and len(window.panels) == len(PANELS) - 1
    with pytest.raises(KeyError, match="could not be made"):
        window.panels["gates"]
    next(action for action in window.menu_actions if action.text() == "Gates: Save figure…").trigger()
    assert told == ["Gates could not be made; the log says why."]
    window.docks["units"].raise_()
    window.docks["gates"].raise_()
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    monkeypatch.setattr("inspector.gui.export.figure_files.save_figure", lambda _panel, path: path.touch())
    export_all(window)
    assert {path.stem for path in tmp_path.glob("*.png")} == set(window.panels) - {"weights"}
    assert len([line for line in window.session.log if "Broken" in line.text]) == 1
    window.choose_theme("Dark")
    window.open_capture(str(a_capture))


def test_a_class_that_cannot_say_what_it_shows_does_not_end_the_others(
    window: Window, a_capture: Path, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_channel: Channel) -> bool:
        raise ValueError("no kind")

    monkeypatch.setattr(Gates, "accepts", staticmethod(fail))
    window.open_capture(str(a_capture))
    window.tick()
    window.docking.label_tabs()
    assert colours(window)["Gates"] == window.theme.text
    window.docks["gates"].raise_()
    qapp.processEvents()
    assert "no kind" in window.docks["gates"].findChild(QPlainTextEdit).toPlainText()
    window.docks["units"].raise_()
    qapp.processEvents()
    assert window.panels["units"].state == "figure"


def test_a_figure_of_a_panel_that_was_never_seen_has_the_size_of_the_one_in_front(
    window: Window, a_capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.open_capture(str(a_capture))
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "a.png"), "PNG (*.png)"))
    sizes = {}
    for title in ("Jacobians", "Gradients"):
        next(action for action in window.menu_actions if action.text() == f"{title}: Save figure…").trigger()
        sizes[title] = QImage(str(tmp_path / "a.png")).size()
        shutil.move(tmp_path / "a.png", tmp_path / f"{title}.png")
    assert sizes["Gradients"] == sizes["Jacobians"] and sizes["Jacobians"].width() > 700
    gradients = window.panels["gradients"]
    assert not gradients.visibleRegion().boundingRect().height() and window.docks["gradients"].isAncestorOf(gradients)


def test_attention_over_tokens_is_no_picture_before_its_panel_is_made_and_after(window: Window, tmp_path: Path) -> None:
    weights = Channel(name="a:attention", kind="attention", dims=("head", "query", "key"), shape=(2, 4, 4))
    path = small(tmp_path / "a.inspect", weights)
    window.open_capture(str(path))
    assert window.panels.has_data("attention") and "picture" not in window.panels.made
    assert not window.panels.has_data("picture")
    with open_capture(path) as capture:
        assert "picture" not in {one.key for one in panels_of(capture)}
    window.docking.show_panel("picture")
    assert not window.panels.has_data("picture") and window.panels["picture"].state == "empty"
