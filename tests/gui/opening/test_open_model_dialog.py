"""The fields of the dialog that opens a model: what is proposed, missing and completed."""

from __future__ import annotations

from pathlib import Path

import pytest
from opening_windows import press_open, weights_folder
from PySide6.QtCore import Qt

from inspector.gui.dialogs.model_dialog import OpenModelDialog
from inspector.records import Load

# -- the fields of the dialog


@pytest.fixture
def dialog(qtbot: object) -> OpenModelDialog:
    made = OpenModelDialog()
    qtbot.addWidget(made)
    made.show()
    return made


def test_a_file_that_is_chosen_gets_its_likeliest_callable(
    dialog: OpenModelDialog, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.gui.dialogs.model_dialog.QFileDialog.getOpenFileName", lambda *_: (str(models), ""))
    dialog._browse_model()
    assert dialog.subject.text() == f"{models}:make"
    assert dialog._names.stringList() == [f"{models}:{name}" for name in ("make", "Good", "wrong")]
    assert dialog.load() == Load(subject=f"{models}:make")


def test_it_begins_in_its_first_field_each_time(dialog: OpenModelDialog, models: Path) -> None:
    dialog.fill(f"{models}:make")
    dialog.checkpoint.setFocus()
    dialog.reject()
    assert dialog.focusWidget() is dialog.checkpoint
    dialog.show()
    assert dialog.focusWidget() is dialog.subject and dialog.subject.selectedText() == f"{models}:make"


def test_another_model_does_not_get_the_checkpoint_that_was_named_for_the_one_before(
    dialog: OpenModelDialog, models: Path
) -> None:
    """`inspector other.py` opened it with the checkpoint of the last window."""
    other = models.parent / "other.py"
    other.write_text(models.read_text())
    dialog.show_fields({"subject": f"{models}:Good", "checkpoint": "a.pt"})
    dialog.fill(f"{models}:make")
    assert dialog.checkpoint.text() == "a.pt"
    dialog.fill("")
    assert dialog.checkpoint.text() == "a.pt"
    dialog.fill(str(other))
    assert dialog.subject.text() == f"{other}:make" and dialog.checkpoint.text() == ""
    dialog.fill(str(models), "b.pt")
    assert dialog.checkpoint.text() == "b.pt"


def test_the_list_of_checkpoints_marks_the_one_that_is_named(dialog: OpenModelDialog, models: Path) -> None:
    beside = [models.parent / name for name in ("a.pt", "b.pt")]
    for path in beside:
        path.write_bytes(b"")
    dialog.show_fields({"checkpoint": str(beside[0])})
    dialog.fill(f"{models}:make")
    dialog.offer_checkpoints((".pt",))
    assert dialog.weights.count() == 2
    for path in reversed(beside):
        dialog.checkpoint.setText(str(path))
        assert [one.text().split()[0] for one in dialog.weights.selectedItems()] == [path.name]
    dialog.checkpoint.setText("")
    assert not dialog.weights.selectedItems()
    dialog.show_fields({"checkpoint": str(beside[1])})
    dialog.offer_checkpoints((".pt", ".bin"))
    assert [one.text().split()[0] for one in dialog.weights.selectedItems()] == ["b.pt"]


@pytest.mark.parametrize("suffix", ["", ":make"])
def test_what_is_highlighted_by_keys_is_what_opens(
    dialog: OpenModelDialog, qtbot: object, models: Path, suffix: str
) -> None:
    """Another callable than the highlighted one was opened: the arrow keys moved the highlight alone."""
    for name in ("a.pt", "b.pt"):
        (models.parent / name).write_bytes(b"")
    dialog.offer_checkpoints((".pt",))
    dialog.subject.setText(f"{models}{suffix}")
    for found in (dialog.makers, dialog.weights):
        found.setFocus()
        before = dialog.load()
        assert dialog.fields["subject"] == f"{models}{suffix}" or found is dialog.weights, "focus alone chooses nothing"
        qtbot.keyClick(found, Qt.Key.Key_Down)
        (marked,) = found.selectedItems()
        loaded = dialog.load()
        assert loaded != before and marked.data(Qt.ItemDataRole.UserRole) in (loaded.subject, loaded.checkpoint)
    press_open(dialog, qtbot)
    assert not dialog.isVisible() and dialog.load() == loaded
    assert loaded.subject == f"{models}:Good" and loaded.checkpoint


def test_the_device_is_one_of_those_that_are_there(dialog: OpenModelDialog) -> None:
    assert dialog.load().device == "cpu" and not dialog.device.isEnabled()
    dialog.offer_devices(("cpu", "cuda:0", "cuda:1"))
    assert dialog.device.isEnabled() and dialog.load().device == "cpu"
    dialog.device.setCurrentText("cuda:1")
    dialog.offer_devices(("cpu", "cuda:0", "cuda:1"))
    assert dialog.load().device == "cuda:1"
    dialog.offer_devices(("cpu",))
    assert dialog.load().device == "cpu"


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("", "Name the model"),
        ("models.py:", "There is no file models.py."),
        ("{two}:", "Name the callable that makes the model, as in two.py:build_two; two.py has build_two, build_one."),
        ("{two}", "Name the callable that makes the model, as in two.py:build_two; two.py has build_two, build_one."),
        ("{empty}:", "none was found at its top level"),
        ("nowhere", "Name the model"),
    ],
)
def test_what_is_missing_is_said_in_the_dialog(
    dialog: OpenModelDialog, qtbot: object, models: Path, subject: str, said: str
) -> None:
    (models.parent / "empty.py").write_text("x = 1")
    (models.parent / "two.py").write_text("def build_one(): pass\ndef build_two(): pass\n")
    paths = {name: models.parent / f"{name}.py" for name in ("empty", "two")}
    dialog.subject.setText(subject.format(models=models, **paths))
    press_open(dialog, qtbot)
    assert dialog.isVisible() and dialog.problem.isVisible() and said in dialog.problem.text()


def test_make_is_meant_where_a_file_alone_is_typed_whatever_helps_beside_it(
    dialog: OpenModelDialog, qtbot: object, models: Path
) -> None:
    dialog.subject.setText(str(models))
    press_open(dialog, qtbot)
    assert not dialog.isVisible() and dialog.load().subject == f"{models}:make"


def test_what_is_wrong_leaves_the_lists_their_rows(dialog: OpenModelDialog, qtbot: object, tmp_path: Path) -> None:
    names = [f"build_{n}_{'long' * 6}" for n in range(5)]
    (tmp_path / "many.py").write_text("".join(f"def {name}(): pass\n" for name in names))
    (tmp_path / "a.pt").write_bytes(b"")
    dialog.offer_checkpoints((".pt",))
    dialog.subject.setText(str(tmp_path / "many.py"))
    press_open(dialog, qtbot)
    qtbot.waitUntil(lambda: dialog.problem.isVisible() and dialog.makers.isVisible())  # type: ignore[attr-defined]
    last = dialog.makers.visualItemRect(dialog.makers.item(dialog.makers.count() - 1))
    assert dialog.makers.viewport().rect().contains(last) and dialog.makers.count() == 5
    below = dialog.makers.mapTo(dialog, dialog.makers.rect().bottomLeft()).y()
    assert below <= dialog.arguments.mapTo(dialog, dialog.arguments.rect().topLeft()).y()
    lines = dialog.problem.heightForWidth(dialog.problem.width())
    assert dialog.problem.height() >= lines, "and the sentence has its own"


@pytest.mark.qt_log_ignore("does not support")  # popups, without a screen
@pytest.mark.parametrize("suffix", [":make", ""])
def test_enter_opens_though_completions_are_listed(
    dialog: OpenModelDialog, qtbot: object, models: Path, suffix: str
) -> None:
    asked: list[Load] = []
    if not suffix:
        models.write_text(models.read_text().replace("def make(", "def build("))
    dialog.accepted.connect(lambda: asked.append(dialog.load()))
    dialog.subject.clear()
    qtbot.keyClicks(dialog.subject, f"{models}{suffix}")
    list_of = dialog.subject.completer().popup()
    qtbot.waitUntil(list_of.isVisible, timeout=5000)
    qtbot.keyClick(list_of, Qt.Key.Key_Return)
    if suffix:
        assert asked == [Load(subject=f"{models}:make")], "once, by one key"
    else:
        assert not asked and dialog.problem.isVisible() and "Name the callable" in dialog.problem.text()
    list_of.hide()


@pytest.mark.parametrize("subject", ["{models}:make", "package.module:Model", "char-lstm", "{models.parent}/bert"])
def test_what_can_be_asked_for_is(dialog: OpenModelDialog, qtbot: object, models: Path, subject: str) -> None:
    weights_folder(models.parent / "bert", "config.json", "model.safetensors")
    dialog.subject.setText(subject.format(models=models))
    press_open(dialog, qtbot)
    assert not dialog.isVisible()
