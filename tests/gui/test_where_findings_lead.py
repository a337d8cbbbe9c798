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
from inspector.gui.panel.signals import Lead
from inspector.gui.window.docking.layouts import describe
from inspector.records import Channel, Finding, Labels, Page, RunStart, RunStop

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
        shown: Any = window.panels.get("training")
        told = shown.readout(window.looking.position)[0][0]
        assert "[iteration 30000]" in told, "the cursor is where it begins, though all is in view"
        window.go_to(lead_to(finding("loss-spike", 20_000), capture))
        assert "[iteration 20000]" in shown.readout(window.looking.position)[0][0]


def test_the_curves_of_the_evidence_are_drawn_with_that_of_the_place_first(
    path: Path, tmp_path: Path, qtbot: Any, qapp: QApplication
) -> None:
    """A table by parameter, none of which is drawn at first, and the parameter that is meant is the seventh."""
    names = tuple(f"layer{n}.weight" for n in range(9))
    with Writer(tmp_path / "b.inspect", RunStart(run="r", title="t")) as writer:
        for name in (LOSS, "training:other"):
            writer.write(Channel(name=name, kind="series", dims=("iteration",), shape=(None,), title=name))
            writer.write(Page(name, 0, (0,), np.linspace(2, 1, 60, dtype=np.float32)))
        writer.write(Labels("parameter", names))
        writer.write(Channel(name="parameters:gradient/norm", kind="series", dims=("iteration", "parameter"),
                             shape=(None, None), title="gradient norm"))  # fmt: skip
        writer.write(Page("parameters:gradient/norm", 0, (0, 0), np.ones((60, 9), np.float32)))
        writer.write(RunStop("done"))
    evidence = ("parameters:gradient/norm", "training:other")
    found = Finding(rule="unmoved", severity="warning", place=names[6], message="m", evidence=evidence)
    with opened(qtbot, background=False) as window, open_capture(tmp_path / "b.inspect") as capture:
        assert lead_to(found, capture).curves == evidence
        window.open_capture(str(tmp_path / "b.inspect"))
        qtbot.wait(200)
        window.go_to(lead_to(found, capture))
        shown: Any = window.panels.get("training")
        drawn = {(curve.channel.name, curve.name) for group in shown.groups_shown for curve in group.curves}
        assert ("parameters:gradient/norm", names[6]) in drawn and any(one == "training:other" for one, _ in drawn)
        assert LOSS not in {one for one, _ in drawn}


def test_a_layout_is_kept_whole_while_the_panel_of_a_finding_fills_the_window(
    tmp_path: Path, qtbot: Any, qapp: QApplication
) -> None:
    """A log gives one panel the room of all; the overview behind it takes none when the rows are shown to be kept."""
    (tmp_path / "log.csv").write_text("step,loss\n" + "".join(f"{n},{2 + 0.01 * (n % 3)}\n" for n in range(200)))
    with opened(qtbot, background=False, overview=True) as window:
        window.open_path(str(tmp_path / "log.csv"))
        qtbot.waitUntil(lambda: window.docking.enlarged == "overview", timeout=10_000)
        window.go_to(Lead(panel="training", iterations=(100,)))
        qtbot.waitUntil(lambda: window.docking.enlarged == "training", timeout=10_000)
        kept = describe(window.docking)
        assert "lags" not in kept["hidden"] and "states" not in kept["hidden"] and kept["enlarged"] == "training"
        window.docking.remember(window.settings)
        assert not window.docks["lags"].isHidden() and not window.docks["states"].isHidden()
