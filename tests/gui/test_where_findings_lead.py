"""A click on a finding of a training shows its iterations as the command line does: some, with others around, or all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened
from PySide6.QtWidgets import QApplication

from inspector.capture import Writer, open_capture
from inspector.gui.panel.overview.finding_cards import lead_to
from inspector.records import Channel, Finding, Page, RunStart, RunStop

LOSS = "training:loss"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loss of 500 iterations, every hundredth of which was recorded."""
    made = tmp_path_factory.mktemp("t") / "t.inspect"
    with Writer(made, RunStart(run="r", title="t")) as writer:
        for name, kind, values in (
            (LOSS, "series", np.linspace(2, 1, 500)),
            ("training:iteration", "coordinate", np.arange(500.0) * 100),
        ):
            writer.write(Channel(name=name, kind=kind, dims=("iteration",), shape=(None,), dtype="float64", title=name))
            writer.write(Page(name, 0, (0,), values))
        writer.write(RunStop("done"))
    return made


def finding(rule: str, *iterations: int) -> Finding:
    return Finding(rule=rule, severity="info", place="", message="m", evidence=(LOSS,), iterations=iterations)


def test_some_around_one_and_all_of_a_trend(path: Path) -> None:
    with open_capture(path) as capture:
        assert lead_to(finding("loss-spike", 30_000), capture).around == (28_000, 32_000)
        assert lead_to(finding("diverged", 30_000), capture).around == ()
        assert lead_to(finding("loss-spike", 100, 49_000), capture).around == (), "nearly all of it"
        none = Finding(rule="loss-spike", severity="info", place="", message="m", iterations=(3,))
        assert lead_to(none, capture).around is None


def test_the_window_shows_them(path: Path, qtbot: Any, qapp: QApplication) -> None:
    def seen() -> tuple[float, float]:
        shown: Any = window.panels.get("training")
        low, high = shown.shown[0].vb.viewRange()[0] if shown.shown else (np.nan, np.nan)
        return low, high

    with opened(qtbot, background=False) as window, open_capture(path) as capture:
        window.open_capture(str(path))
        qtbot.wait(200)
        window.go_to(lead_to(finding("loss-spike", 30_000), capture))
        qtbot.waitUntil(lambda: seen() == pytest.approx((28_000, 32_000), abs=500))
        window.go_to(lead_to(finding("diverged", 30_000), capture))
        qtbot.waitUntil(lambda: seen()[0] <= 0 and seen()[1] >= 49_900)
