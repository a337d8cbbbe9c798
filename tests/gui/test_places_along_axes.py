"""Where channels lie along step axes is looked for once, and again once a channel is described anew."""

from __future__ import annotations

import numpy as np
import pytest
from panel_captures import channel

from inspector.gui.state import step_axes
from inspector.gui.state.step_axes import places_along
from inspector.records import Channel


def test_places_are_looked_for_once_until_a_channel_is_described_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    real = step_axes._places_of
    monkeypatch.setattr(step_axes, "_places_of", lambda channels: (looked.append(1), real(channels))[1])

    class Two:
        channels: dict[str, Channel]

    one, two = Two(), Two()
    one.channels = {"a:h": channel("a:h", "state", ("step", "unit"), np.zeros((3, 2)))[0]}
    two.channels = {"b:h": channel("b:h", "state", ("step", "unit"), np.zeros((3, 2)))[0]}
    for _ in range(5):
        assert (places_along(one), places_along(two)) == ({"a": "step"}, {"b": "step"})  # type: ignore[arg-type]
    assert len(looked) == 2
    one.channels["a:h"] = one.channels["a:h"].over("sound")
    assert places_along(one) == {"a": "sound"} and places_along(two) == {"b": "step"}  # type: ignore[arg-type]
    one.channels["c:h"] = channel("c:h", "state", ("step", "unit"), np.zeros((3, 2)))[0]
    assert places_along(one) == {"a": "sound", "c": "step"}  # type: ignore[arg-type]
    assert len(looked) == 4
