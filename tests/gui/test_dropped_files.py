"""What is dropped on the window: shown while it is held over it, taken for what it is, refused in one list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QImage
from PySide6.QtWidgets import QApplication, QMessageBox

from inspector.capture.logs.header_words import training_columns
from inspector.gui.window.main_window import Window
from inspector.gui.window.menus import OpenDialog
from inspector.gui.window.welcome.page import DROP
from inspector.records import InputSpec
from tests.support.opened import finish, opened

COPY, LEFT, NO_KEY = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def window(qtbot: object, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        yield made
        for box in qapp.topLevelWidgets():
            if isinstance(box, QMessageBox):
                box.close()


def boxes(qapp: QApplication) -> list[QMessageBox]:
    return [w for w in qapp.topLevelWidgets() if isinstance(w, QMessageBox) and w.isVisible()]


def held(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def drop(window: Window, *paths: Path) -> None:
    data = held(*paths)
    window.dropEvent(QDropEvent(QPointF(5, 5), COPY, data, LEFT, NO_KEY))


def seen(window: Window) -> QImage:
    return window.welcome.page.zone.grab().toImage()


def test_the_first_page_shows_what_is_held_over_it(window: Window, qapp: QApplication, tmp_path: Path) -> None:
    window.welcome.open()
    qapp.processEvents()
    zone, before, size = window.welcome.page.zone, seen(window), window.welcome.page.zone.size()
    data = held(tmp_path / "<b>one.csv", tmp_path / "two.pt")
    event = QDragEnterEvent(QPoint(5, 5), COPY, data, LEFT, NO_KEY)
    window.dragEnterEvent(event)
    qapp.processEvents()
    assert event.isAccepted() and zone.words.text() == "Let go to open <b>one.csv and 1 more"
    assert seen(window) != before and zone.size() == size
    window.dragLeaveEvent(QDragLeaveEvent())
    qapp.processEvents()
    assert zone.words.text() == DROP and seen(window) == before
    window.dragEnterEvent(QDragEnterEvent(QPoint(5, 5), COPY, data, LEFT, NO_KEY))
    drop(window)
    assert zone.words.text() == DROP


def test_several_that_cannot_be_opened_are_one_list(
    window: Window, qtbot: object, qapp: QApplication, tmp_path: Path
) -> None:
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=30_000)
    wrong = [tmp_path / name for name in ("a.docx", "b <i>x.xyz", "c.txt", "d.inspect")]
    for path in wrong:
        path.write_text("nothing")
    drop(window, *wrong)
    (box,) = boxes(qapp)
    lines = box.text().splitlines()
    assert lines[0] == "4 things could not be done:" and box.textFormat() == Qt.TextFormat.PlainText
    for line, path in zip(lines[2:], wrong, strict=True):
        assert line.startswith("• ") and path.name in line
    assert "is a sequence: open the model that is to read it first" in lines[4]
    box.close()
    qapp.processEvents()
    window.fail("Another one.")  # after it was read, the next begins anew
    assert [box.text() for box in boxes(qapp)] == ["Another one."]


def test_of_several_sequences_one_runs_and_the_others_are_named(
    window: Window, qtbot: object, qapp: QApplication, tmp_path: Path
) -> None:
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    paths = [tmp_path / name for name in ("a.txt", "b.txt", "none.txt", "d.docx")]
    for path in paths:
        if path.stem != "none":
            path.write_text("hello")
    drop(window, *paths)
    assert window.session.spec.value == str(paths[0])
    (box,) = boxes(qapp)
    assert "b.txt, none.txt were not run: one sequence runs at a time, now a.txt." in box.text()
    assert "d.docx cannot be opened here" in box.text()
    finish(window, qtbot)


@pytest.mark.parametrize("order", ["the folder first", "the folder last"])
def test_a_folder_of_sequences_beside_files_runs_or_is_named_as_they_are(
    window: Window, qtbot: object, qapp: QApplication, tmp_path: Path, order: str
) -> None:
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    folder, files = tmp_path / "texts", [tmp_path / f"{name}.txt" for name in "abcdef"]
    folder.mkdir()
    for path in (*files, folder / "x.txt", folder / "y.txt"):
        path.write_text("hello")
    first = order == "the folder first"
    drop(window, *([folder, *files] if first else [*files, folder]))
    assert window.session.spec.value == str(folder if first else files[0])
    (box,) = boxes(qapp)
    one = "runs at a time, now"
    if first:
        assert f"a.txt, b.txt, c.txt and 3 more were not run: one sequence, or one folder of them, {one}" in box.text()
        assert f"{one} texts (a folder)." in box.text()
    else:
        assert box.text().startswith("texts (a folder), b.txt, c.txt and 3 more were not run") and one in box.text()
    finish(window, qtbot)


def test_the_refusal_of_a_folder_is_in_the_box_with_those_of_files(
    window: Window, qtbot: object, qapp: QApplication, tmp_path: Path
) -> None:
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "x.docx").write_text("nothing")
    (tmp_path / "a.txt").write_text("hello")
    drop(window, tmp_path / "texts", tmp_path / "a.txt")
    finish(window, qtbot)
    (box,) = boxes(qapp)
    assert "a.txt was not run" in box.text() and "x.docx has an unknown suffix" in box.text()


def test_logs_are_drawn_together_also_where_another_file_is_none(
    window: Window, qtbot: object, qapp: QApplication, tmp_path: Path
) -> None:
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=30_000)
    wrong, *logs = (tmp_path / name for name in ("a.docx", "b.csv", "c.csv"))
    wrong.write_text("nothing")
    for path in logs:
        path.write_text("step,loss\n0,2.5\n1,2\n2,1.5\n")
    drop(window, logs[0], wrong, logs[1])
    (box,) = boxes(qapp)
    assert "a.docx cannot be opened here" in box.text()
    qtbot.waitUntil(lambda: window.session.capture is not None, timeout=10_000)
    assert [Path(view.path) for view in window.session.capture.whole.views] == logs


def test_a_long_list_ends_and_is_whole_in_its_details(window: Window, qapp: QApplication) -> None:
    for number in range(20):
        window.fail(f"File {number} is none.")
    window.fail("File 3 is none.")
    (box,) = boxes(qapp)
    assert box.text().splitlines()[0] == "20 things could not be done:" and len(box.text().splitlines()) < 12
    assert all(f"File {number} is none." in box.detailedText() for number in range(20))


def test_all_that_come_before_the_worker_is_ready_are_answered(
    window: Window, qtbot: object, qapp: QApplication, tmp_path: Path
) -> None:
    wrong = [tmp_path / name for name in ("a.docx", "b.xyz")]
    for path in wrong:
        path.write_text("nothing")
    catalog, window.session.catalog = window.session.catalog, None
    drop(window, *wrong)
    assert window.session.sentence == "a.docx and 1 more are opened as soon as the worker is ready."
    window.session.catalog = catalog
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=30_000)
    if window._waiting:
        window.offer(window.session.catalog)
    (box,) = boxes(qapp)
    assert all(path.name in box.text() for path in wrong)


HEADERS = {
    "step,loss": ("step", "loss"),
    "epoch;train_loss;val_acc": ("epoch", "train_loss", "val_acc"),
    "iteration\tlr\tx": ("iteration", "lr"),
    "step,x1,x2": (),
    "time,loss": (),
    "1,2,3": (),
    "a step,closset": (),
    "": (),
}


@pytest.mark.parametrize("header", list(HEADERS))
def test_which_headers_are_those_of_trainings(tmp_path: Path, header: str) -> None:
    table = tmp_path / "a.csv"
    table.write_text(f"# comment\n{header}\n0,2.5,1\n1,1.5,2\n")
    assert training_columns(table) == HEADERS[header]
    table.write_bytes(b"\xff\xfe\x00" + header.encode())
    assert training_columns(table) == ()
    assert training_columns(tmp_path / "none.csv") == ()


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (b"step," + b",".join(b"unit %d" % n for n in range(5_000)) + b",loss", ("step", "loss")),
        (("step,loss," + ",".join("é" * n for n in range(1, 90))).encode(), ("step", "loss")),
        ("Schritt,größe,step,loss".encode("latin-1"), ("step", "loss")),
        (b"step," + b"x" * 4086 + b",loss of units that is none", ()),  # 4096 bytes of it end with "loss"
    ],
)
def test_a_header_of_thousands_of_columns_is_read_to_its_end(
    tmp_path: Path, header: bytes, found: tuple[str, ...]
) -> None:
    (tmp_path / "a.csv").write_bytes(header + b"\n0,1,2\n")
    assert training_columns(tmp_path / "a.csv") == found
    assert training_columns(Path("a\0b.csv")) == ()


def test_a_log_that_is_dropped_while_a_model_is_open_is_a_log(window: Window, qtbot: object, tmp_path: Path) -> None:
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    (tmp_path / "metrics.csv").write_text("step,loss\n0,2.5\n1,2\n2,1.5\n")
    drop(window, tmp_path / "metrics.csv")
    qtbot.waitUntil(lambda: window.session.sentence.startswith("metrics.csv is shown"), timeout=10_000)
    said = window.session.sentence
    assert "taken for the log of a training, as its columns step and loss are of one" in said
    assert "to run it as a sequence, choose File in the input row" in said
    assert "parameters:training" in window.session.capture.channels or window.session.capture.channels
    assert window.session.subject == "char-elman", "its model stays open"
    window.input.show_file(str(tmp_path / "metrics.csv"))  # the other way, as it says
    assert window.input.kind.currentText() == "File"


def test_a_series_with_steps_is_run_and_said_to_be(
    window: Window, qtbot: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.open_sample("adding-elman")
    finish(window, qtbot)
    (tmp_path / "x.csv").write_text("step,marker\n0.5,0\n0.25,1\n0.5,0\n0.1,1\n")
    drop(window, tmp_path / "x.csv")
    assert window.session.spec.value == str(tmp_path / "x.csv") and window.session.spec.kind == "file"
    finish(window, qtbot)
    said = [line.text for line in window.session.log]
    assert any("x.csv was run as a sequence" in one and "File ▸ Open as a log…" in one for one in said)

    open_as_log(window, monkeypatch, tmp_path / "x.csv")
    qtbot.waitUntil(lambda: window.session.sentence == "x.csv is shown.", timeout=10_000)


def open_as_log(window: Window, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """A file is chosen in the dialog of the menu."""

    def choose(dialog: OpenDialog) -> bool:
        assert dialog.windowTitle() == "Open a file as the log of a training"
        assert dialog.selectedNameFilter().startswith("Logs")
        dialog.chosen = str(path)
        return True

    monkeypatch.setattr(OpenDialog, "exec", choose)
    action = next(one for one in window.menu_actions if one.text().replace("&", "") == "Open as a log…")
    action.trigger()


@pytest.mark.parametrize("name", ["text.txt", "noise.bin", "model.py"])
def test_what_is_no_log_is_not_run_or_opened_as_something_else_where_a_log_was_asked_for(
    window: Window, qtbot: object, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    shown = window.session.capture.path
    (tmp_path / name).write_text("hello\n")
    open_as_log(window, monkeypatch, tmp_path / name)
    assert not window.session.running and (window.models.dialog is None or not window.models.dialog.isVisible())
    qtbot.waitUntil(lambda: bool(boxes(qapp)), timeout=10_000)
    (box,) = boxes(qapp)
    assert f"{name} is no log" in box.text()
    assert window.session.capture.path == shown and window.session.spec.value == "Alice"


def test_a_capture_that_is_chosen_there_is_opened_as_one(
    window: Window, qtbot: object, a_capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=30_000)
    open_as_log(window, monkeypatch, a_capture)
    qtbot.waitUntil(lambda: window.session.capture is not None, timeout=10_000)
    assert window.session.capture.path == a_capture
