"""*Forget what was tried* at a finding: the menu has it for what was tried there, and the capture loses that alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened

from inspector.analysis.cures import tried
from inspector.capture import CaptureError, Writer, open_capture
from inspector.capture.added import tried_in
from inspector.diagnosis.words import Repeated
from inspector.gui.panel.overview.finding_menu import FORGET
from inspector.gui.panels.overview import _tried
from inspector.gui.window.main_window import Window
from inspector.records import Channel, Entry, Finding, Frame, Page, RunStart, RunStop

FIRST = FORGET.format("")
CURES = (
    Entry(key="clip", title="Clip it", summary="s", rules=("IN301",)),
    Entry(key="warm", title="Warm <b>up</b> & wait", summary="s", rules=("IN301",)),
    Entry(key="other", title="Of another rule", summary="s", rules=("IN205",)),
)
SPIKE = Finding(rule="loss-spike", id="IN301", severity="warning", place="", message="a spike")
VALUES = np.arange(4.0)


def a_run(path: Path) -> Path:
    """A capture of one channel with results of three cures."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="a:state", kind="state", dims=("step",), shape=(4,), dtype="float64"))
        writer.write(Page("a:state", 0, (0,), VALUES))
        for cure in CURES:
            after = np.stack([np.array([3.0, 3.1, 3.2]), np.array([1.0, 1.1, 1.2])])
            for name, dims, values in (
                (f"model:trial/cure/{cure.key}", ("version", "seed", "iteration"), after[..., None].repeat(5, 2)),
                (f"model:trial/cure/{cure.key}/after", ("version", "seed"), after),
            ):
                writer.write(Channel(name=name, kind="cure", dims=dims, shape=values.shape, dtype="float64", unit="nat",
                                     title=f"{cure.title}: loss", labels={"version": ("as it is", "cured")}))  # fmt: skip
                writer.write(Page(name, 0, (0,) * values.ndim, values))
        writer.write(RunStop("done"))
    return path


@pytest.fixture
def window(qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr("inspector.gui.state.session.Session.start_worker", lambda _session: None)
    with opened(qtbot, overview=True) as made:
        made.open_capture(str(a_run(tmp_path / "a.inspect")))
        yield made


def told(window: Window) -> Any:
    """The card of a finding about a spike as it is now, and what can be forgotten there."""
    page, capture = window.panels["overview"].page, window.session.capture  # type: ignore[attr-defined]
    page.findings.know(CURES)
    page.findings.show_findings([Repeated(SPIKE, ())], {}, _tried(capture))
    page.findings.menus[0].fill()
    entries = {action.text(): action for action in page.findings.menus[0].menu().actions()}
    return page.findings.cards[0].small, {text: one for text, one in entries.items() if text.startswith(FIRST)}


def test_the_menu_forgets_what_was_tried_there_and_nothing_else(window: Window, tmp_path: Path) -> None:
    small, entries = told(window)
    assert list(entries) == [FIRST + "Clip it", FIRST + "Warm <b>up</b> && wait"]
    assert "Clip it: it helped" in small and "Warm" in small
    entries[FIRST + "Clip it"].trigger()
    small, entries = told(window)
    assert list(entries) == [FIRST + "Warm <b>up</b> && wait"]
    assert "Clip it" not in small and "Warm" in small
    with open_capture(tmp_path / "a.inspect") as capture:
        assert list(tried_in(capture)) == ["warm", "other"] == [one.cure for one in tried(capture)]
        np.testing.assert_array_equal(capture.array("a:state"), VALUES)


def test_why_nothing_is_forgotten_is_said_on_the_page(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_capture: object, _cures: object) -> None:
        raise CaptureError("a.inspect is read-only.")

    monkeypatch.setattr("inspector.gui.panels.overview.forget_trials", refuse)
    said: list[str] = []
    window.panels["overview"].page.notes.say = said.append  # type: ignore[attr-defined]
    told(window)[1][FIRST + "Clip it"].trigger()
    assert said == ["a.inspect is read-only."]
