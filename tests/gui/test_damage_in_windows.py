"""What a window and its files say of a capture that is damaged."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import NAME, START, change, channel, flip, numbers, write
from damaged_pages import pages_of
from opened import opened
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QDialog, QPlainTextEdit

from inspector.capture import DamagedError, Writer, open_capture
from inspector.gui.export.figure_files import save_data, save_figure
from inspector.gui.export.headless import export_panel
from inspector.gui.widgets.gaps import Gaps
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.window.bars.damage_bar import DamageBar
from inspector.records import Channel, Page, RunStop, ViewAt

# -- files


def test_a_figure_of_damaged_cells_is_written_only_when_asked_for_and_says_so(tmp_path: Path, qtbot: Any) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    plain, _ = export_panel(path, ViewAt(panel="states"), tmp_path / "plain.png")
    flip(path, 2)
    for suffix in ("png", "svg", "pdf"):
        target = tmp_path / f"x.{suffix}"
        with pytest.raises(DamagedError, match=r"States shows damaged data: .*steps 8–15"):
            export_panel(path, ViewAt(panel="states"), target)
        assert not target.exists()
        written, lost = export_panel(path, ViewAt(panel="states"), target, damaged=True)
        assert written == target and "steps 8–15" in lost and target.stat().st_size > 5000
    image, before = QImage(str(tmp_path / "x.png")), QImage(str(plain))
    assert image.height() > before.height()
    below = image.copy(0, before.height(), image.width(), image.height() - before.height())
    assert QColor(LIGHT.error).name() in {
        below.pixelColor(x, y).name() for x in range(300) for y in range(below.height())
    }


def test_damage_of_what_a_panel_does_not_draw_holds_nothing_back(tmp_path: Path, a_capture: Path, qtbot: Any) -> None:
    path = tmp_path / "a.inspect"
    shutil.copytree(a_capture, path)
    flip(path, pages_of(path)["attn:attention"][0])
    assert export_panel(path, ViewAt(panel="states"), tmp_path / "x.png") == (tmp_path / "x.png", "")


def test_a_channel_that_cannot_be_read_may_be_what_a_panel_would_show(tmp_path: Path, qtbot: Any) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    change(path, "UPDATE channels SET record = '{'")
    with pytest.raises(DamagedError, match="perhaps because"):
        export_panel(path, ViewAt(panel="states"), tmp_path / "x.png")


def test_numbers_of_a_panel_are_empty_where_they_are_not_known(tmp_path: Path, qtbot: Any, stage_of: Any) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    flip(path, 2)
    panel = stage_of(path).panel("states")
    lines = save_data(panel, tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1] == f"{NAME},0,0,1.0" and lines[1 + 8 * 4] == f"{NAME},8,0,"
    found = np.load(save_data(panel, tmp_path / "x.npz"))
    assert found[f"{NAME}_missing"][8:16].all() and found[f"{NAME}_missing"].sum() == 32
    save_figure(panel, tmp_path / "x.png")


# -- the window


def test_the_bar_comes_by_itself_says_what_is_damaged_and_goes_with_the_capture(tmp_path: Path, qtbot: Any) -> None:
    """Nobody looks at the damaged channel: it is found in the background, whatever is drawn."""
    path, other = tmp_path / "a.inspect", write(tmp_path / "b.inspect", numbers())
    with Writer(path, START) as writer:
        writer.write(channel())
        writer.write(Page(NAME, 0, (0, 0), np.ones((8, 4), np.float32)))
        for name in ("x.l0:never_drawn", "x.l1:never_drawn"):
            writer.write(Channel(name=name, kind="health", dims=("step", "point"), shape=(4, 3)))
            writer.write(Page(name, 0, (0, 0), np.ones((4, 3), np.float32)))
        writer.write(RunStop("done"))
    flip(path, 2)
    flip(path, 3)
    with opened(qtbot) as window:
        window.open_capture(str(path))
        qtbot.waitUntil(window.damage.isVisible)
        qtbot.waitUntil(lambda: window.damage.line.whole.startswith("2 damaged pages: x.l0:never_drawn, steps 0–3"))
        assert "page 2 in pages-0000.bin has changed since it was written … and 1 more." in window.damage.line.whole
        window.damage.more.click()
        (dialog,) = window.damage.findChildren(QDialog)
        text = dialog.findChild(QPlainTextEdit).toPlainText()
        assert text.splitlines() == window.session.capture.damaged
        dialog.reject()
        window.open_capture(str(other))
        qtbot.waitUntil(lambda: not window.damage.isVisible())


def test_a_capture_that_is_cut_while_it_is_shown_is_marked_and_the_window_goes_on(tmp_path: Path, qtbot: Any) -> None:
    path = write(tmp_path / "a.inspect", np.ones((4000, 8), np.float32), rows=500)
    with opened(qtbot) as window:
        window.open_capture(str(path))
        qtbot.waitUntil(lambda: window.panels["states"].state == "figure")
        qtbot.wait(50)
        assert not window.damage.isVisible()
        os.truncate(path / "pages-0000.bin", 500 * 8 * 4 * 3)
        qtbot.waitUntil(window.damage.isVisible, timeout=10_000)
        qtbot.waitUntil(lambda: len(window.session.capture.damage) == 5, timeout=10_000)
        panel = window.panels["states"]
        qtbot.waitUntil(lambda: panel.row.map._gaps == Gaps(damaged=(((1500, 4000), (0, 8)),)), timeout=10_000)
        panel.grab()
        assert panel.state == "figure"


def test_an_index_that_breaks_while_it_is_shown_is_told_in_the_bar(tmp_path: Path, qtbot: Any) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    with opened(qtbot) as window:
        window.open_capture(str(path))
        qtbot.wait(50)
        change(path, "ALTER TABLE notes RENAME TO other")
        qtbot.waitUntil(lambda: "notes" in window.damage.line.whole)
        assert window.panels["states"].state == "figure"


def test_the_bar_never_makes_the_window_wider(qtbot: Any, tmp_path: Path) -> None:
    long = "x" * 900 + ":h"
    path = write(tmp_path / "a.inspect", numbers(), name=long)
    flip(path, 1)
    bar = DamageBar()
    qtbot.addWidget(bar)
    bar.resize(600, 30)
    with open_capture(path) as capture:
        capture.verify()
        bar.show_capture(capture)
        assert bar.minimumSizeHint().width() < 300
        bar.show()
        assert "…" in bar.line.text() and bar.grab().width() == 600
        bar.show_capture(None)
        assert not bar.isVisible()


def test_every_panel_in_the_window_says_what_of_it_is_damaged(tmp_path: Path, a_capture: Path, qtbot: Any) -> None:
    path = tmp_path / "a.inspect"
    shutil.copytree(a_capture, path)
    flip(path, pages_of(path)["rnn.l0:jacobian/singular_values"][1])
    with opened(qtbot) as window:
        window.open_capture(str(path))
        window.docks["spectra"].raise_()
        qtbot.waitUntil(window.damage.isVisible)
        from inspector.gui.panel.damaged import PanelNote

        notes = {key: panel.findChild(PanelNote) for key, panel in window.panels.items()}
        qtbot.waitUntil(lambda: "singular_values, steps 100–199" in notes["spectra"].label.text())
        assert notes["spectra"].label.isVisibleTo(window.panels["spectra"])
        assert not notes["states"].label.isVisibleTo(window.panels["states"])
