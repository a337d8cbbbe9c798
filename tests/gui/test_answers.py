"""Answers with steps of their own on screen: their own strip, range and cursor, never mixed with the input's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Capture, Writer, open_capture
from inspector.gui.export.figure_files import picture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.registry import PANELS, ordered
from inspector.gui.state.cursor import Cursor, Looking
from inspector.gui.state.settings import Settings
from inspector.gui.state.step_axes import lengths_of
from inspector.gui.state.step_range import AxisRange, StepRange
from inspector.gui.widgets.theme import DARK, LIGHT, Theme
from inspector.gui.window.bars.sequence_rows import SequenceRows
from inspector.gui.window.docking.docks import ON_OCCASION
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN, Channel, Frame, Labels, Page, RunStart, RunStop, Scalar

ASKED = tuple("abcdefg")
SHORTER, EQUAL = tuple("gf<"), tuple("xyzuvw<")


def make(path: Path, said: tuple[str, ...]) -> Path:
    """An encoder over ASKED, a decoder and outputs over what is said."""
    random = np.random.default_rng(0)
    with Writer(path, RunStart(run="r", title="backwards")) as writer:
        writer.write(Frame(index=0))
        writer.write(Labels(STEP_DOMAIN, ASKED, 0))
        writer.write(Labels(ANSWER_DOMAIN, said, 0))

        def put(name: str, kind: str, shape: tuple[int, ...], domain: str = STEP_DOMAIN) -> None:
            unit = "nat" if kind == "output" else "1"
            channel = Channel(
                name=name, kind=kind, dims=("step", "unit")[: len(shape)], shape=shape, unit=unit, title=name
            )
            writer.write(channel.over(domain))
            writer.write(Page(name, 0, (0,) * len(shape), random.random(shape, dtype=np.float32) + 0.1))

        for place, names, domain in (("encoder.l0", ASKED, STEP_DOMAIN), ("decoder.l0", said, ANSWER_DOMAIN)):
            put(f"{place}:h", "state", (len(names), 4), domain)
            put(f"{place}:jacobian/spectral_norm", "jacobian", (len(names),), domain)
        for key, size in ((STEP_DOMAIN, len(ASKED)), (ANSWER_DOMAIN, len(said))):
            looked = Channel(
                name=f"decoder.at {key.split()[0]}:attention", kind="attention", dims=("head", "query", "key"),
                shape=(1, len(said), size), domains={"query": ANSWER_DOMAIN, "key": key},
            )  # fmt: skip
            writer.write(looked)
            writer.write(Page(looked.name, 0, (0, 0, 0), np.full(looked.shape, 1 / size, np.float32)))
        put("output:loss", "output", (len(said),), ANSWER_DOMAIN)
        counts = Channel(name="decoder.l0:health/h", kind="health", dims=("count",), shape=(2,), dtype="int64",
                         labels={"count": ("nan", "first_bad_step")})  # fmt: skip
        writer.write(counts)
        writer.write(Page(counts.name, 0, (0,), np.array([1, 2])))
        writer.write(Scalar("output:loss/mean", 0, 0.5))
        writer.write(Scalar("output:perplexity", 0, 1.6487))
        writer.write(RunStop("done"))
    return path


@pytest.fixture(params=[SHORTER, EQUAL], ids=["shorter", "equal"])
def stage(request: pytest.FixtureRequest, tmp_path: Path, qapp: object) -> Iterator[Stage]:
    with open_capture(make(tmp_path / "run.inspect", request.param)) as capture:
        made = Stage(capture, (800, 500))
        yield made
        made.close()


def said_in(capture: Capture) -> tuple[str, ...]:
    return capture.labels(ANSWER_DOMAIN)


def test_the_two_lengths_are_told_apart(stage: Stage) -> None:
    assert lengths_of(stage.capture) == {STEP_DOMAIN: 7, ANSWER_DOMAIN: len(said_in(stage.capture))}


@pytest.mark.parametrize("key", ["states", "jacobians", "units"])
def test_a_panel_shows_one_of_the_two_and_turns_with_the_place(stage: Stage, key: str) -> None:
    panel, said = stage.panel(key), said_in(stage.capture)
    axis = panel.plots[0].step_axis
    assert not panel.whose.isHidden() and {channel.place for channel in panel.channels()} == {"encoder.l0"}
    assert axis.names == ASKED and axis.labelText == "step" and panel.steps.length == 7
    stage.cursor.move(steps={STEP_DOMAIN: 5, ANSWER_DOMAIN: 1}, unit=0)
    assert panel.plots[0]._line.value() == 5 and not any("answer" in what for what, _ in panel.labelled_readout())
    stage.cursor.move(place="decoder.l0")
    assert {channel.place for channel in panel.channels()} == {"decoder.l0"} and panel.whose.currentText() == "answer"
    assert axis.names == said and axis.labelText == "answer step" and panel.steps.length == len(said)
    assert panel.plots[0]._line.value() == 1
    assert all(what.startswith("answer: ") for what, _ in panel.labelled_readout() if "[" in what)
    panel.whose.setCurrentText("input")
    panel.whose.activated.emit(0)
    assert axis.names == ASKED and panel.plots[0]._line.value() == 5


def test_hovering_moves_the_cursor_of_what_is_shown_only(stage: Stage) -> None:
    panel = stage.panel("jacobians", place="decoder.l0")
    stage.cursor.move(step=6)
    panel.pointed(panel.plots[0], 2.2, 0.0)
    assert (stage.cursor.position.step, stage.cursor.position.at(ANSWER_DOMAIN)) == (6, 2)
    panel.pointed(panel.plots[0], 99.0, 0.0)
    assert stage.cursor.position.at(ANSWER_DOMAIN) == len(said_in(stage.capture)) - 1


def test_zooming_the_answer_leaves_the_input_as_it_is(stage: Stage) -> None:
    panel, other = stage.panel("jacobians", place="decoder.l0"), stage.panel("outputs")
    panel.steps.set(0.0, 2.0)
    assert stage.steps.along(ANSWER_DOMAIN).bounds == (0.0, 2.0) and stage.steps.bounds == (-0.5, 6.5)
    assert other.plots[0].vb.viewRange()[0] == [0.0, 2.0]  # outputs are the answer's as well
    stage.steps.set(2.0, 5.0)
    assert panel.plots[0].vb.viewRange()[0] == [0.0, 2.0]


def test_outputs_of_an_answer_offer_no_choice_and_name_its_perplexity(stage: Stage) -> None:
    panel = stage.panel("outputs")
    assert panel.state == "figure" and panel.whose.isHidden() and panel.looking.axis == ANSWER_DOMAIN
    assert panel.plots[0].step_axis.names == said_in(stage.capture)
    assert "mean loss 0.5 nat, perplexity 1.649" in panel.plots[0].titleLabel.text
    stage.cursor.move(steps={ANSWER_DOMAIN: 2})
    assert [what for what, _ in panel.labelled_readout()] == ["answer: output:loss [2]"]
    assert picture(panel, 1.0).width() > 0


def test_a_decoder_that_looks_at_the_input_has_the_tokens_of_both_on_its_axes(stage: Stage) -> None:
    panel, said = stage.panel("attention", place="decoder.at step"), said_in(stage.capture)
    assert panel.state == "figure" and panel.query_axis.names == said and panel.row.plot.step_axis.names == ASKED
    stage.cursor.move(place="decoder.at answer")
    assert panel.query_axis.names == said and panel.row.plot.step_axis.names == said
    panel.pointed(panel.row.plot, 1.0, 2.0)
    assert (stage.cursor.position.at(ANSWER_DOMAIN), stage.cursor.position.key, stage.cursor.position.step) == (
        2,
        1,
        None,
    )


def test_a_bad_step_of_a_decoder_is_one_of_the_answer(stage: Stage) -> None:
    panel = stage.panel("health")
    assert panel.whose.isHidden() and panel.state == "figure"
    stage.cursor.move(step=4)
    panel._clicked(0, 0)
    assert (stage.cursor.position.step, stage.cursor.position.at(ANSWER_DOMAIN)) == (4, 2)


def test_the_answer_has_a_strip_coloured_by_what_is_the_answers(stage: Stage) -> None:
    cursor, settings = Cursor(), Settings()
    lengths = lengths_of(stage.capture)
    cursor.set_lengths(lengths)
    strips = SequenceRows(cursor, LIGHT, settings)
    strips.grown(stage.capture, lengths, frozenset(stage.capture.channels))
    rows = list(strips)
    options = [[row.colour_by.itemText(i) for i in range(row.colour_by.count())] for row in rows]
    assert options[0][0] == "encoder.l0:jacobian/spectral_norm" and options[1][0] == "output:loss"
    assert not any("decoder" in name for name in options[0]) and not any("encoder" in name for name in options[1])
    assert not any(row.name.isHidden() for row in rows) and not rows[1].isHidden()
    assert rows[1].strip._names == said_in(stage.capture)
    cursor.move(step=3)
    rows[1].looking.move(step=1)
    assert (cursor.position.step, cursor.position.at(ANSWER_DOMAIN)) == (3, 1)
    strips.close()
    strips.deleteLater()


def test_without_an_answer_there_is_no_second_strip_and_no_name(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        strips = SequenceRows(Cursor(), LIGHT, Settings())
        strips.grown(capture, lengths_of(capture), frozenset())
        assert list(strips) == [strips.input] and strips.input.name.isHidden()
        strips.deleteLater()
        stage = Stage(capture, (800, 500))
        for key in PANELS:
            panel = stage.panel(key)
            assert panel.whose.isHidden() and panel.looking.axis in (STEP_DOMAIN, "iteration")
        stage.close()


def test_a_cursor_seen_over_the_answer() -> None:
    cursor = Cursor()
    told: list[tuple[int | None, int | None]] = []
    over = Looking(cursor, ANSWER_DOMAIN)
    over.moved.connect(lambda new, old: told.append((new.step, old.step)))
    cursor.set_lengths({STEP_DOMAIN: 9, ANSWER_DOMAIN: 4})
    over.move(step=10, unit=2)
    cursor.move(step=8)
    over.advance(-2)
    assert cursor.position.step == 8 and cursor.position.at(ANSWER_DOMAIN) == 1 and over.position.unit == 2
    assert told == [(3, None), (3, 3), (1, 3)] and (over.length, Looking(cursor).length) == (4, 9)
    cursor.set_lengths({STEP_DOMAIN: 9})
    assert cursor.position.at(ANSWER_DOMAIN) is None and cursor.position.step == 8


def test_a_range_follows_the_one_in_use() -> None:
    steps = StepRange()
    steps.set_length(10)
    steps.along(ANSWER_DOMAIN).set_length(3)
    either = AxisRange(steps)
    told: list[tuple[float, float]] = []
    either.changed.connect(lambda low, high: told.append((low, high)))
    steps.along(ANSWER_DOMAIN).set(0.0, 2.0)
    assert told == [] and either.bounds == (-0.5, 9.5)
    either.use(ANSWER_DOMAIN)
    assert told == [(0.0, 2.0)] and either.length == 3 and either.axis == ANSWER_DOMAIN
    steps.set(1.0, 4.0)
    either.show_all()
    assert told == [(0.0, 2.0), (-0.5, 2.5)] and steps.bounds == (1.0, 4.0)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("key", [key for key, _ in ordered() if key not in ON_OCCASION])
def test_every_panel_shows_an_answer(answered_capture: Path, key: str, theme: Theme) -> None:
    with open_capture(answered_capture) as capture:
        stage = Stage(capture, (900, 520), theme)
        panel = stage.panel(key)
        for step in (0, 39):
            stage.cursor.move(steps={ANSWER_DOMAIN: step}, unit=1, head=1, key=0, place="rnn.l0")
            rows = panel.labelled_readout()
            assert panel.state == "figure", panel._error.toPlainText()
            assert all(what.startswith("answer: ") for what, _ in rows if "[" in what) or panel.looking.axis in (
                STEP_DOMAIN,
                "iteration",
            )
        stage.steps.along(ANSWER_DOMAIN).zoom(0.3, 20.0)
        panel.redraw()
        assert panel.state == "figure", panel._error.toPlainText()
        shared = [plot for plot in panel.plots if plot.steps is not None]
        for plot in shared if panel.looking.axis == ANSWER_DOMAIN else ():
            assert plot.vb.viewRange()[0] == list(stage.steps.along(ANSWER_DOMAIN).bounds)
            assert plot.step_axis.labelText in (ANSWER_DOMAIN, "query")
        assert stage.cursor.position.step is None and stage.steps.length == 0
        stage.close()
