"""Frame times, offscreen: a heatmap while 1,000 steps a second arrive, and 144 thumbnails."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
import pyqtgraph as pg
from harness import Row
from PySide6.QtWidgets import QApplication

from inspector.capture import Writer, open_capture
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.maps.atlas import Atlas, Shown, thumbnail
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.plots.source import changes_of, glance, overview_of
from inspector.gui.widgets.theme import LIGHT
from inspector.records import Channel, Page, RunStart


def p95(values: list[float]) -> float:
    """The 95th percentile."""
    return float(np.percentile(values, 95))


def rows() -> list[Row]:
    """1200 × 800, software raster; CPU time of the process."""
    application = QApplication([])
    found = [_live(), _thumbnails()]
    del application
    return found


def _live() -> Row:
    folder = Path(tempfile.mkdtemp())
    view = pg.GraphicsLayoutWidget(size=(1200, 800))
    steps = StepRange()
    row = MapRow(view, 0, steps, LIGHT, label="unit")
    plain = pg.GraphicsLayoutWidget(size=(1200, 800))
    item = pg.ImageItem()
    plain.addPlot().addItem(item)
    ours, other = [], []
    data = np.random.default_rng(0).normal(size=(10_000, 512)).astype(np.float32)
    channel = Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 512), scale="diverging")
    with Writer(folder / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(channel)
        writer.flush()
        with open_capture(folder / "a.inspect") as capture:
            for step in range(0, 10_000, 50):
                writer.write(Page("a:h", 0, (step, 0), data[step : step + 50]))
                writer.flush()
                began = time.process_time()
                capture.refresh()
                steps.set_length(step + 50, growing=True)
                levels, nan, infinite = glance(capture, channel, 0)
                row.show(
                    overview_of(capture, "a:h", 0),
                    step + 50,
                    512,
                    levels,
                    "1",
                    step,
                    nan=nan,
                    infinite=infinite,
                    changes=changes_of(capture, channel.name, 0),
                )
                view.grab()
                ours.append(time.process_time() - began)
                began = time.process_time()
                item.setImage(data[: step + 50])
                plain.grab()
                other.append(time.process_time() - began)
    shutil.rmtree(folder)
    a, b = p95(ours[20:]), p95(other[20:])
    return Row("live heatmap of 512 units up to 10,000 steps, p95 of a frame / ImageItem", a, b, a / b, "< 8 ms")


def _thumbnails() -> Row:
    weights = [np.random.default_rng(i).random((128, 128)).astype(np.float32) for i in range(144)]
    pictures = [[thumbnail(weights[12 * i + j]) for j in range(12)] for i in range(12)]
    view = pg.GraphicsLayoutWidget(size=(1200, 800))
    atlas = Atlas(LIGHT)
    view.addItem(atlas)
    plain = pg.GraphicsLayoutWidget(size=(1200, 800))
    box = plain.addViewBox()
    items = []
    for i, values in enumerate(weights):
        item = pg.ImageItem(values)
        item.setPos(140 * (i % 12), 140 * (i // 12))
        box.addItem(item)
        items.append(item)
    ours, other = [], []
    for _ in range(12):
        began = time.process_time()
        heads = [(f"layer {i}", [Shown((i, j), pictures[i][j].copy()) for j in range(12)]) for i in range(12)]
        atlas.set_heads(heads, [title for title, _ in heads])
        view.grab()
        ours.append(time.process_time() - began)
        began = time.process_time()
        for item, values in zip(items, weights, strict=True):
            item.setImage(values)
        plain.grab()
        other.append(time.process_time() - began)
    a, b = p95(ours[2:]), p95(other[2:])
    return Row("144 attention thumbnails, p95 of a frame / 144 ImageItems", a, b, a / b, "< 8 ms")
