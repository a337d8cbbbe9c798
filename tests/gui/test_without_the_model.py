"""A capture from a file offers what its model would have to compute as that: to open the model, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opened import opened
from PySide6.QtWidgets import QMessageBox, QPushButton

from inspector.capture import Writer
from inspector.gui.panel.missing import NOTHING
from inspector.gui.state.needed import EXAMPLE
from inspector.gui.window.main_window import Window
from inspector.gui.window.saving import WITHOUT, complete
from inspector.records import SECONDS, Channel, Load, Page, RunStart, RunStop, Scalar
from inspector.workspace.its_model import load_of

LEFT = ("jacobian/spectral_radius",)


def capture(folder: Path, left: tuple[str, ...] = LEFT, computed: tuple[str, ...] = (), **start: Any) -> str:
    """A capture with states, of which one quantity is left; `computed` were computed without giving anything."""
    import numpy as np

    path = folder / f"{len(list(folder.iterdir()))}.inspect"
    with Writer(path, RunStart(run=str(path), title="t", **start)) as writer:
        writer.write(Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(5, 3)))
        writer.write(Page("rnn:h", 0, (0, 0), np.ones((5, 3), np.float32)))
        norm = Channel(name="rnn:jacobian/spectral_norm", kind="jacobian", dims=("step",), shape=(5,))
        writer.write(norm)
        writer.write(Page(norm.name, 0, (0,), np.ones(5, np.float32)))
        for key in computed:
            writer.write(Scalar(f"{SECONDS}{key}", 0, 0.01))
        writer.write(RunStop("done", left=left))
    return str(path)


def code(folder: Path) -> str:
    """A file of code that nobody has agreed to."""
    (folder / "m.py").write_text("def make():\n    raise RuntimeError\n")
    return f"{folder / 'm.py'}:make"


def offers(window: Window) -> list[str]:
    """The buttons of panels that are to be seen, and what the menu offers."""
    buttons = [button for panel in window.panels.made.values() for button in panel.findChildren(QPushButton)]
    parents = [button.parentWidget() for button in buttons]
    seen = [b.text() for b, parent in zip(buttons, parents, strict=True) if parent is not None and not b.isHidden()]
    menu = window.compute_menu
    return [text for text in seen if "ompute" in text or "model" in text] + [
        action.text() for action in menu.actions() if action.isVisible() and action.isEnabled() and action.text()
    ]


@pytest.fixture
def window(qtbot: Any) -> Any:
    with opened(qtbot) as made:
        qtbot.waitUntil(lambda: made.session.catalog is not None, timeout=60_000)
        yield made


def test_what_is_missing_says_which_model_it_needs_and_opens_it_after_the_question(
    window: Window, qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = code(tmp_path)
    window.open_capture(capture(tmp_path, subject=subject, seed=3))
    panel, dynamics = window.panels["jacobians"], window.panels["dynamics"]
    window.say_what_remains()
    needed = f"It needs the model of this capture, m.py:make: {EXAMPLE}."
    assert panel.remaining.sentence == f"Not computed: jacobian/spectral_radius. {needed}"
    assert dynamics.state == "empty" and dynamics._empty.text().endswith(needed)
    assert set(offers(window)) == {"Open its model", "Open its model…"}, "nothing that can only be refused"
    assert window.compute_menu.why.text() == needed.replace("It needs", "This needs")
    asked: list[Any] = []
    monkeypatch.setattr("inspector.gui.window.main_window.ask_trust", lambda _w, files, *_: asked.append(files))
    dynamics._empty.button.click()
    qtbot.waitUntil(lambda: bool(asked), timeout=60_000)
    assert [Path(file.path).name for file in asked[0].files] == ["m.py"]
    pending = window.session.opening
    assert pending is not None and (pending.subject, pending.seed) == (subject, 3)
    assert set(dynamics.extra) <= set(window.compute_menu.wanted), "it is computed in the run that follows"


@pytest.mark.parametrize("about", [{"training": {}}, {"spike": {}}, {"sweep": {}}, {"log": {}}])
def test_frames_of_a_training_offer_nothing(window: Window, tmp_path: Path, about: dict[str, Any]) -> None:
    window.open_capture(capture(tmp_path, subject=code(tmp_path), meta=about))
    dynamics = window.panels["dynamics"]
    panel = window.panels["jacobians"]
    window.say_what_remains()
    assert offers(window) == [] and "model" not in panel.remaining.sentence.partition("This is a log")[0]
    assert dynamics._empty.text().endswith(window.compute_menu.why.text()) and window.compute_menu.why.text()
    failed: list[str] = []
    window.fail = failed.append  # type: ignore[method-assign, assignment]
    window.compute_also(dynamics.extra)
    assert failed == [window.compute_menu.why.text()] and not window.compute_menu.wanted


def test_an_empty_panel_of_default_quantities_offers_the_model_where_they_were_not_computed(
    window: Window, qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = code(tmp_path)
    window.open_capture(capture(tmp_path, subject=subject))
    gates = window.panels["gates"]
    window.say_what_remains()
    assert gates.state == "empty" and not gates.extra
    assert gates._empty.text().endswith(f"It needs the model of this capture, m.py:make: {EXAMPLE}.")
    assert not gates._empty.button.isHidden() and gates._empty.button.text() == "Open its model"
    asked: list[Any] = []
    monkeypatch.setattr("inspector.gui.window.main_window.ask_trust", lambda _w, files, *_: asked.append(files))
    gates._empty.button.click()
    qtbot.waitUntil(lambda: bool(asked), timeout=60_000)
    assert not window.compute_menu.wanted, "it is computed by default"


def test_an_empty_panel_whose_quantities_gave_nothing_does_not_offer_the_model(window: Window, tmp_path: Path) -> None:
    window.open_capture(capture(tmp_path, (), ("gates",), subject=code(tmp_path)))
    gates = window.panels["gates"]
    window.say_what_remains()
    assert gates.state == "empty" and gates._empty.text().endswith(NOTHING)
    assert gates._empty.button.isHidden()


def test_saving_offers_the_model_or_only_to_save_without(
    window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[list[str]] = []

    def chosen(box: QMessageBox) -> int:
        shown.append([button.text().replace("&", "") for button in box.buttons()])
        next(b for b in box.buttons() if b.text().replace("&", "") == WITHOUT).click()
        return 0

    monkeypatch.setattr(QMessageBox, "exec", chosen)
    window.open_capture(capture(tmp_path, subject=code(tmp_path)))
    assert complete(window, "This") and "Open its model" in shown[0]
    window.open_capture(capture(tmp_path, subject="Net"))
    assert complete(window, "This") and set(shown[1]) == {"Cancel", WITHOUT}


def test_a_model_is_named_only_where_the_name_opens_it(tmp_path: Path) -> None:
    subject = code(tmp_path)
    assert load_of(RunStart(run="r", title="t", subject=subject, seed=2)) == Load(subject=subject, seed=2)
    assert load_of(RunStart(run="r", title="t", subject="adding-elman")) == Load(subject="adding-elman")
    weights = tmp_path / "w.pt"
    for gone, why in (("", "does not name"), ("Net", "an object"), (f"{tmp_path / 'n.py'}:f", "no file")):
        with pytest.raises(LookupError, match=why):
            load_of(RunStart(run="r", title="t", subject=gone))
    with pytest.raises(LookupError, match="no longer there"):
        load_of(RunStart(run="r", title="t", subject=subject, checkpoint=str(weights)))
    weights.touch()
    assert load_of(RunStart(run="r", title="t", subject=subject, checkpoint=str(weights))).checkpoint == str(weights)
