"""What every test needs: Qt without a screen unless a test asks for one, torch on one thread, user folders in a tmp,
and subprocesses that run the code of this checkout."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("OMP_NUM_THREADS", "1")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # pytest began in the background of a script, and what tests start would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
CHECKOUT = str(Path(__file__).resolve().parents[1])
if os.environ.get("PYTHONPATH", "").split(os.pathsep)[0] != CHECKOUT:
    # subprocesses run this code, not an installed copy
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (CHECKOUT, os.environ.get("PYTHONPATH", ""))))
MOST_PROCESSES = 4
"""Each has torch and Qt in memory, about a gigabyte."""
NUMBERS = count()
MANY = 100
"""Modules that are imported before what they hold is set aside."""
_imported = 0


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """The whole suite is shared between processes, one a core; named tests run in this one, where -s and --pdb work.

    `-n 0` or another number says otherwise, and so does the absence of pytest-xdist.
    """
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not whole or not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    options = config.option
    interactive = options.usepdb or options.capture == "no" or options.collectonly
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if options.numprocesses is None and options.dist == "no" and cores > 1 and not interactive:
        options.numprocesses, options.dist = min(cores, MOST_PROCESSES), "worksteal"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of tests are made, and none of them is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """What modules hold, and all tests that there are, stay and are not searched again by every collection of garbage.

    They are set aside before the first test and whenever many modules have been imported since.
    """
    global _imported
    if len(sys.modules) > _imported + MANY:
        gc.collect()
        gc.freeze()
        _imported = len(sys.modules)
    return (yield)


@pytest.fixture(autouse=True)
def own_user_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Settings, trust decisions and recents of a test never touch those of the person who runs it."""
    folder = tmp_path_factory.getbasetemp() / "users" / str(next(NUMBERS))  # mktemp looks at all that there are
    folder.mkdir(parents=True)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(folder / name.lower()))
    yield folder


@pytest.fixture(autouse=True)
def no_module_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Models that a test wrote to a file, and what they import, are not found by the next test."""
    before, path = frozenset(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    written = str(tmp_path_factory.getbasetemp())
    for name in sys.modules.keys() - before:
        if (getattr(getattr(sys.modules[name], "__spec__", None), "origin", None) or "").startswith(written):
            del sys.modules[name]
