"""Cycles with Qt objects die in Qt's thread, whoever allocates meanwhile."""

from __future__ import annotations

import gc
import threading

import pytest
from PySide6.QtCore import QObject

from inspector.gui.runtime import gc_timer as collecting


class InCycle:
    """Something that only the collector can free; it notes the thread that it dies in."""

    died_in: list[int] = []  # noqa: RUF012 - shared on purpose

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        self.died_in.append(threading.get_ident())


def test_cycles_die_in_the_thread_of_the_timer(qtbot: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "EVERY_MS", 5)
    gc.collect()
    gc.enable()
    InCycle.died_in.clear()
    parent = QObject()
    collecting.collect_here(parent)
    for _ in range(20):
        InCycle()
    thread = threading.Thread(target=lambda: [[[]] for _ in range(200_000)])
    thread.start()
    thread.join()
    assert not InCycle.died_in, "the other thread collected nothing"
    kept = [[] for _ in range(5_000)]
    qtbot.waitUntil(lambda: len(InCycle.died_in) == 20, timeout=5000)  # type: ignore[attr-defined]
    assert set(InCycle.died_in) == {threading.get_ident()} and kept
