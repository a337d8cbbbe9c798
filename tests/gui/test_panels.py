"""Every panel of the registry over every capture: it draws, its numbers are the capture's, its failures stay its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage

from inspector.capture import CaptureError, open_capture
from inspector.gui.export.figure_files import copy_figure, forget_clipboard, save_data, save_figure
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.base import Panel
from inspector.gui.panel.registry import PANELS, ordered
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.theme import LIGHT

ORDER = [key for key, _ in ordered()]


def colours(image: QImage) -> int:
    """How many different colours a picture has (an empty one has one)."""
    small = image.scaled(200, 120).convertToFormat(QImage.Format.Format_RGB32)
    return len({small.pixel(x, y) for x in range(0, 200, 2) for y in range(0, 120, 2)})


def test_the_registry_loads_and_describes_itself() -> None:
    PANELS.load()
    assert not PANELS.broken and len(ORDER) == len(set(ORDER)) == len(PANELS)
    for key, panel in ordered():
        assert panel.key == key and panel.title and panel.hint.endswith(".")


@pytest.mark.parametrize("key", ORDER)
def test_empty_panels_say_what_is_missing(key: str) -> None:
    panel = PANELS[key](Cursor(), StepRange(), LIGHT)
    panel.set_capture(None)
    assert panel.state == "empty" and panel._empty.text() == panel.hint
    panel.deleteLater()


def test_the_readout_gives_the_exact_number(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (800, 500))
        panel = stage.panel("states")
        stage.cursor.move(step=17, unit=5, place="rnn.l0")
        rows = dict(panel.readout(stage.cursor.position))
        shown = float(rows["h[17, 5]  rnn.l0"])
        assert np.float32(shown) == pytest.approx(capture.array("rnn.l0:h")[17, 5], rel=1e-6)
        stage.close()


def test_a_panel_that_raises_shows_its_own_page_and_the_rest_goes_on(
    a_capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (800, 500))
        good, bad = stage.panel("states"), stage.panel("jacobians")
        monkeypatch.setattr(bad, "update_contents", lambda: 1 / 0)
        for panel in (good, bad):
            panel.redraw()
        assert good.state == "figure" and bad.state == "error"
        assert "division by zero" in bad._error.toPlainText()
        stage.close()


def test_refusals_stand_where_the_picture_would_be(tmp_path: Path) -> None:
    from inspector.capture import Writer
    from inspector.records import Refusal, RunStart

    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Refusal("rnn.l0:gate", "The recomputed steps differ by <b>7</b>."))
    with open_capture(tmp_path / "a.inspect") as capture:
        panel = PANELS["gates"](Cursor(), StepRange(), LIGHT)
        panel.set_capture(capture)
        assert "differ by <b>7</b>" in panel._empty.text()
        assert panel._empty.label.textFormat() == Qt.TextFormat.PlainText
        panel.set_capture(None)
        panel.deleteLater()


def test_similar_units_stand_together_and_the_cursor_finds_them(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (800, 500))
        panel = stage.panel("states")
        for how in ("by similarity", "by variance"):
            panel.order.setCurrentText(how)
            order = panel.row.map.order
            assert sorted(order) == list(range(32))
            assert all(panel.row_of(panel.unit_at(row)) == row for row in range(32))
        variances = np.var(capture.array("rnn.l0:h").astype(float), axis=0)[panel.row.map.order]
        assert variances[0] > variances[-1]
        stage.close()


def test_the_horizon_is_said_in_words(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (800, 500))
        panel = stage.panel("lags")
        assert "after 24 steps vanished" in panel.plot.titleLabel.text
        assert ("lag horizon in steps, by the median  rnn.l0", "24") in panel.readout(stage.cursor.position)
        stage.close()


@pytest.mark.parametrize("key", [key for key in ORDER if key != "weights"])  # whose captures have nothing else
def test_figures_and_numbers_as_files(a_capture: Path, tmp_path: Path, key: str) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (700, 420))
        panel = stage.panel(key)
        svg = save_figure(panel, tmp_path / "f.svg").read_text(encoding="utf-8")
        assert "<svg" in svg and "<text" in svg
        pdf = save_figure(panel, tmp_path / "f.pdf").read_bytes()
        assert pdf.startswith(b"%PDF") and b"/Font" in pdf
        png = QImage(str(save_figure(panel, tmp_path / "f.png")))
        assert (
            png.width() == 2 * panel.picture_size().width() and png.text("Run") == "<b>a run</b>" and colours(png) > 3
        )
        with np.load(save_data(panel, tmp_path / "d.npz")) as archive:
            assert len(archive.files) == len(panel.data())
        assert save_data(panel, tmp_path / "d.csv").read_text(encoding="utf-8").startswith("channel,")
        copy_figure(panel)
        mime = QGuiApplication.clipboard().mimeData()
        assert mime.hasImage() and mime.hasFormat("image/svg+xml")
        forget_clipboard()
        with pytest.raises(CaptureError, match="there are"):
            save_figure(panel, tmp_path / "f.bmp")
        stage.close()


def test_zooming_one_panel_zooms_all(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (700, 420))
        panels = [stage.panel(key) for key in ("states", "jacobians", "gradients")]
        panels[0].row.plot.vb.setXRange(40, 80, padding=0)
        for panel in panels:
            low, high = panel.plots[0].vb.viewRange()[0]
            assert (low, high) == pytest.approx((40, 80))
        stage.steps.show_all()
        assert panels[2].plots[0].vb.viewRange()[0] == pytest.approx([-0.5, 299.5])
        stage.close()


def test_arrow_keys_walk(a_capture: Path, qtbot: object) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (700, 420))
        panel: Panel = stage.panel("states")
        stage.cursor.move(step=10)
        for key, modifier, step in (
            (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, 11), (Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier, 21),
            (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, 20), (Qt.Key.Key_Home, Qt.KeyboardModifier.NoModifier, 0),
            (Qt.Key.Key_End, Qt.KeyboardModifier.NoModifier, 299),
        ):  # fmt: skip
            qtbot.keyClick(panel, key, modifier)
            assert stage.cursor.position.step == step
        stage.close()
