"""A session with a worker that is played."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import Fake

from inspector.gui.state.session import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    Fake.made = []
    return Session(Fake, tmp_path / "runs")
