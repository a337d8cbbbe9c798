"""The panel of attention, offscreen: opening a head of a captured run of 1,024 tokens, frames while it is zoomed, all
heads at once, and the picture of one head against BertViz's page where that is installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
import pyqtgraph as pg
from harness import Row, interleave
from PySide6.QtCore import QRectF
from PySide6.QtWidgets import QApplication

from inspector.capture import Capture, Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.records import Channel, Frame, Labels, Page, RunStart, RunStop

TOKENS, HEADS, LAYERS = 1024, 12, 2
SIZE = (1280, 760)


def rows() -> list[Row]:
    """1280 × 760, software raster; CPU time of the process."""
    application = QApplication([])
    folder = Path(tempfile.mkdtemp())
    try:
        _write(folder / "a.inspect")
        with open_capture(folder / "a.inspect") as capture:
            stage = Stage(capture, SIZE)
            panel: Any = stage.panel("attention")
            panel.complete()
            found = [_opening(stage, panel, capture), _zooming(panel, capture), _bertviz(stage, panel, capture)]
            stage.close()
    finally:
        shutil.rmtree(folder)
    del application
    return [row for row in found if row is not None]


def _write(path: Path) -> None:
    random = np.random.default_rng(0)
    hidden = np.triu(np.ones((TOKENS, TOKENS), dtype=bool), 1)
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Labels("step", tuple(f"w{n}" for n in range(TOKENS)), -1))
        for layer in range(LAYERS):
            name = f"layers.{layer}.attn:attention"
            writer.write(
                Channel(name=name, kind="attention", dims=("head", "query", "key"), shape=(HEADS, TOKENS, TOKENS),
                        dtype="float16", limits=(0.0, 1.0), fill=0.0, domains={"query": "step", "key": "step"})
            )  # fmt: skip
            span = Channel(
                name=f"{name}/allowed", kind="attention", dims=("statistic", "query"), shape=(2, TOKENS), dtype="int32"
            )
            writer.write(span)
            writer.write(Page(span.name, 0, (0, 0), np.array([np.zeros(TOKENS), np.arange(TOKENS)], np.int32)))
            for head in range(HEADS):
                weights = np.exp(2 * random.normal(size=(TOKENS, TOKENS)).astype(np.float32))
                weights[hidden] = 0
                weights /= weights.sum(-1, keepdims=True)
                for query in range(0, TOKENS, 256):
                    writer.write(Page(name, 0, (head, query, 0), weights[None, query : query + 256].astype(np.float16)))
        writer.write(RunStop("done"))


def _turns(functions: dict[str, Callable[[], object]]) -> dict[str, float]:
    return interleave(functions, clock=time.process_time)


def _plain_view() -> tuple[Any, Any]:
    view = pg.GraphicsLayoutWidget(size=SIZE)
    item = pg.ImageItem(axisOrder="row-major")
    view.addPlot().addItem(item)
    return view, item


def _opening(stage: Stage, panel: Any, capture: Capture) -> Row:
    """From the click on another head to its picture; a head that was not shown before, of warm files."""
    view, item = _plain_view()
    name, at = "layers.0.attn:attention", [0]

    def ours() -> None:
        at[0] = (at[0] + 1) % HEADS
        panel.levels._pyramids.clear()
        stage.cursor.move(head=at[0])
        panel.figure.viewport().grab()

    def other() -> None:
        at[0] = (at[0] + 1) % HEADS
        item.setImage(np.sqrt(capture.block(name, 0, (slice(at[0], at[0] + 1),))[0].astype(np.float32)))
        view.grab()

    taken = _turns({"ours": ours, "other": other})
    return Row(
        f"opening a head of {TOKENS} tokens, to its picture / ImageItem of the same numbers",
        taken["ours"], taken["other"], taken["ours"] / taken["other"], "< 50 ms", "masks, levels of detail, tokens, profiles included",
    )  # fmt: skip


def _zooming(panel: Any, capture: Capture) -> Row:
    """The 95th percentile of a frame while the wheel goes in and out."""
    view, item = _plain_view()
    item.setImage(np.sqrt(capture.block("layers.0.attn:attention", 0, (slice(0, 1),))[0].astype(np.float32)))
    plain = item.getViewBox()
    plain.setRange(QRectF(0, 0, TOKENS, TOKENS), padding=0)
    ours, other = [], []
    for number in range(120):
        factor = 0.93 if number % 60 < 30 else 1 / 0.93
        for box, draw, frames in ((panel.row.plot.vb, panel.figure.viewport().grab, ours), (plain, view.grab, other)):
            began = time.process_time()
            box.scaleBy((factor, factor), center=(300, 600))
            draw()
            frames.append(time.process_time() - began)
    a, b = (float(np.percentile(frames[5:], 95)) for frames in (ours, other))
    return Row(f"zooming a head of {TOKENS} tokens, p95 of a frame / ImageItem", a, b, a / b, "< 16 ms")


def _bertviz(stage: Stage, panel: Any, capture: Capture) -> Row | None:
    """Against the page that BertViz's head view writes of 128 tokens, which a browser has still to draw."""
    if importlib.util.find_spec("bertviz") is None:
        return None
    import torch
    from bertviz import head_view

    few = 128
    blocks = [
        capture.block(f"layers.{n}.attn:attention", 0, (slice(0, HEADS), slice(0, few), slice(0, few)))
        for n in range(LAYERS)
    ]
    attention = [torch.from_numpy(np.array(block, np.float32))[None] for block in blocks]
    names, size = [f"w{n}" for n in range(few)], [0]

    def other() -> None:
        size[0] = len(head_view(attention, names, html_action="return").data)

    def ours() -> None:
        panel.levels._pyramids.clear()
        stage.cursor.move(head=(panel.head() + 1) % HEADS)
        panel.figure.viewport().grab()

    taken = _turns({"ours": ours, "other": other})
    note = f"theirs is {size[0] / 1e6:.1f} MB of page for {few} tokens, before a browser draws it; ours {TOKENS} tokens"
    return Row(
        "the picture of a head / BertViz writes its page",
        taken["ours"],
        taken["other"],
        taken["ours"] / taken["other"],
        "",
        note,
    )
