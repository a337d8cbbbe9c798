"""The fifteen tasks of a person who diagnoses a training, done at a real window: each returns what was seen.

Its folder has reader.py, the person's own model, with its checkpoint reader.pt beside it. `sitting.py` starts a window.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bracket_reader import UNIT
from person import Person, middle, of_plot, of_row
from person_at_work import (
    Facts,
    at,
    choose,
    drawn,
    finished,
    menu,
    name_file,
    pick,
    row_of,
    tab,
    texts,
)
from PySide6.QtCore import QPoint, QPointF
from PySide6.QtWidgets import QPushButton

TEXT = "ab (cde) f. (gh) a (bc de) fg. " * 4
PATTERN, LETTERS = r"\([^)]*\)", "[ab]+"
LONG = 20_000


def open_own_model(person: Person, folder: Path) -> Facts:
    """1. By the dialog, with a lone `make` and the checkpoint beside the file; then a text of one's own."""
    window = person.window
    person.press(lambda: next(b for b in window.welcome.page.buttons.values() if b.text() == "Open a model…"))
    dialog = person.dialog("OpenModelDialog")
    person.enter(lambda: dialog.subject, str(folder / "reader.py"))
    person.until(lambda: dialog.makers.count() and dialog.weights.count(), "callables and checkpoints that were found")
    listed = person.ask(lambda: [dialog.makers.item(n).text() for n in range(dialog.makers.count())])
    row = lambda: person.click(lambda: of_row(dialog.weights, 0))  # noqa: E731
    person.again_until(row, lambda: dialog.checkpoint.text(), "the checkpoint in its field")
    named = person.ask(lambda: (dialog.subject.text(), dialog.checkpoint.text()))
    person.press(lambda: next(b for b in dialog.findChildren(QPushButton) if b.text().replace("&", "") == "Open"))
    trust = person.dialog("TrustDialog")
    person.press(lambda: trust.run_button)
    finished(person)
    person.alone()
    person.enter(lambda: window.input.line, TEXT)
    person.keys("Return")
    person.until(lambda: "".join(window.session.capture.labels("step")) == TEXT, "the text in the strip")
    finished(person)
    return {"listed": listed, "named": named, "status": person.ask(window.windowTitle),
            "path": person.ask(lambda: str(window.session.capture.path))}  # fmt: skip


def find_the_unit(person: Person, folder: Path) -> Facts:
    """2. Which unit tracks what is between brackets: Ask the text."""
    panel = tab(person, "Ask")
    person.enter(lambda: panel.field, PATTERN)
    choose(person, lambda: panel.kind, "Regular expression")
    person.until(lambda: panel.listed and panel._task.done, "a ranking")
    best = person.ask(lambda: panel.table.rows.names[panel.table.numbers.order[0]])
    row = lambda: person.click(lambda: of_row(panel.table, 0))  # noqa: E731
    person.again_until(
        row, lambda: panel.picked is not None and panel.drawn_tracks()[0] == panel.picked, "the best one drawn"
    )
    found = person.ask(lambda: panel.picked)
    return {"best": best, "r": found.r, "delay": found.delay, "unit": at(person)["unit"],
            "matches": person.ask(lambda: [list(one) for one in panel.job.ranges])}  # fmt: skip


def find_where_gradients_vanish(person: Person, folder: Path) -> Facts:
    """3. The verdict of Lags, and the gradient of one step read by the mouse."""
    lags = tab(person, "Lags")
    said = person.until(lambda: " ".join(lags.plots[0].titleLabel.lines), "a verdict")
    panel = tab(person, "Gradients")
    plot = panel.plots[0]
    low, high = person.ask(lambda: plot.vb.viewRange()[1])
    person.point(lambda: of_plot(panel.figure, plot, 40, (low + high) / 2))
    person.until(lambda: person.window.looking.position.step is not None, "the cursor")
    step = at(person)["step"]
    return {"said": said, "step": step, "norm": row_of(person, "‖∂L/∂h")[1]}


def read_a_weight(person: Person, folder: Path) -> Facts:
    """4. One attention weight, by zooming with the wheel and pointing."""
    panel = tab(person, "Attention")
    look = lambda: of_plot(panel.figure, panel.row.plot, 40, 80)  # noqa: E731
    before = person.ask(lambda: panel.row.plot.vb.viewRange()[0])
    person.point(look)
    for _ in range(5):
        person.tell("click", 4)

    def larger() -> bool:
        low, high = panel.row.plot.vb.viewRange()[0]
        return high - low < 0.6 * (before[1] - before[0])

    person.until(larger, "a larger map")
    person.click(look)
    person.until(lambda: person.window.looking.fixed, "a fixed cursor")
    place = at(person)
    weight = row_of(person, f"attention {place['step']} → {place['key']}")[1]
    title = person.ask(lambda: " ".join(panel.row.plot.titleLabel.lines))
    person.keys("Escape")
    person.until(lambda: not person.window.looking.fixed, "a free cursor")
    return {**place, "weight": weight, "title": title}


def compare_two_pins(person: Person, folder: Path) -> Facts:
    """5. Two steps pinned, their numbers beside each other."""
    panel = tab(person, "States")
    plot = panel.row.plot
    for step in (5, 60):
        before = person.ask(lambda: len(_pins(person)))
        person.click(lambda step=step: of_plot(panel.figure, plot, step, UNIT), hold="shift")  # type: ignore[misc]
        person.until(lambda before=before: len(_pins(person)) == before + 1, "a pin")  # type: ignore[misc]
    pins = person.ask(lambda: [[p.position.step, p.position.unit] for p in _pins(person)])
    return {"pins": pins, "row": row_of(person, "h[", 3), "cursor": at(person)}


def _pins(person: Person) -> Any:
    from inspector.gui.state.pins import pins_of

    return pins_of(person.window.looking).all


def look_through_a_token(person: Person, folder: Path) -> Facts:
    """6. The token lens of two tokens: the one under the cursor, and dashed the first pin."""
    panel = tab(person, "Token")
    title = person.until(lambda: " ".join(panel.plots[0].titleLabel.lines), "a title")
    return {"title": title, "gate": row_of(person, "gate z", 3), "cursor": at(person), "sees": person.ask(
        lambda: sorted({name.split(":")[0] for name in panel.data()}))}  # fmt: skip


def ablate(person: Person, folder: Path) -> Facts:
    """7. The unit held at 0, from the menu of its row; then the difference from the run before."""
    window = person.window
    panel = tab(person, "States")
    person.click(lambda: of_plot(panel.figure, panel.row.plot, 30, UNIT), button=3)
    pick(person, "Edit this unit")
    dialog = person.dialog("EditDialog")
    unit = person.ask(lambda: dialog.unit.value())
    person.enter(lambda: dialog.start, "0")
    person.press(lambda: dialog.go)
    person.until(lambda: len(window.session.capture.frames) == 2, "two frames")
    finished(person)
    person.alone()
    timeline = person.ask(lambda: window.timeline_row.isVisible())
    choose(person, lambda: window.frames.frames, "difference of the two")
    drawn(person, "states")
    person.point(lambda: of_plot(panel.figure, panel.row.plot, 5, UNIT))
    person.until(lambda: window.looking.position.unit == UNIT, "the cursor at the unit")
    return {"unit": unit, "timeline": timeline, "row": row_of(person, "Δ h[", 3), "cursor": at(person),
            "path": person.ask(lambda: str(window.session.capture.path))}  # fmt: skip


def export(person: Person, folder: Path) -> Facts:
    """10. One figure with its numbers; then all panels over all frames."""
    window = person.window
    choose(person, lambda: window.frames.frames, person.ask(lambda: window.frames.frames.itemText(0)))
    person.until(lambda: window.session.background.idle, "all that is computed by itself")
    for where, everything in (("one", False), ("all", True)):
        (folder / where).mkdir()
        menu(person, "File", "Export figures")
        dialog = person.dialog("ExportDialog")
        if everything:
            person.press(lambda dialog=dialog: dialog.every_panel)  # type: ignore[misc]
            person.until(lambda dialog=dialog: dialog.every_panel.isChecked(), "all panels")  # type: ignore[misc]
            choose(person, lambda dialog=dialog: dialog.frames, "every frame")  # type: ignore[misc]
        choose(person, lambda dialog=dialog: dialog.numbers, "CSV")  # type: ignore[misc]
        person.press(lambda dialog=dialog: dialog.go)  # type: ignore[misc]
        name_file(person, folder / where)
        person.until(lambda where=where: f"Exported {folder / where}" in window.session.sentence, "what was exported")  # type: ignore[misc]
        person.alone()
    person.press(lambda: window.frames.plain)
    person.until(lambda: len(window.session.capture.frames) == 1, "the run without edits")
    finished(person)
    return {"one": sorted(f.name for f in (folder / "one").iterdir()),
            "all": sorted(f.name for f in (folder / "all").iterdir()),
            "panels": person.ask(lambda: sorted(k for k, p in window.panels.made.items() if p.state == "figure"))}  # fmt: skip


def choose_colours(person: Person, folder: Path) -> Facts:
    """8. The range of the colours, by dragging the end of the colour bar."""
    panel = tab(person, "States")
    bar = panel.row.bar

    def end(share: float) -> QPoint:
        box = bar._bar()
        where = panel.figure.mapFromScene(bar.mapToScene(QPointF(box.center().x(), box.top() + share * box.height())))
        return panel.figure.viewport().mapToGlobal(where)  # type: ignore[no-any-return]

    before = person.ask(lambda: (bar.levels.low, bar.levels.high))
    drag = lambda: person.drag(lambda: end(0.02), lambda: end(0.3), lambda: bar.in_hand)  # noqa: E731
    person.again_until(drag, lambda: (bar.levels.low, bar.levels.high) != before, "another range")
    person.point(lambda: of_plot(panel.figure, panel.trace, 40, 0.0))
    after = person.still(lambda: (bar.levels.low, bar.levels.high), "a range that stays")
    return {"before": before, "after": after}


def search(person: Person, folder: Path) -> Facts:
    """9. Tokens by a regular expression: Ctrl+F, and the marks on the strip and over the states."""
    person.keys("ctrl+f")
    panel = drawn(person, "ask")
    person.until(lambda: panel.field.hasFocus(), "the keyboard in the field")
    person.keys("ctrl+a")
    person.write(LETTERS)
    asked = _spans(LETTERS)
    person.until(lambda: [list(one) for one in panel.job.ranges] == asked and panel._task.done, f"{asked}")
    person.until(lambda: not panel._poll.isActive(), "what was found is taken over")
    strip = person.ask(lambda: [int(n) for n in person.window.sequence.strip._matched.nonzero()[0]])
    return {"strip": strip, "said": person.ask(panel.said)}


def _spans(pattern: str) -> list[list[int]]:
    return [[m.start(), m.end() - 1] for m in re.finditer(pattern, TEXT)]


def take_notes(person: Person, folder: Path) -> Facts:
    """11a. A bookmark and a note, then the window is closed."""
    tab(person, "States")
    person.keys("Home")
    person.until(lambda: person.window.looking.position.step == 0, "the first step")
    person.click(lambda: _token(person, 7))
    person.until(lambda: person.window.looking.position.step == 7, "the cursor at the token")
    person.keys("ctrl+b")
    person.until(lambda: _notes(person) == 1, "the bookmark")
    person.keys("ctrl+shift+n")
    person.dialog("QInputDialog")
    person.write("closes here")
    person.keys("ctrl+Return")
    person.until(lambda: _notes(person) == 2, "the note")
    person.alone()
    return {"path": person.ask(lambda: str(person.window.session.capture.path)), **at(person)}


def _notes(person: Person) -> int:
    from inspector.capture import notes

    return len(notes(person.window.session.capture))


def _token(person: Person, step: int) -> QPoint:
    """The middle of a token that the strip has in view."""
    strip = person.window.sequence.strip
    there = [x for x in range(strip.width()) if strip.at(QPoint(x, strip.height() // 2)) == step]
    return strip.mapToGlobal(QPoint(there[len(there) // 2], strip.height() // 2))  # type: ignore[no-any-return]


def go_on(person: Person, folder: Path) -> Facts:
    """11b. Another window: where I was."""
    window = person.window
    person.click(lambda: middle(next(one for one in window.welcome.page.cards if one.name == "Continue where I was")))
    person.until(lambda: window.session.loaded is not None and window.session.capture is not None, "model and capture")
    panel = drawn(person, "states")
    person.until(lambda: window.input.line.text().startswith(TEXT[:20]), "the text in the line")
    return {"path": person.ask(lambda: str(window.session.capture.path)), **at(person), "notes": person.ask(
        lambda: _notes(person)), "line": person.ask(window.input.line.text), "title": panel.title}  # fmt: skip


def save_session(person: Person, folder: Path) -> Facts:
    """12a. File ▸ Save session."""
    menu(person, "File", "Save session")
    name_file(person, folder / "mine")
    person.until(lambda: "Saved the session" in person.window.session.sentence, "that it is saved")
    person.alone()
    return at(person)


def session_opened(person: Person, folder: Path) -> Facts:
    """12b. The session that the command line named has run, and is shown where it was saved."""
    window = person.window
    finished(person)
    drawn(person, "states")
    person.until(lambda: window.looking.position.step == 7, "the place")
    return {**at(person), "text": person.ask(lambda: "".join(window.session.capture.labels("step"))),
            "notes": person.until(lambda: _notes(person), "its notes"),
            "path": person.ask(lambda: str(window.session.capture.path))}  # fmt: skip


def follow(person: Person, folder: Path) -> Facts:
    """13. A training that runs, opened by Ctrl+O and followed to its end."""
    window = person.window
    person.alone()
    person.keys("ctrl+o")
    person.dialog("OpenDialog")
    name_file(person, folder / "training.inspect")
    person.until(lambda: "training.inspect" in str(window.session.capture.path), "the training")
    seen: list[int] = []

    def grows() -> bool:
        frames = len(window.session.capture.frames)
        if not seen or frames > seen[-1]:
            seen.append(frames)
        return len(seen) >= 3

    person.until(grows, "frames that come")
    (folder / "enough").touch()
    person.until(lambda: window.session.capture.stop is not None, "its end")
    return {"seen": seen, "frames": person.ask(lambda: len(window.session.capture.frames)),
            "status": person.ask(lambda: window.session.capture.status)}  # fmt: skip


def another_screen(person: Person, folder: Path) -> Facts:
    """15a. What was kept, on another screen: the window is within it, and a weight is read there too."""
    window = person.window
    panel = person.until(lambda: window.session.capture is not None and window.panels.kinds, "the capture")
    panel = tab(person, "Attention")
    person.point(lambda: of_plot(panel.figure, panel.row.plot, 40, 80))
    person.until(lambda: window.looking.position.key is not None, "the cursor in the map")
    place = at(person)
    weight = row_of(person, f"attention {place['step']} → {place['key']}")[1]
    frame, room = person.ask(lambda: (window.frameGeometry(), window.screen().availableGeometry()))
    cut = person.ask(lambda: [t for b in window.docking.tabs.bars() for t in texts(b) if not _whole(b, t)])
    return {**place, "weight": weight, "inside": room.contains(frame), "ratio": window.devicePixelRatio(), "cut": cut}


def _whole(bar: Any, text: str) -> bool:
    rect = bar.tabRect(texts(bar).index(text))
    return bool(bar.rect().contains(rect) and bar.fontMetrics().horizontalAdvance(text) <= rect.width())


def long_text(person: Person, folder: Path) -> Facts:
    """15b. A text of 20,000 letters, and its last step."""
    window = person.window
    finished(person)
    person.alone()
    person.keys("ctrl+o")
    person.dialog("OpenDialog")
    name_file(person, folder / "long.txt")
    person.until(lambda: window.looking.length == LONG, "the long text")
    finished(person)
    panel = tab(person, "States")
    person.click(lambda: of_plot(panel.figure, panel.row.plot, LONG // 2, 1))
    person.keys("End")
    person.until(lambda: window.looking.position.step == LONG - 1, "the last step")
    unit = at(person)["unit"]
    return {"unit": unit, "value": row_of(person, f"h[{LONG - 1}")[1], "line": person.ask(window.input.line.text),
            "path": person.ask(lambda: str(window.session.capture.path))}  # fmt: skip
