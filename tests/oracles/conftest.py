"""Tests against other people's libraries that nothing else needs: `pip install -c constraints.txt '.[oracles]'`.

Without them the tests are skipped; where INSPECTOR_ORACLES is set, as in continuous integration, they must be there.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


@pytest.fixture
def library(request: pytest.FixtureRequest) -> Any:
    """The library that a test names by `@pytest.mark.parametrize("library", [...], indirect=True)`."""
    try:
        return importlib.import_module(request.param)
    except ImportError:
        if os.environ.get("INSPECTOR_ORACLES"):
            raise
        pytest.skip(f"{request.param} is in the extra 'oracles'")
