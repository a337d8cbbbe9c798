"""A machine that is busy changes nothing that these tests look at."""

from __future__ import annotations

import math

import pytest


@pytest.fixture(autouse=True)
def no_state_is_sent_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """States of a cell that runs slowly are sent before it is known to be a part of a larger step."""
    monkeypatch.setattr("inspector.engine.probes.cells.LIVE_SECONDS", math.inf)
