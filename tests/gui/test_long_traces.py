"""The trace of one unit of a state of very many steps: read beside the window, and the numbers of the file in the end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, shown

from inspector.capture import Capture
from inspector.gui.panel import long_traces

STEPS = 5000
STATES = np.random.default_rng(0).normal(size=(STEPS, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_traces, "PART", 1000)


def whole_reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """(thread, steps) of every reading of one unit."""
    seen: list[tuple[str, int]] = []
    block = Capture.block

    def watched(self: Capture, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> Any:
        if len(region) == 2 and region[1].stop is not None and region[1].stop - (region[1].start or 0) == 1:
            first, stop, _ = region[0].indices(STEPS)
            seen.append((threading.current_thread().name, stop - first))
        return block(self, name, frame, region)

    monkeypatch.setattr(Capture, "block", watched)
    return seen


@pytest.mark.parametrize(("panel_key", "kind", "signal"), [("states", "state", "h"), ("lens", "gate", "gate/f")])
def test_a_long_unit_is_read_in_parts_beside_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, panel_key: str, kind: str, signal: str, qtbot: Any
) -> None:
    monkeypatch.setattr("inspector.gui.panels.lens.MOST_OF_GATE", 100)
    seen = whole_reads(monkeypatch)
    with shown(tmp_path, panel_key, channel(f"l:{signal}", kind, ("step", "unit"), STATES)) as (stage, panel):
        stage.cursor.move(unit=2)
        main = threading.main_thread().name
        assert all(steps <= 1 for thread, steps in seen if thread == main), "only the number under the cursor"

        def drawn() -> np.ndarray:
            if panel_key == "states":
                return np.asarray(panel._traced[0][1])
            return np.asarray(panel.drawn_curves[3][0].values)

        qtbot.waitUntil(lambda: np.array_equal(drawn(), STATES[:, 2]), timeout=10_000)
        assert max(steps for thread, steps in seen if thread != main) == 1000


def test_what_is_not_read_yet_is_a_gap_and_a_figure_waits_for_it(tmp_path: Path) -> None:
    with shown(tmp_path, "states", channel("l:h", "state", ("step", "unit"), STATES)) as (_, panel):
        view, found = panel.capture, panel.chosen()
        first = panel.traces.values(view, found, 0, 1)
        assert len(first) == STEPS and (np.isnan(first) | (first == STATES[:, 1])).all()
        panel.complete()
        assert np.array_equal(panel.traces.values(view, found, 0, 1), STATES[:, 1])


def test_short_ones_are_there_at_once(tmp_path: Path) -> None:
    with shown(tmp_path, "states", channel("l:h", "state", ("step", "unit"), STATES[:900])) as (_, panel):
        assert np.array_equal(panel._traced[0][1], STATES[:900, 0]) and not panel.traces.reader.busy
