"""What a test that compiles leaves behind in the process is taken away before the next one."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def as_if_nothing_was_compiled() -> None:
    """Attention is not looked at in a process that compiled something."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is not None:
        utils.counters.clear()
