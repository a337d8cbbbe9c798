"""A folder of checkpoints in the window: the list, the sweep in a worker of its own, its frames as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from in_process_worker import InProcessWorker
from opened import opened
from PySide6.QtWidgets import QApplication
from sweeping import ONLY, checkpoints, subject, weights

import inspector
from inspector.gui.dialogs.trust_dialog import TrustDialog
from inspector.gui.state.sweeping import Sweeping
from inspector.gui.window.main_window import Window
from inspector.records import (
    CheckpointList,
    InputSpec,
    ListCheckpoints,
    ListedCheckpoint,
    Load,
    Run,
    Sweep,
    decode,
    encode,
)


@pytest.fixture
def sweeping(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sweeping]:
    monkeypatch.setattr("inspector.gui.state.sweeping.LOOK_SECONDS", 0.0)
    made = Sweeping(InProcessWorker)
    yield made
    made.close()


def until(sweeping: Sweeping, true: Callable[[], bool]) -> list[str]:
    """Tick until something is true; returns the lines that were told meanwhile."""
    lines, end = [], time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, sweeping.sentence
        lines += [line.text for line in sweeping.tick()]
        time.sleep(0.005)
    return lines + [line.text for line in sweeping.tick()]


def request(folder: Path, code: str, **more: Any) -> Sweep:
    run = Run(path=str(folder / "s.inspect"), input=InputSpec(kind="text", value="abca"), only=ONLY)
    return Sweep(paths=(str(folder / "run"),), load=Load(subject=code, trusted=True), run=run, workers=1, **more)


def test_the_list_and_the_frames_are_those_of_the_command(sweeping: Sweeping, tmp_path: Path) -> None:
    checkpoints(tmp_path / "run", (0, 10))
    torch.save({"model": weights(3), "step": 5, "x": 1}, tmp_path / "run" / "b.pt")
    torch.save({"model": {**weights(3), "head.bias": torch.zeros(9)}, "step": 7}, tmp_path / "run" / "wide.pt")
    sweeping.look_into([str(tmp_path / "run")])
    assert sweeping.reading
    until(sweeping, lambda: not sweeping.reading)
    assert [(row.name, row.step, row.state) for row in sweeping.rows] == [
        ("model-0.pt", 0, ""), ("b.pt", 5, ""), ("wide.pt", 7, ""), ("model-10.pt", 10, ""),
    ]  # fmt: skip
    assert sweeping.sentence.startswith("4 checkpoints in the order of the step that each tells itself")
    code = subject(tmp_path)
    sweeping.begin(request(tmp_path, code))
    assert sweeping.running and sweeping.short == "checkpoints: begins"
    until(sweeping, lambda: sweeping.appeared is not None)
    assert sweeping.running and sweeping.appeared == tmp_path / "s.inspect"  # there are frames while it goes on
    lines = until(sweeping, lambda: not sweeping.running)
    assert sweeping.sentence == "3 frames computed, 1 failed." and not sweeping.failed
    assert any("wide.pt, step 7: wide.pt fits" in line for line in lines)
    states = {row.name: row.state for row in sweeping.rows}
    assert states["model-0.pt"] == states["b.pt"] == states["model-10.pt"] == "computed"
    assert states["wide.pt"].startswith("failed: fits 6 of") and sum(row.failed for row in sweeping.rows) == 1
    with (
        inspector.sweep(tmp_path / "run", code, "abca", only=ONLY) as alone,
        inspector.open_capture(tmp_path / "s.inspect") as here,
    ):
        assert [frame.step for frame in here.frames] == [frame.step for frame in alone.frames]
        np.testing.assert_array_equal(here.array("rnn.l0:h", 3), alone.array("rnn.l0:h", 3))


def test_it_goes_on_where_it_was_cancelled_and_takes_new_ones(sweeping: Sweeping, tmp_path: Path) -> None:
    checkpoints(tmp_path / "run", (0, 10))
    code = subject(tmp_path)
    sweeping.begin(request(tmp_path, code, follow=True))
    until(sweeping, lambda: [frame.step for frame in sweeping._frames] == [0, 10])
    checkpoints(tmp_path / "run", (200,))
    until(sweeping, lambda: len(sweeping._frames) == 3)
    sweeping.cancel()
    assert sweeping.cancelling and sweeping.sentence == "Cancelling …"
    until(sweeping, lambda: not sweeping.running)
    assert sweeping.sentence.endswith("Cancelled; begin again to go on from here.")
    checkpoints(tmp_path / "run", (300,))
    sweeping.begin(request(tmp_path, code))
    until(sweeping, lambda: not sweeping.running)
    assert sweeping.sentence == "1 frame computed, 3 there before."


def test_what_is_wrong_is_said(sweeping: Sweeping, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    sweeping.look_into([str(tmp_path / "run")])
    until(sweeping, lambda: not sweeping.reading)
    assert sweeping.failed and sweeping.sentence.startswith("There is no checkpoint in ")
    checkpoints(tmp_path / "run", (0,))
    sweeping.begin(request(tmp_path, f"{tmp_path}/none.py:make"))
    until(sweeping, lambda: not sweeping.running)
    assert sweeping.failed and "none.py" in sweeping.sentence and sweeping.appeared is None


def test_request_and_answer_travel_as_records() -> None:
    listed = ListedCheckpoint(path="/a/b.pt", name="b.pt", step=None)
    for record in (ListCheckpoints(paths=("a", "b")), CheckpointList(checkpoints=(listed,), order="o", generation=2)):
        assert decode(encode(record)) == record


@pytest.fixture
def window(qtbot: Any, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, process=True, background=False) as made:
        yield made


def test_a_dropped_folder_is_listed_run_and_shown_beside_the_open_model(
    window: Window, tmp_path: Path, qtbot: Any, qapp: QApplication
) -> None:
    code, folder = subject(tmp_path), checkpoints(tmp_path / "run", (0, 10))
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
    window.session.open_subject(Load(subject=code, trusted=True), InputSpec(kind="text", value="abcd"))
    window.open_paths([str(folder)])
    dialog = window.sweeps.dialog
    assert dialog is not None and dialog.isVisible() and dialog.fields.checkpoints.text() == str(folder)
    qtbot.waitUntil(lambda: dialog.table.rowCount() == 2, timeout=60_000)
    assert [dialog.table.item(n, 1).text() for n in range(2)] == ["0", "10"]
    qtbot.waitUntil(lambda: window.session.capture is not None and not window.session.busy, timeout=60_000)
    window.sweeps.ask()
    assert dialog.fields.subject.text() == code and dialog.fields.sequence.currentText() == "The one that was run here"
    assert dialog.fields.out.text().endswith("-run-sweep.inspect")
    dialog.fields.out.setText(str(tmp_path / "new" / "s"))
    dialog.go.click()
    assert "ends with .inspect; " in dialog.said.text() and not dialog.sweeping.running
    dialog.fields.out.setText(str(tmp_path / "new" / "s.inspect"))
    dialog.fields.workers.setValue(1)
    dialog.go.click()
    assert dialog.go.text() == "Cancel" and not dialog.fields.subject.isEnabled()
    qtbot.waitUntil(lambda: bool(asked(qapp)), timeout=60_000)  # this worker was not told to trust the code
    dialog.close()  # it goes on without the dialog
    asked(qapp)[0].run_button.click()
    qtbot.waitUntil(lambda: len(getattr(window.session.capture, "frames", ())) == 2, timeout=60_000)
    assert window.session.capture is not None and window.session.capture.path == tmp_path / "new" / "s.inspect"
    qtbot.waitUntil(lambda: window.timeline.view.isVisible(), timeout=60_000)
    assert window.session.loaded is not None and window.session.subject == code  # still open
    qtbot.waitUntil(lambda: not dialog.sweeping.running, timeout=60_000)
    assert dialog.sweeping.sentence == "2 frames computed."


def asked(qapp: QApplication) -> list[TrustDialog]:
    return [one for one in qapp.topLevelWidgets() if isinstance(one, TrustDialog) and one.isVisible()]
