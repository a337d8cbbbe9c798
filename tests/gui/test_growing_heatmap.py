"""A heatmap of a run that goes on colours only what is new, and looks as if all of it had been drawn again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
import pytest
from PySide6.QtGui import QImage, QPainter

from inspector.capture import Capture, Writer, open_capture
from inspector.capture.layout import SUFFIX
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.step_range import StepRange, room_for
from inspector.gui.widgets.images import growing_image
from inspector.gui.widgets.images.growing_image import cell_width
from inspector.gui.widgets.images.quantise import Levels, levels_of
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.plots import source
from inspector.gui.widgets.plots.source import changes_of, glance, overview_of, steady
from inspector.gui.widgets.theme import DARK, LIGHT, Theme
from inspector.records import Channel, Page, RunStart, RunStop

NAME = "a:h"
FIXED = Levels(-2.0, 2.0, "diverging")
UNITS = 12


class Screen:
    """A map of a capture on a small screen."""

    def __init__(self, theme: Theme = LIGHT, *, height: int = 300) -> None:
        self.view = pg.GraphicsLayoutWidget(size=(400, height))
        self.view.setBackground(theme.base)
        self.row = MapRow(self.view, 0, None, theme, label="unit")

    def show(self, capture: Capture, levels: Levels = FIXED) -> npt.NDArray[np.uint8]:
        """The pixels of the widget."""
        steps, units = capture.extent(NAME, 0)
        self.row.show(
            overview_of(capture, NAME, 0), steps, units, levels, "1", capture.revision(NAME, 0),
            changes=changes_of(capture, NAME, 0),
        )  # fmt: skip
        image = self.view.grab().toImage()
        return np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine()).copy()

    @property
    def drawn(self) -> int:
        """Cells that were coloured for the last picture."""
        return self.row.map._growing.drawn


@pytest.fixture
def live(tmp_path: Path, qtbot: Any) -> Iterator[tuple[Writer, Capture]]:
    with Writer(tmp_path / f"a{SUFFIX}", RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name=NAME, kind="state", dims=("step", "unit"), shape=(None, UNITS), scale="diverging"))
        writer.flush()
        with open_capture(tmp_path / f"a{SUFFIX}") as capture:
            yield writer, capture


def add(live: tuple[Writer, Capture], start: int, values: npt.NDArray[np.float32]) -> Capture:
    writer, capture = live
    writer.write(Page(NAME, 0, (start, 0), values))
    writer.flush()
    capture.refresh()
    return capture


def numbers(count: int, seed: int = 0, units: int = UNITS) -> npt.NDArray[np.float32]:
    """Normal numbers, some of them NaN, +∞ and −∞."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(count, units)).astype(np.float32)
    for special in (np.nan, np.inf, -np.inf):
        values[random.random(values.shape) < 0.01] = special
    return values


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_every_picture_of_a_growing_map_equals_one_drawn_from_nothing(
    live: tuple[Writer, Capture], theme: Theme
) -> None:
    screen, start = Screen(theme), 0
    for number, count in enumerate((1, 5, 60, 200, 3, 97, 1, 700, 33, 1500, 250, 1, 4000)):
        capture = add(live, start, numbers(count, number))
        start += count
        assert np.array_equal(screen.show(capture), Screen(theme).show(capture)), f"at {start} steps"


def test_only_what_is_new_is_coloured(live: tuple[Writer, Capture]) -> None:
    screen = Screen()
    screen.show(add(live, 0, numbers(100)))
    assert screen.drawn == 100
    screen.show(add(live, 100, numbers(7)))
    assert screen.drawn == 7
    screen.show(live[1])
    assert screen.drawn == 0  # nothing is new
    capture = add(live, 107, numbers(2000))
    screen.show(capture)
    screen.show(add(live, 2107, numbers(3)))
    assert screen.drawn <= 2  # the last cell, which had room, and one more


def test_other_limits_or_another_order_colour_everything_again(live: tuple[Writer, Capture]) -> None:
    screen = Screen()
    capture = add(live, 0, numbers(100))
    screen.show(capture)
    other = Levels(-1.0, 1.0, "diverging")
    assert np.array_equal(screen.show(capture, other), Screen().show(capture, other))
    assert screen.drawn == 100
    clipped = Levels(-1.0, 1.0, "diverging", clipped=0.25)
    screen.show(capture, clipped)
    assert screen.drawn == 0  # a note at the colour bar
    order = np.arange(UNITS)[::-1].copy()
    screen.row.set_order(order)
    fresh = Screen()
    fresh.row.set_order(order)
    assert np.array_equal(screen.show(capture, clipped), fresh.show(capture, clipped))
    assert screen.drawn == 100


def test_pages_written_backwards_are_drawn_where_they_belong(live: tuple[Writer, Capture]) -> None:
    screen = Screen()
    for start in (300, 200, 100, 0):
        capture = add(live, start, numbers(100, start))
        assert np.array_equal(screen.show(capture), Screen().show(capture)), start


def test_another_channel_of_the_same_size_is_not_taken_for_the_same(
    live: tuple[Writer, Capture], tmp_path: Path
) -> None:
    screen = Screen()
    screen.show(add(live, 0, numbers(100)))
    with Writer(tmp_path / f"b{SUFFIX}", RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name=NAME, kind="state", dims=("step", "unit"), shape=(None, UNITS), scale="diverging"))
        writer.write(Page(NAME, 0, (0, 0), numbers(100, 9)))
    with open_capture(tmp_path / f"b{SUFFIX}") as other:
        assert np.array_equal(screen.show(other), Screen().show(other))


def test_a_part_in_view_is_drawn_as_a_part(live: tuple[Writer, Capture]) -> None:
    capture = add(live, 0, numbers(3000))
    screens = Screen(), Screen()
    for screen in screens:
        screen.show(capture)
    screens[0].row.plot.vb.setXRange(1003, 1257, padding=0)
    screens[0].view.grab()
    screens[0].row.plot.vb.setXRange(17, 2311, padding=0)
    screens[1].row.plot.vb.setXRange(17, 2311, padding=0)
    one, two = (screen.view.grab().toImage() for screen in screens)
    assert one == two


def test_more_units_than_pixels_keep_their_extremes(tmp_path: Path, qtbot: Any) -> None:
    screen, wide = Screen(height=120), 700
    with Writer(tmp_path / f"a{SUFFIX}", RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name=NAME, kind="state", dims=("step", "unit"), shape=(None, wide), scale="diverging"))
        writer.flush()
        with open_capture(tmp_path / f"a{SUFFIX}") as capture:
            for start in range(0, 120, 40):
                writer.write(Page(NAME, 0, (start, 0), numbers(40, start, wide)))
                writer.flush()
                capture.refresh()
                assert np.array_equal(screen.show(capture), Screen(height=120).show(capture))


@pytest.mark.parametrize("columns", [1, 7, 300, 301, 1199, 2400, 5000, 100_003])
@pytest.mark.parametrize("cells", [1, 16, 300, 1100])
def test_cells_are_few_enough_and_made_of_whole_stored_ones(columns: int, cells: int) -> None:
    width = cell_width(columns, cells)
    assert -(-columns // width) <= cells
    coarsest = max((level for level in (4, 16, 64, 256) if level <= width), default=1)
    assert width % coarsest == 0


def test_limits_stay_while_numbers_of_the_same_kind_arrive(live: tuple[Writer, Capture]) -> None:
    """The percentiles change with every page; what is shown does not, and never clips more than they do."""
    random, shown = np.random.default_rng(3), []
    for start in range(0, 4000, 50):
        capture = add(live, start, random.uniform(-1, 1, (50, UNITS)).astype(np.float32))
        shown.append(glance(capture, capture.channels[NAME], 0)[0])
    assert len({(one.low, one.high) for one in shown}) <= 3
    exact = levels_of(random.normal(size=10_000), "sequential", None)
    wider = steady(exact)
    assert wider.low <= exact.low + 1e-6 and exact.high - 1e-6 <= wider.high
    assert wider.high - wider.low <= 1.12 * (exact.high - exact.low)


def test_limits_of_a_growing_channel_are_those_of_all_of_it_within_their_steps(
    live: tuple[Writer, Capture], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is new is looked at, all of it only where the axis makes room, or where much lies beyond the limits."""
    whole: list[int] = []
    plain = source._whole

    def counted(capture: Capture, *others: Any, **options: Any) -> Any:
        whole.append(capture.extent(NAME, 0)[0])
        return plain(capture, *others, **options)

    monkeypatch.setattr(source, "_whole", counted)
    values = np.random.default_rng(3).normal(size=(3000, UNITS)).astype(np.float32)
    values[1400, 3], values[1650, 4] = np.nan, np.inf
    for start in range(0, 3000, 50):
        if start == 2000:
            values[start:] *= 5
        capture = add(live, start, values[start : start + 50])
        levels, nan, infinite = glance(capture, capture.channels[NAME], 0)
        assert (nan, infinite) == (start >= 1400, start >= 1650), "the legend has what is drawn"
        assert levels.clipped <= source.MOST_BEYOND
        exact = plain(capture, capture.channels[NAME], 0, growing=True)[0]
        assert levels.high == pytest.approx(exact.high, rel=0.3)
    rooms = len({room_for(n) for n in range(50, 3001, 50)})
    assert len(whole) < rooms + 20, f"{len(whole)} of 60 looks were at all of it: {whole}"
    assert any(2000 < n < 2400 for n in whole), "numbers of another size have other limits"


def test_the_axis_of_a_growing_run_stays_until_there_is_no_room(qtbot: Any) -> None:
    steps, moved = StepRange(), []
    steps.changed.connect(lambda low, high: moved.append((low, high)))
    for count in range(50, 10_001, 50):
        steps.set_length(count, growing=True)
        low, high = steps.bounds
        assert low == -0.5 and count - 0.5 <= high, "every step is in view"
        assert high + 0.5 <= max(50, 1.4 * count), "not much more than there is"
    assert len(moved) < 25 and steps.length == 10_000
    steps.set_length(10_001, growing=True)
    assert steps.bounds == (-0.5, 12_999.5)
    qtbot.waitUntil(lambda: steps.bounds == (-0.5, 10_000.5), timeout=5_000)
    steps.set_length(20_000)
    assert steps.bounds == (-0.5, 19_999.5), "another sequence is shown as it is"
    steps.set(10, 20)
    steps.set_length(20_100, growing=True)
    assert steps.bounds == (10, 20), "a part stays in view"


def test_a_long_map_is_drawn_a_part_at_a_time_and_then_looks_the_same(
    live: tuple[Writer, Capture], qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = add(live, 0, numbers(9000))
    whole = Screen()
    expected = whole.show(capture)
    assert whole.row.map._growing.whole
    monkeypatch.setattr(growing_image, "SLICE_SECONDS", -1.0)  # the first part alone has time
    screen = Screen()
    reached = []
    screen.show(capture)
    for _ in range(4):
        reached.append(screen.row.map._growing.stop)
        screen.view.grab()
    assert reached == sorted(reached) and reached[0] < reached[1] < reached[-1] == 9000
    assert np.array_equal(screen.show(capture), expected)


def test_a_picture_in_a_file_has_all_parts(live: tuple[Writer, Capture], monkeypatch: pytest.MonkeyPatch) -> None:
    capture = add(live, 0, numbers(9000))
    monkeypatch.setattr(growing_image, "SLICE_SECONDS", -1.0)
    screen = Screen()
    screen.show(capture)
    assert not screen.row.map._growing.whole
    image = QImage(400, 300, QImage.Format.Format_ARGB32)
    painter = QPainter(image)
    screen.view.scene().render(painter)
    painter.end()
    assert screen.row.map._growing.whole


def test_a_shown_map_goes_on_by_itself(
    live: tuple[Writer, Capture], qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = add(live, 0, numbers(20_000))
    monkeypatch.setattr(growing_image, "SLICE_SECONDS", -1.0)
    screen = Screen()
    qtbot.addWidget(screen.view)
    screen.view.show()
    screen.show(capture)
    qtbot.waitUntil(lambda: screen.row.map._growing.whole)


def test_a_run_has_the_same_colours_whenever_it_is_drawn(live: tuple[Writer, Capture], qtbot: Any) -> None:
    writer, capture = live
    random = np.random.default_rng(4)
    cursor, steps = Cursor(), StepRange()
    panel: Any = PANELS["states"](cursor, steps, LIGHT)
    qtbot.addWidget(panel)
    steps.set_lengths({"step": 6000})
    add(live, 0, (3 * random.uniform(-1, 1, size=(1000, UNITS))).astype(np.float32))
    panel.set_capture(capture)
    for start in range(1000, 1300, 50):  # they become smaller: what was drawn meanwhile keeps wider limits
        add(live, start, (0.1 * random.uniform(-1, 1, size=(50, UNITS))).astype(np.float32))
        panel.refresh(frozenset({NAME}))
    while_it_ran = panel.row.bar.levels
    writer.write(RunStop("done"))
    writer.flush()
    capture.refresh()
    panel.refresh(frozenset())
    ended = panel.row.bar.levels
    panel.redraw()
    assert panel.row.bar.levels == ended != while_it_ran
    other: Any = PANELS["states"](cursor, steps, LIGHT)
    qtbot.addWidget(other)
    with open_capture(capture.path) as again:
        other.set_capture(again)
        assert (other.row.bar.levels.low, other.row.bar.levels.high) == (ended.low, ended.high)
        other.set_capture(None)
    panel.set_capture(None)
