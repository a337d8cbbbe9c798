"""Where there are very many heads the panel is drawn after the rows of tabs, which are laid out when it is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, write_frames

from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.attention import VERY_MANY

STEPS, EACH = 3, 8


@pytest.mark.parametrize("heads", [EACH, VERY_MANY])
def test_very_many_heads_are_drawn_in_their_turn(tmp_path: Path, qtbot: Any, heads: int) -> None:
    weights = np.full((EACH, STEPS, STEPS), 1 / STEPS, np.float32)
    maps = [
        channel(f"layer{n}:attention", "attention", ("head", "query", "key"), weights, limits=(0, 1),
                domains={"query": "step", "key": "step"})
        for n in range(heads // EACH)
    ]  # fmt: skip
    with open_capture(write_frames(tmp_path / "heads", *maps)) as capture:
        stage = Stage(capture, (900, 600))
        panel: Any = stage.panel("attention")
        drawn: list[bool] = []
        panel.say_on_screen(False)
        panel.stale = True
        panel.drawn.connect(lambda: drawn.append(True))
        panel.say_on_screen(True)
        assert bool(drawn) is (heads < VERY_MANY)
        qtbot.waitUntil(lambda: panel.on_screen and not panel.stale, timeout=30_000)
        assert drawn and panel.state == "figure"
        assert sum(len(group) for _, group in panel.atlas._groups) == heads
        stage.close()


def test_without_a_capture_nothing_waits(tmp_path: Path, qtbot: Any) -> None:
    weights = np.full((1, STEPS, STEPS), 1 / STEPS, np.float32)
    one = channel("layer:attention", "attention", ("head", "query", "key"), weights,
                  domains={"query": "step", "key": "step"})  # fmt: skip
    with open_capture(write_frames(tmp_path / "one", one)) as capture:
        stage = Stage(capture, (900, 600))
        panel: Any = stage.panel("attention")
        panel.set_capture(None)
        assert not panel.takes_long()
        stage.close()
