"""A run with three layers of four heads, and the mouse over its panel of attention."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

T, HEADS, LAYERS = 40, 4, 3

LEFT, CTRL = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier

TYPES = ("previous", "induction")

PLACES = tuple(f"layers.{n}" for n in range(LAYERS))


def causal(scores: np.ndarray) -> np.ndarray:
    weights = np.where(np.tril(np.ones((T, T), dtype=bool)), np.exp(scores), 0.0)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


WEIGHTS = causal(np.random.default_rng(0).normal(size=(LAYERS, HEADS, T, T)))

ENTROPY = np.arange(LAYERS * HEADS, dtype=np.float32).reshape(LAYERS, HEADS)[:, ::-1]
"""A number of each head: the larger, the later its layer and the earlier it is in it."""


def spot(panel: Any, item: Any, at: QPointF) -> QPoint:
    return panel.figure.mapFromScene(item.mapToScene(at))  # type: ignore[no-any-return]


def cell(panel: Any, layer: int, head: int) -> QPoint:
    return spot(panel, panel.atlas, panel.atlas.cell_at(layer, head).center())


def on_map(panel: Any, query: int, key: int, number: int = 0) -> QPoint:
    return panel.figure.mapFromScene(panel.page.maps[number].plot.vb.mapViewToScene(QPointF(key, query)))  # type: ignore[no-any-return]


def hover(panel: Any, at: QPoint) -> None:
    for place in (at + QPoint(1, 0), at):  # the first move after a pause only enters
        QTest.mouseMove(panel.figure.viewport(), place)
        QTest.qWait(12)


def click(panel: Any, at: QPoint, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.mouseClick(panel.figure.viewport(), LEFT, modifiers, at)
    QApplication.processEvents()


def wheel(panel: Any, at: QPoint, notches: int) -> None:
    view = panel.figure.viewport()
    event = QWheelEvent(
        QPointF(at), QPointF(view.mapToGlobal(at)), QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view, event)
    QApplication.processEvents()


def shown(panel: Any) -> list[tuple[str, list[tuple[int, int]]]]:
    return [(title, [one.key for one in heads]) for title, heads in panel.atlas._groups]


def seen(panel: Any, number: int = 0) -> tuple[list[float], list[float]]:
    across, down = panel.page.maps[number].plot.vb.viewRange()
    return across, down


WHOLE = ([-0.5, T - 0.5],) * 2


# -- how the map is drawn


def indices(panel: Any) -> np.ndarray:
    """The colour numbers of the large map, all of it."""
    item = panel.row.map
    cells, _ = item._look((0.0, 0.0, float(T), float(T)), (T, T))
    found: np.ndarray = item._levels.index(cells)
    return found
