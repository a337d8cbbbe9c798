"""The overview: what a capture is, what the rules find in it, pictures with sentences, and notes."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from opened import opened
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.capture import Writer, notes, open_capture, open_log, pack
from inspector.gui.panel.overview import look_over
from inspector.gui.panel.overview.look_over import LookOver
from inspector.gui.panel.overview.page import OverviewPage
from inspector.gui.panel.overview.pictures import PICTURES
from inspector.gui.panel.registry import PANELS
from inspector.gui.panel.signals import Lead
from inspector.gui.panels.overview import Overview
from inspector.gui.state.background import Rest
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.followed_log import FollowedLog
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.sketch import paint_sketch
from inspector.gui.widgets.theme import DARK, LIGHT
from inspector.records import Channel, Frame, Labels, Noted, Page, Place, RunStart, RunStop
from inspector.workspace.trainings import path_or_training

TRAINING = "training-vanishing"


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded training that learns nothing, in a folder of its own."""
    copy = tmp_path_factory.mktemp("training") / "vanishing.inspect"
    return Path(shutil.copytree(path_or_training(TRAINING), copy))


@pytest.fixture(scope="module")
def read(training: Path) -> Iterator[LookOver]:
    """Everything that is read of it."""
    look = LookOver()
    with open_capture(training) as capture:
        look.show(capture, -1)
        look.wait()
        yield look
        look.close()


@pytest.fixture
def panel(qapp: QApplication) -> Iterator[Overview]:
    made = cast(Overview, PANELS["overview"](Cursor(), StepRange(), LIGHT))
    yield made
    made.set_capture(None)
    made.deleteLater()


def small(path: Path, *, steps: int = 4, left: tuple[str, ...] = (), value: float = 0.5) -> Path:
    """A run of one frame with a state of two units."""
    places = (Place(name="", module="Net"), Place(name="rnn", module="RNN", parameters=6))
    writer = Writer(path, RunStart(run="r", title="small", places=places, meta={"device": "cpu"}))
    writer.write(Frame(index=0, label="a frame"))
    writer.write(Labels("step", tuple("abcdefgh"[:steps]), 0))
    states = np.full((steps, 2), value, np.float32)
    states[:, 0] = -1.0
    channel = Channel(
        name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=(steps, 2), scale="diverging", limits=(-1, 1)
    )
    writer.write(channel)
    writer.write(Page("rnn.l0:h", 0, (0, 0), states))
    counts = ("-inf", "negative", "zero", "positive", "+inf", "nan", "first_bad_step")
    channel = Channel(
        name="rnn.l0:health/h", kind="health", dims=("count",), shape=(7,), dtype="int64", labels={"count": counts}
    )
    writer.write(channel)
    writer.write(Page("rnn.l0:health/h", 0, (0,), np.array([0, steps, 0, steps, 0, 0, -1])))
    writer.write(RunStop("done", left=left))
    writer.close()
    return path


def shown(panel: Overview, view: Any) -> Overview:
    panel.set_capture(view)
    panel.complete()
    return panel


def texts(panel: Overview) -> str:
    page = panel.page
    return "\n".join(label.text() for label in (page.title, page.about, page.summary, page.looked))


def test_line_breaks_of_the_text_that_ran_are_no_lines_of_their_own(qtbot: Any) -> None:
    page = OverviewPage()
    qtbot.addWidget(page)
    page.show_about("CHAPTER I\nAlice", ["CHAPTER I\n\nAlice; 300 steps", "on cpu"])
    first, second = page.about.text().splitlines()
    assert "CHAPTER I" in first and "Alice; 300 steps" in first and second == "on cpu"


# -- what is read


def test_a_training_that_learns_nothing_is_told_with_its_pictures(read: LookOver) -> None:
    assert [one.id for one in read.diagnosis.findings if one.severity == "warning"] == ["IN303", "IN305"]
    sketches = {key: one.sketch for key, one in read.pictures.items() if one.sketch is not None}
    assert {"loss", "gradient-norm", "gradient-by-layer", "update-by-layer", "horizon", "states"} <= sketches.keys()
    assert all(sketch.sentence and sketch.channel in read.view.channels for sketch in sketches.values())
    assert not [one.problem for one in read.pictures.values() if one.problem]
    assert sketches["horizon"].sentence == "rnn.l0: after 11 steps vanished: the median is below 10⁻³"


def test_what_is_said_of_the_gradient_is_what_the_capture_has(read: LookOver) -> None:
    values = read.view.array("rnn.l0:gradient/state_norm").astype(np.float64)
    low, high = int(np.argmin(values)), int(np.argmax(values))
    sketch = read.pictures["gradient-by-step"].sketch
    assert sketch is not None
    assert f"at step {low} " in sketch.sentence and sketch.sentence.endswith(f"nat at step {high}")
    assert np.allclose(10 ** sketch.lines[0].y, values) and list(sketch.lines[0].x) == list(range(40))
    parameters = read.view.array("parameters:gradient/norm")
    by_layer = read.pictures["gradient-by-layer"].sketch
    assert by_layer is not None and by_layer.cells is not None and by_layer.cells.shape == parameters.T.shape
    largest = int(np.argmax(np.median(parameters, axis=0)))
    brightest = by_layer.cells[::-1].astype(float).mean(axis=1)  # the first parameter is at the bottom
    assert int(np.argmax(brightest)) == largest


def test_every_picture_leads_to_a_panel_and_says_what_it_needs() -> None:
    assert not PICTURES.broken
    for key, picture in PICTURES.items():
        assert picture.panel in PANELS and picture.title, key


def test_pictures_are_painted_in_both_themes_and_are_cheap(read: LookOver, qapp: QApplication) -> None:
    sketches = {key: one.sketch for key, one in read.pictures.items() if one.sketch is not None}
    for key, sketch in sketches.items():
        seen = []
        for theme in (LIGHT, DARK):
            image = QImage(240, 110, QImage.Format.Format_ARGB32)
            image.fill(QColor(theme.base))
            painter = QPainter(image)
            paint_sketch(sketch, painter, QRectF(0, 0, 240, 110), theme)
            painter.end()
            seen.append({image.pixel(x, y) for x in range(0, 240, 3) for y in range(0, 110, 3)})
        assert len(seen[0]) > 3 and seen[0] != seen[1], key
    most = max(len(line.x) for sketch in sketches.values() for line in sketch.lines)
    assert most <= 200  # whatever the capture is long: painting costs by points


def test_a_map_has_the_first_unit_at_the_top_and_the_colours_of_the_panel(tmp_path: Path) -> None:
    with open_capture(small(tmp_path / "a.inspect", value=1.0)) as capture:
        picture = PICTURES["states"]
        sketch = picture.read(capture, 0, picture.find(capture, 0))
    assert sketch.cells is not None and sketch.cells.tolist() == [[0] * 4, [252] * 4]
    assert sketch.rows == "↓ 2 units" and sketch.ends == (0.0, 3.0)


@pytest.mark.parametrize(("steps", "value"), [(1, 0.5), (4, float("nan")), (4, float("inf"))])
def test_one_step_and_numbers_that_are_not_finite_are_drawn(
    tmp_path: Path, panel: Overview, steps: int, value: float
) -> None:
    with open_capture(small(tmp_path / "a.inspect", steps=steps, value=value)) as capture:
        shown(panel, capture)
        assert panel.state == "figure" and not panel.page.tiles["states"].problem
        assert ("not finite" in panel.page.tiles["states"].accessibleName()) is not np.isfinite(value)
        panel.resize(900, 600)
        assert not panel.grab().isNull()
        panel.set_capture(None)


# -- the page


def test_the_page_says_model_run_findings_and_what_was_not_looked_at(panel: Overview, training: Path) -> None:
    with open_capture(training) as capture:
        shown(panel, capture)
        said = texts(panel)
        assert "TokenTransducer: Embedding, RNN, Linear; 1,672 parameters" in said
        assert "5 frames from iteration 0 to 600; 40 steps; on cpu" in said
        assert "2 warnings; " in said and "Nothing found" not in said
        cards = [card for card in panel.page.findings.cards if not card.isHidden()]
        assert [card.heading.split("  ·  ")[0] for card in cards] == ["Warning", "Warning"]
        assert "IN305 reach-through-time" in cards[1].heading and "rnn.l0" in cards[1].heading
        assert cards[0].accessibleName().startswith("Warning")
        assert "Not looked for, not computed (" in said and "Reads the future (structure/causal)" in said
        panel.set_capture(None)


def test_while_rules_are_asked_nothing_is_called_healthy(panel: Overview, tmp_path: Path) -> None:
    path = small(tmp_path / "a.inspect", left=("influence",))
    with open_capture(path) as capture:
        panel.set_capture(capture)
        assert "not evaluated yet" in panel.page.summary.text() and "Nothing" not in panel.page.summary.text()
        panel.complete()
        assert "not evaluated yet" in panel.page.summary.text() and "Nothing" not in panel.page.summary.text()
        assert (
            "Not looked for, not computed yet (" in panel.page.looked.text()
            and "(influence)" in panel.page.looked.text()
        )
        panel.set_capture(None)
    with open_capture(small(tmp_path / "b.inspect")) as capture:
        shown(panel, capture)
        assert panel.page.summary.text().startswith("Nothing found by the rules that looked: ")
        panel.say_remaining(Rest(question=("trial/one_batch",)))  # a person asked for more of it
        panel.complete()
        assert "1 rule not evaluated yet" in panel.page.summary.text()
        assert "not computed yet (1): One batch not learned" in panel.page.looked.text()
        panel.say_remaining(Rest())
        panel.complete()
        assert "What was looked at" in panel.page._looked.text() and panel.page.looked.text().startswith("Looked for (")
        panel.set_capture(None)


def test_a_capture_that_ended_at_once_is_no_log_and_its_long_name_does_not_widen_the_page(
    panel: Overview, tmp_path: Path
) -> None:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="ACGT" * 100)) as writer:
        writer.write(RunStop("failed"))
    panel.resize(700, 500)
    with open_capture(tmp_path / "a.inspect") as capture:
        shown(panel, capture)
        assert "a log has no" not in texts(panel) and "no model was recorded" in texts(panel)
        assert panel.page.inside.minimumSizeHint().width() < 700
        assert panel.page.title.text().replace("\u200b", "") == "ACGT" * 100
        panel.set_capture(None)


def test_without_a_capture_it_says_what_it_is_for(panel: Overview) -> None:
    panel.set_capture(None)
    assert panel.state == "empty"


def test_what_comes_later_is_looked_at_again(panel: Overview, tmp_path: Path, qtbot: Any) -> None:
    start = RunStart(run="r", title="t", places=(Place(name="", module="Net"),))
    with Writer(tmp_path / "a.inspect", start) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="x:h", kind="state", dims=("step", "unit"), shape=(None, 2)))
        writer.write(Page("x:h", 0, (0, 0), np.zeros((2, 2), np.float32)))
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as capture:
            shown(panel, capture)
            assert panel.page.tiles["states"].sketch.ends == (0.0, 1.0)
            writer.write(Page("x:h", 0, (2, 0), np.ones((3, 2), np.float32)))
            writer.flush()
            panel.refresh(capture.refresh())
            panel.look._not_before = 0.0
            qtbot.waitUntil(lambda: panel.page.tiles["states"].sketch.ends == (0.0, 4.0), timeout=10_000)
            panel.set_capture(None)


def test_a_log_is_read_beside_the_window_and_does_not_grow_meanwhile(panel: Overview, tmp_path: Path) -> None:
    rows = "".join(f"{n},{3 / (n + 1)},0.1\n" for n in range(300))
    (tmp_path / "log.csv").write_text(f"step,train/loss,lr\n{rows}", encoding="utf-8")
    log = FollowedLog(open_log(tmp_path / "log.csv"))
    log._looked = -1e9
    log.readers = 1
    assert not log.changed()
    log.readers = 0
    assert log.changed()
    shown(panel, log)
    assert log.readers == 0 and {"loss", "learning-rate"} <= panel.page.tiles.keys()
    assert "A log of another tool" in texts(panel)
    assert "its files are left as they are" in panel.page.notes.told.text() and not panel.page.notes.field.isEnabled()
    panel.set_capture(None)


def test_pictures_of_a_frame_are_read_once(read: LookOver, training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    picture = PICTURES["states"]

    def counted(view: Any, frame: int, channels: Any) -> Any:
        calls.append(frame)
        return picture.read(view, frame, channels)

    monkeypatch.setitem(PICTURES._entries, "states", type(picture)("States", "states", 80, picture.find, counted))
    look = LookOver()
    with open_capture(training) as capture:
        look.show(capture, 0)
        look.wait()
        look.grown()
        look.wait()
        look.turn(1)
        look.wait()
        look.turn(0)
        look.wait()
        look.close()
    assert calls == [0, 1]


# -- notes


def test_a_note_on_a_finding_is_kept_listed_and_leads_back(panel: Overview, training: Path) -> None:
    leads: list[Lead] = []
    panel.leading.connect(leads.append)
    with open_capture(training) as capture:
        shown(panel, capture)
        offered = [panel.page.notes.about.itemText(n) for n in range(panel.page.notes.about.count())]
        assert offered[0] == "About the whole" and "About IN305 rnn.l0" in offered
        panel.page.notes.about.setCurrentText("About IN305 rnn.l0")
        panel.page.notes.field.setText("<b>as in the lecture</b>")
        QTest.keyClick(panel.page.notes.field, Qt.Key.Key_Return)
        assert [one.text for one in notes(capture)] == ["<b>as in the lecture</b>"]
        assert panel.page.notes.field.text() == "" and panel.page.notes.cards[0].words == "<b>as in the lecture</b>"
        panel.page.notes.cards[0].click()
        panel.page.findings.cards[1].click()
        panel.page.tiles["horizon"].click()
        panel.set_capture(None)
    assert leads[0] == leads[1] and leads[0].place == "rnn.l0" and leads[0].channel
    assert leads[2] == Lead(panel="lags", channel="rnn.l0:jacobian/lag", place="rnn.l0")


def test_a_packed_capture_says_that_it_is_read_only(panel: Overview, tmp_path: Path) -> None:
    packed = pack(small(tmp_path / "a.inspect"))
    with open_capture(packed) as capture:
        shown(panel, capture)
        assert "packed capture, which is read-only" in panel.page.notes.told.text()
        assert not panel.page.notes.field.isEnabled()
        panel.set_capture(None)


def test_a_note_on_a_running_capture_waits_for_its_end(panel: Overview, tmp_path: Path, qtbot: Any) -> None:
    path = tmp_path / "a.inspect"
    writer = Writer(path, RunStart(run="r", title="t"))
    writer.write(Frame(index=0))
    writer.flush()
    with open_capture(path) as capture:
        shown(panel, capture)
        panel.write_note(Noted(frame=0), "early")
        assert not notes(capture) and "1 note will be kept" in panel.page.notes.told.text()
        writer.write(RunStop("done"))
        writer.close()
        qtbot.waitUntil(lambda: bool(notes(capture)), timeout=10_000)
        assert [one.text for one in notes(capture)] == ["early"]
        panel.set_capture(None)


# -- the window


def test_what_is_opened_is_seen_on_its_overview_and_one_click_leads_on(
    qtbot: Any, qapp: QApplication, training: Path
) -> None:
    with opened(qtbot, background=False, overview=True) as window:
        window.session.start_worker = lambda: None  # type: ignore[method-assign]
        window.resize(1280, 800)
        assert "states" in window.docking.seen and not window.docking.enlarged  # nothing was opened yet
        window.open_path(str(training))
        qtbot.waitUntil(lambda: window.docking.enlarged == "overview", timeout=10_000)
        panel = cast(Overview, window.panels.made["overview"])
        qtbot.waitUntil(lambda: panel.look.complete and not panel.look.busy, timeout=30_000)
        window.session.question = ("trial/one_batch", "gradient/vectors@0:2")  # as while a person waits for them
        window.say_what_remains()
        assert panel.remaining.question == ("trial/one_batch", "gradient/vectors")
        window.session.question = ()
        window.say_what_remains()
        qtbot.waitUntil(lambda: panel.look.complete and not panel.look.busy, timeout=30_000)
        assert window.docks["training"].isHidden() and panel.page.findings.cards[0].isVisible()

        panel.page.findings.cards[0].click()  # the loss, over iterations
        qtbot.waitUntil(lambda: "training" in window.docking.seen, timeout=10_000)
        assert window.docks["overview"].isVisible()
        window.docking.show_panel("overview")
        qtbot.waitUntil(lambda: window.docking.enlarged == "overview", timeout=10_000)
        panel.page.tiles["horizon"].click()
        qtbot.waitUntil(lambda: "lags" in window.docking.seen, timeout=10_000)

        window.docking.show_panel("overview")
        panel.write_note(Noted(frame=4, step=3), "it turns here")
        assert window.sequence.strip._noted == frozenset({3})
        marked = window.timeline.view  # which reads at most so often
        qtbot.waitUntil(lambda: "note" in [one.kind for one in marked.data.events if one.frame == 4], timeout=10_000)
        panel.page.notes.cards[-1].click()
        assert window.looking.position.step == 3

        window.docking.show_panel("overview")
        qtbot.waitUntil(lambda: window.docking.enlarged == "overview", timeout=10_000)
        window.docks["states"].raise_()
        qtbot.waitUntil(lambda: not window.docking.enlarged and "states" in window.docking.seen, timeout=10_000)
        assert not window.docks["lags"].isHidden()


def test_rules_and_pictures_are_asked_beside_the_window(
    panel: Overview, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[str] = set()
    read, asked = look_over.sketched, look_over.answers

    def noted(work: Any) -> Any:
        def steps(*given: Any) -> Iterator[Any]:
            for result in work(*given):
                threads.add(threading.current_thread().name)
                yield result

        return steps

    monkeypatch.setattr(look_over, "sketched", noted(read))
    monkeypatch.setattr(look_over, "answers", noted(asked))
    with open_capture(small(tmp_path / "a.inspect")) as capture:
        shown(panel, capture)
        panel.set_capture(None)
    assert threads == {"overview"}


def test_a_title_is_one_line_whatever_the_text_is(panel: Overview, tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="a model: first\n\nsecond\tpart")) as writer:
        writer.write(Frame(index=0))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        shown(panel, capture)
        assert panel.page.title.text() == "a model: first↵↵second⇥part"
        panel.set_capture(None)
