"""A listener at a free port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from network import SECRET

from inspector.transport.network.listener import Listener


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    with Listener(tmp_path / "kept", SECRET) as found:
        yield found
