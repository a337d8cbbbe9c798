"""What a person reads in every panel is what the capture holds: places, words, units, limits, readouts, saved numbers.

Every case is written with a second frame of other numbers, and the first one is shown.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cases_gradients
import cases_latents
import cases_residual
import cases_runs
import cases_sequences
import cases_units
import numpy as np
import pytest
from panel_captures import SIZE, write_frames
from PySide6.QtWidgets import QApplication
from reading import Case, ColourReader, axis_numbers, look_of, numbers_of, part_of, ticks_of, title_of, words_of

from inspector.capture import open_capture
from inspector.gui.export.figure_files import save_data
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.registry import ordered
from inspector.records import Scalar

CASES = (
    *cases_units.CASES, *cases_gradients.CASES, *cases_runs.CASES, *cases_sequences.CASES, *cases_residual.CASES,
    *cases_latents.CASES,
)  # fmt: skip


def test_every_panel_has_a_case() -> None:
    own = {key for key, panel in ordered() if panel.__module__.startswith("inspector.gui.panels.")}
    own -= {
        "overview",
        "ask",
        "lens",
        "table",
        "weights",
    }  # without a cursor of its own; test_ask, test_lens, test_table_panel, test_weights_panel
    assert own and {case.key for case in CASES} == own, "what is to be read stands in tests/support/cases_*.py"


@pytest.fixture(scope="module", params=CASES, ids=str)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Path]:
    """A case and its capture."""
    case: Case = request.param
    other = [other_run(part) for part in case.parts]
    return case, write_frames(tmp_path_factory.mktemp("reading"), *case.parts, *(part for part in other if part))


def other_run(part: Any) -> Any:
    """The same part in a second frame, with other numbers."""
    if isinstance(part, Scalar):
        same = part.name.endswith("/used")  # a threshold stays where it is from frame to frame
        return replace(part, frame=1, value=part.value if same else part.value * 3 + 7)
    if not isinstance(part, tuple):
        return None
    about, values = part
    changed = values[..., ::-1] * 3 + (1 if values.dtype.kind == "f" else 0)
    return about, changed.astype(values.dtype)


@contextlib.contextmanager
def seen(written: tuple[Case, Path]) -> Iterator[tuple[Case, Any]]:
    """A case and its panel, with the cursor and the marks where the case has them."""
    case, path = written
    with open_capture(path) as capture:
        stage = Stage(capture, SIZE)
        try:
            panel: Any = stage.panel(case.key, frame=0, place=case.place)
            for name, wanted in case.choose.items():
                box = part_of(panel, name)
                box.setCurrentText(wanted) if isinstance(wanted, str) else box.setValue(wanted)
            stage.cursor.move(**case.at)
            for plot, x, y in case.mark:
                panel.pointed(part_of(panel, plot), x, y)
            QApplication.processEvents()
            assert panel.state == "figure", panel._error.toPlainText()
            yield case, panel
        finally:
            stage.close()


def test_axes_and_titles_say_what_is_drawn(written: tuple[Case, Path]) -> None:
    with seen(written) as (case, panel):
        for path, words in case.axes.items():
            plot = part_of(panel, path)
            assert (words_of(plot, "left"), words_of(plot, "bottom")) == words, path
        for path, title in case.titles.items():
            assert title in title_of(part_of(panel, path)), path
        for path, texts in case.ticks.items():
            assert ticks_of(part_of(panel, path), len(texts)) == texts, path


def test_the_colour_of_each_cell_stands_for_its_number(written: tuple[Case, Path]) -> None:
    with seen(written) as (case, panel):
        panel.looking.move(step=None, unit=None, key=None)
        if (dots := getattr(panel, "saturated", None)) is not None:  # they lie over colours
            dots.switch.setChecked(False)
        for path, truth in case.maps.items():
            reader = ColourReader(panel, part_of(panel, path))
            assert reader.unit == case.units[path]
            reader.check(truth, f"{case} {path}")
            reader.check_bar()
            about = case.about(path)
            reader.check_limits(truth, case.limits.get(path), log="log" in about, centred="diverging" in about)


def test_each_curve_has_the_numbers_that_its_name_says(written: tuple[Case, Path]) -> None:
    with seen(written) as (case, panel):
        for path, name, x, y in case.curves:
            found = part_of(panel, path)
            if name:
                entries = [line for line, told in found.entries if told == name]
                assert len(entries) == 1, (path, name, [told for _, told in found.entries])
                looks = [look_of(line) for line, _ in found.entries]
                assert len(set(looks)) == len(looks), f"{path}: two curves look alike, {looks}"
                plot, line = found.plot, entries[0]
            else:
                plot, line = found.getViewBox().parentItem(), found
            drawn = numbers_of(line)
            np.testing.assert_allclose(drawn[0], x, err_msg=f"{path} {name}")
            np.testing.assert_allclose(axis_numbers(plot, drawn[1]), np.asarray(y, np.float64), rtol=1e-6,
                                       err_msg=f"{path} {name}")  # fmt: skip
            low, high = plot.vb.viewRange()[1]
            finite = drawn[1][np.isfinite(drawn[1])]
            assert min(low, high) <= finite.min() and finite.max() <= max(low, high), f"{path} {name} is in view"


def test_the_readout_has_step_place_unit_and_value(written: tuple[Case, Path]) -> None:
    with seen(written) as (case, panel):
        assert tuple(panel.labelled_readout()) == case.told


def test_the_table_of_health_has_each_count_under_its_heading(tmp_path: Path) -> None:
    with seen((cases_runs.HEALTH, write_frames(tmp_path, *cases_runs.HEALTH.parts))) as (_, panel):
        table = panel.table
        heads = [table.horizontalHeaderItem(n).text() for n in range(table.columnCount())]
        assert heads == ["tensor", "NaN", "first bad step", "<0", ">0", "0", "+∞", "−∞"]
        rows = [[table.item(row, n).text() for n in range(table.columnCount())] for row in range(table.rowCount())]
        assert rows == [
            ["rnn.l0:c", "2", "4", "1", "3", "0", "6", "0"], ["rnn.l0:h", "0", "none", "5", "7", "1", "0", "0"],
        ]  # fmt: skip


def test_saved_numbers_are_those_of_the_channels_shown(written: tuple[Case, Path], tmp_path: Path) -> None:
    with seen(written) as (case, panel):
        with np.load(save_data(panel, tmp_path / "a.npz")) as archive:
            assert set(archive.files) == {re.sub(r"[^A-Za-z0-9_.:-]", "_", name) for name in case.saved}
            for name, values in case.saved.items():
                np.testing.assert_array_equal(archive[re.sub(r"[^A-Za-z0-9_.:-]", "_", name)], values)
        rows = list(csv.reader(io.StringIO(save_data(panel, tmp_path / "a.csv").read_text(encoding="utf-8"))))
        assert rows[0][0] == "channel" and rows[0][-1] == "value"
        for name, values in case.saved.items():
            own = [row for row in rows[1:] if row[0] == name]
            assert len(own) == values.size, name
            channel = panel.capture.channels.get(name)  # none for what a panel computes itself
            words = [] if channel is None else [channel.axis_word(dim) for dim in channel.dims]
            for index, row in zip(np.ndindex(values.shape), own, strict=True):
                cells = {head: word for head, word in zip(rows[0][1:-1], row[1:-1], strict=True) if word}
                place = index
                plain = all(word.isdecimal() for word in cells.values())
                if plain and (
                    channel is None or not channel.labels
                ):  # else positions have names, which may look like numbers
                    at = {head: int(word) for head, word in cells.items()}
                    place = tuple(at[word] for word in words) if set(words) == set(at) else tuple(at.values())
                assert float(row[-1]) == pytest.approx(float(values[place]), nan_ok=True), (name, place)
