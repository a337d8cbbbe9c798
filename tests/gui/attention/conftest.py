"""The panel of attention with a run of twelve heads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from head_views import ENTROPY, PLACES, TYPES, WEIGHTS, T
from panel_captures import channel, write_frames
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from inspector.capture import Capture, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.records import Labels


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Capture]:
    parts: list[Any] = [Labels("step", tuple(f"w{n}" for n in range(T)), -1)]
    for layer, place in enumerate(PLACES):
        parts += [
            channel(f"{place}:attention", "attention", ("head", "query", "key"), WEIGHTS[layer], limits=(0, 1),
                    domains={"query": "step", "key": "step"}),
            channel(f"{place}:attention/allowed", "attention", ("statistic", "query"),
                    np.array([[0] * T, range(T)], np.int32)),
            channel(f"{place}:attention/entropy", "attention_statistic", ("head", "query"),
                    np.repeat(ENTROPY[layer][:, None], T, 1), title="attention entropy"),
            channel(f"{place}:attention/type", "attention_statistic", ("head", "type"), title="head type",
                    values=np.array([[1.0, 0], [0, 1], [1, 0], [1, 0]]), labels={"type": TYPES}),
        ]  # fmt: skip
    with open_capture(write_frames(tmp_path_factory.mktemp("views"), *parts)) as opened:
        yield opened


@pytest.fixture
def stage(capture: Capture, qtbot: Any) -> Iterator[Stage]:
    made = Stage(capture, (1280, 760))
    yield made
    made.close()


@pytest.fixture
def panel(stage: Stage) -> Any:
    made = stage.panel("attention")
    made.hide()  # so that the mouse reaches it
    made.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen, False)
    made.show()
    made.redraw()
    QTest.qWait(20)
    assert made.state == "figure", made._error.toPlainText()
    return made
