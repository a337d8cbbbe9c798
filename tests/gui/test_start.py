"""The open dialog by parsing alone, the report of a misfit, the title and the status row, the tour, what is left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtWidgets import QDialogButtonBox, QTableWidget, QWidget
from pytestqt.qtbot import QtBot

from inspector.capture.layout import INDEX
from inspector.engine.trace.shares import part_of
from inspector.gui.dialogs.beside import checkpoints_beside
from inspector.gui.dialogs.callables import described, lone
from inspector.gui.dialogs.dialogs import ReportDialog
from inspector.gui.dialogs.model_dialog import OpenModelDialog
from inspector.gui.state.offered import Offered
from inspector.gui.state.remaining import Remaining
from inspector.gui.state.settings import Settings
from inspector.gui.window.main_window import Window
from inspector.gui.window.model_opening import ModelOpening
from inspector.gui.window.tour import STOPS
from inspector.gui.window.what_is_shown import status_of, title_of
from inspector.records import Catalog, CheckpointReport, Entry, Frame, Mismatch, RunStart
from inspector.records.report import to_meta
from tests.support.opened import finish, opened

MODEL = '''
class Net(Module):
    """A net."""
    def __init__(self, hidden: int = 64, layers=2): pass
def make(hidden=8):
    """The net of the paper.

    More.
    """
def train(): pass
'''


def test_callables_are_described_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(MODEL + "\nopen('canary', 'w')")
    words = [one.words for one in described(tmp_path / "m.py")]
    assert words == ["make(hidden=8)  The net of the paper.", "Net(hidden: int=64, layers=2)  A net.", "train()"]
    assert lone(tmp_path / "m.py") == "make", "beside classes and trainings it is the only one that makes anything"
    (tmp_path / "two.py").write_text("def make_a(): pass\ndef make_b(): pass")
    assert lone(tmp_path / "two.py") == "" and lone(tmp_path / "none.py") == ""


def test_checkpoints_beside_the_model_are_listed_newest_first_and_fill_the_field(qtbot: object, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(MODEL)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "run.inspect").mkdir()
    (tmp_path / "run.inspect" / INDEX).write_bytes(b"")
    (tmp_path / "run.inspect" / "pages-0000.pt").write_bytes(b"x")  # pages of a capture are none
    for age, name in enumerate(("new.pt", "checkpoints/old.pt", "notes.txt")):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (1e9 - 1000 * age, 1e9 - 1000 * age))
    found = [path.name for path, _ in checkpoints_beside(str(tmp_path / "m.py"), (".pt",))]
    assert found == ["new.pt", "old.pt"]
    dialog = OpenModelDialog()
    qtbot.addWidget(dialog)
    dialog.suffixes = (".pt",)
    dialog.subject.setText(str(tmp_path / "m.py"))
    assert dialog.makers.count() == 3 and dialog.weights.count() == 2
    dialog.makers.itemClicked.emit(dialog.makers.item(1))
    dialog.weights.itemClicked.emit(dialog.weights.item(0))
    assert dialog.load().subject == f"{tmp_path / 'm.py'}:Net" and dialog.load().checkpoint == str(tmp_path / "new.pt")
    again = OpenModelDialog()
    qtbot.addWidget(again)
    again.show_fields(dialog.fields)
    assert again.load() == dialog.load()
    again.subject.setText(str(tmp_path / "m.py"))
    again.show()
    again._accept()
    assert again.result() and again.load().subject == f"{tmp_path / 'm.py'}:make", "a lone make needs no name"


def test_a_misfit_is_shown_whole_and_cancel_is_the_default(qtbot: object) -> None:
    name, detail = "encoder.layers.11." + "x" * 90, "checkpoint (1024, 4096), model (1024, 2048)"
    report = CheckpointReport(
        path="a.pt", matched=1, total=2, fits=False, mismatches=(Mismatch(name=name, problem="shape", detail=detail),)
    )
    dialog = ReportDialog(report)
    qtbot.addWidget(dialog)
    dialog.show()
    (table,) = dialog.findChildren(QTableWidget)
    metrics = table.fontMetrics()
    for column, text in ((0, name), (2, detail)):
        assert table.item(0, column).text() == text
        assert table.columnWidth(column) >= metrics.horizontalAdvance(text)
    buttons = dialog.findChild(QDialogButtonBox).buttons()
    assert [one.text().replace("&", "") for one in buttons if one.isDefault()] == ["Cancel"]


def test_title_and_status_say_model_checkpoint_frame_and_how_much_was_loaded() -> None:
    report = CheckpointReport(path="last.pt", matched=30, total=32, step=2400)
    start = RunStart(
        run="r", title="LSTM: a passage", subject="dir/m.py:make", checkpoint="dir/last.pt",
        meta={"device": "cuda:0", **to_meta(report)},
    )  # fmt: skip
    one = SimpleNamespace(start=start, frames=[Frame(index=0)])
    assert title_of(one, -1) == "LSTM: a passage · last.pt (step 2,400)"
    assert status_of(one, 0) == ["m.py:make", "last.pt (step 2,400)", "30 of 32 tensors loaded", "cuda:0"]
    two = SimpleNamespace(start=start, frames=[Frame(index=0, step=10), Frame(index=4, step=20, label="b")])
    assert title_of(two, 0) == "LSTM: a passage · last.pt (step 10) · frame 0 of 0–4"
    assert title_of(two, -1) == "LSTM: a passage · last.pt (step 20) · frame 4 of 0–4 (b)"


def test_parts_are_told_as_shares_of_the_whole_and_what_is_left_follows_their_speed() -> None:
    told: list[tuple[float, float, str]] = []
    part = part_of(lambda *one: told.append(one), 2.0, 6.0, 10.0)
    part(1.0, 4.0, "a")
    part(0.0, 0.0, "b")
    assert told == [(3.5, 10.0, "a"), (3.5, 10.0, "b")]
    now = [0.0]
    left = Remaining(lambda: now[0])
    left.take(0.0, 10.0)
    now[0] = 4.0
    left.take(2.0, 10.0)
    assert left.seconds == pytest.approx(16.0)  # a fifth took 4 s
    now[0] = 10.0
    assert left.seconds == pytest.approx((4.0 + 6.0) / 0.4 * 0.6), "the next fifth has taken 6 s already"
    left.take(0.0, 0.0)
    assert left.seconds is None and left.words() == ""


@pytest.fixture
def window(qtbot: object) -> Iterator[Window]:
    with opened(qtbot, background=False, overview=False) as made:
        yield made


def test_the_tour_leads_through_states_lags_and_attention(window: Window, qtbot: object) -> None:
    window.touring.emit()
    for stop in STOPS:
        qtbot.waitUntil(lambda stop=stop: window.tour.callout.title.text() == stop.title, timeout=60_000)
        finish(window, qtbot)
        qtbot.waitUntil(window.tour.callout.isVisible, timeout=5000)
        assert stop.panel in window.docking.seen and window.session.subject == stop.sample
        assert len(window.session.capture.labels("step")) == 300
        assert "tensors loaded" in window.status.what.whole
        if stop is not STOPS[-1]:
            window.tour.callout.go.click()
    window.tour.callout.end.click()
    assert window.tour.callout.isHidden() and window.tour.at == -1


def test_a_dialog_that_is_open_before_torch_has_loaded_lists_checkpoints_and_devices_once_they_are_known(
    qtbot: QtBot, tmp_path: Path
) -> None:
    (tmp_path / "m.py").write_text(MODEL)
    (tmp_path / "new.pt").write_bytes(b"x")
    parent = QWidget()
    qtbot.addWidget(parent)
    models = ModelOpening(parent, lambda _load: None, Settings())
    models.preferred = lambda: "cuda:1" if models.offered.catalog is not None else "cpu"
    models.ask()
    dialog = models.dialog
    assert dialog is not None
    dialog.subject.setText(str(tmp_path / "m.py"))
    assert dialog.makers.count() == 3 and dialog.weights.count() == 0 and not dialog.device.isEnabled()
    dialog.arguments.setText('{"hidden": 9}')
    loader = Entry(key="torch", title="torch", suffixes=(".pt",))
    catalog = Catalog(torch="2", threads=1, devices=("cpu", "cuda:0", "cuda:1"), loaders=(loader,))
    models.know(Offered(catalog))
    assert dialog.weights.count() == 1 and ".pt" in dialog.checkpoints and dialog.device.isEnabled()
    assert dialog.device.currentText() == "cuda:1" and dialog.arguments.text() == '{"hidden": 9}'
    dialog.device.setCurrentText("cuda:0")
    models.know(Offered(catalog))  # another worker
    assert dialog.device.currentText() == "cuda:0", "what was chosen stays"
    dialog.reject()


def test_a_checkpoint_of_a_year_that_no_calendar_has_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(b"")
    try:
        os.utime(path, (2.0**55, 2.0**55))
    except (OSError, OverflowError):
        pytest.skip("files have no such times here")
    (tmp_path / "m.py").write_text("")
    assert [found for found, _ in checkpoints_beside(str(tmp_path / "m.py"), (".pt",))] == [path]
