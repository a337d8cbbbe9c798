"""Real captures for the panels, and a check that no window is left behind."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from every_channel import make_capture
from PySide6.QtWidgets import QApplication, QMessageBox

from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.runtime.gc_timer import collect
from inspector.gui.state import folder_look
from inspector.records import ANSWER_DOMAIN


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """As in the window (gui/runtime/gc_timer.py): Qt objects never die in the thread of a writer or of a pipe.

    Around the whole protocol, since fixtures of any scope write captures too. What modules hold is set aside: conftest.py
    of all tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        collect()
        gc.enable()


@pytest.fixture(autouse=True)
def no_window_is_left(qapp: QApplication) -> Iterator[None]:
    """A test that leaves a visible window fails."""
    yield
    qapp.processEvents()
    left = [w for w in qapp.topLevelWidgets() if w.isVisible()]
    for widget in left:
        widget.close()
    assert not left, [(w, w.text()) if isinstance(w, QMessageBox) else w for w in left]


@pytest.fixture(autouse=True)
def folders_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is busy a look at a small folder is waited for as well: tests say what is open after it."""
    monkeypatch.setattr(folder_look, "PATIENCE", 10.0)


CASES = {
    "normal": (300, 32, {}),
    "one step": (1, 4, {}),
    "two units": (50, 2, {}),
    "long": (20_000, 8, {}),
    "wide": (120, 700, {}),
    "broken": (200, 16, {"nan": True}),
    "hostile": (40, 6, {"hostile": True}),
}


@pytest.fixture(scope="session", params=sorted(CASES))
def any_capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of the captures above."""
    steps, units, options = CASES[request.param]
    return make_capture(tmp_path_factory.mktemp("captures") / "a.inspect", steps, units, **options)


@pytest.fixture(scope="session")
def a_capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The normal one."""
    return make_capture(tmp_path_factory.mktemp("captures") / "a.inspect", 300, 32)


@pytest.fixture(scope="session")
def answered_capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same over the steps of an answer."""
    return make_capture(tmp_path_factory.mktemp("captures") / "a.inspect", 40, 8, domain=ANSWER_DOMAIN)


@pytest.fixture
def stage_of() -> Iterator[Callable[[Path], Stage]]:
    """Makes a stage for the capture at a path; closed with its capture at the end."""
    stages = []

    def make(path: Path) -> Stage:
        stages.append(Stage(open_capture(path), (900, 600)))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()
        stage.capture.close()
