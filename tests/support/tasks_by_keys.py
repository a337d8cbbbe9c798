"""The task of a person who has no mouse: one whole diagnosis by keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bracket_reader import SIZE, UNIT
from person import Person
from person_at_work import Facts, at, by_name, drawn, finished, name_file, reach, row_of
from PySide6.QtWidgets import QApplication, QMenu
from tasks_of_a_person import TEXT


def without_a_mouse(person: Person, folder: Path) -> Facts:
    """14. One diagnosis by keys alone: open, run, find, read, change, export."""
    window = person.window
    _open_by_keys(person, folder)
    by_name(person, "lags")
    lags = drawn(person, "lags")
    said = person.until(lambda: " ".join(lags.plots[0].titleLabel.lines), "a verdict")
    read = _read_by_keys(person)
    unit = _edit_by_keys(person)
    person.until(lambda: window.session.background.idle, "all that is computed by itself")
    (folder / "keys").mkdir()
    person.keys("alt+f")
    person.until(lambda: isinstance(QApplication.activePopupWidget(), QMenu), "the menu")
    person.keys("e")
    out = person.dialog("ExportDialog")
    reach(person, lambda: out.go)
    person.keys("space")
    name_file(person, folder / "keys")
    person.until(lambda: f"Exported {folder / 'keys'}" in window.session.sentence, "what was exported")
    return {"said": said, "read": read, "unit": unit, "files": sorted(f.name for f in (folder / "keys").iterdir()),
            "mouse": person.ask(lambda: int(window.property("clicks") or 0))}  # fmt: skip


def _open_by_keys(person: Person, folder: Path) -> None:
    """The own model with its checkpoint, and the own text."""
    window = person.window
    person.until(lambda: window.isActiveWindow() and window.panels.kinds, "the window")
    person.keys("ctrl+m")
    dialog = person.dialog("OpenModelDialog")
    person.until(lambda: dialog.subject.hasFocus(), "the keyboard in the first field")
    person.keys("ctrl+a")
    person.write(f"{folder / 'reader.py'}:make")
    reach(person, lambda: dialog.checkpoint)
    person.keys("ctrl+a")
    person.write(str(folder / "reader.pt"))
    person.keys("Return")
    if person.until(lambda: _asked(window), "a question, or a run") == "asked":
        trust = person.dialog("TrustDialog")
        reach(person, lambda: trust.run_button)
        person.keys("space")
    finished(person)
    person.alone()
    for _ in range(12):
        if person.ask(lambda: window.input.isAncestorOf(QApplication.focusWidget())):
            break
        before = person.ask(QApplication.focusWidget)
        person.keys("F6")
        person.until(lambda before=before: QApplication.focusWidget() is not before, "F6 goes on")  # type: ignore[misc]
    reach(person, lambda: window.input.line)
    person.keys("ctrl+a")
    person.write(TEXT)
    person.keys("Return")
    person.until(lambda: "".join(window.session.capture.labels("step")) == TEXT, "the text in the strip")
    finished(person)


def _asked(window: Any) -> str:
    """Whether code is asked about, or runs: it does not ask again about what was agreed to."""
    if type(QApplication.activeWindow()).__name__ == "TrustDialog":
        return "asked"
    return "runs" if window.session.running or window.session.capture is not None else ""


def _read_by_keys(person: Person) -> str:
    """The unit at the fifth step."""
    window = person.window
    by_name(person, "states")
    drawn(person, "states")
    person.until(lambda: window.docks["states"].isAncestorOf(QApplication.focusWidget()), "the keyboard in the panel")
    person.keys("Home", *["Right"] * 5)
    person.until(lambda: window.looking.position.step == 5, "the fifth step")
    for _ in range(SIZE + 1):
        if (before := at(person)["unit"]) == UNIT:
            break
        person.keys("Down")
        person.until(lambda before=before: window.looking.position.unit != before, "another unit")  # type: ignore[misc]
    return row_of(person, "h[5")[1]


def _edit_by_keys(person: Person) -> int:
    """Hold the unit at 0 from there on; returns which unit the dialog proposed."""
    window = person.window
    person.keys("ctrl+Tab")
    person.until(lambda: "states" not in window.docking.seen, "the next panel")
    person.keys("ctrl+e")
    edit = person.dialog("EditDialog")
    unit = person.ask(lambda: edit.unit.value())
    reach(person, lambda: edit.go)
    person.keys("space")
    person.until(lambda: len(window.session.capture.frames) == 2, "two frames")
    finished(person)
    person.alone()
    by_name(person, "states")
    drawn(person, "states")
    return int(unit)
