"""What every test needs: Qt without a screen unless a test asks for one, torch on one thread, user folders in a tmp,
and subprocesses that run the code of this checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("OMP_NUM_THREADS", "1")
CHECKOUT = str(Path(__file__).resolve().parents[1])
if (
    os.environ.get("PYTHONPATH", "").split(os.pathsep)[0] != CHECKOUT
):  # subprocesses run this code, not an installed copy
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (CHECKOUT, os.environ.get("PYTHONPATH", ""))))


@pytest.fixture(autouse=True)
def own_user_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Settings, trust decisions and recents of a test never touch those of the person who runs it."""
    folder = tmp_path_factory.mktemp("user")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(folder / name.lower()))
    yield folder
