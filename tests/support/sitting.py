"""One sitting of a person at a window: what was seen goes into a file.

    python sitting.py SITTING FOLDER [WORD …]

starts `inspector` with these words, as a user does, and does the tasks of one sitting (tasks_of_a_person.py).
FOLDER/SITTING.json then has for each task what the window showed; a task that failed has "failed", those after it are
missing, and FOLDER/SITTING.png is the screen at that moment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tasks_of_a_person as tasks
from person import Person
from person_at_work import Facts, leave
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication
from tasks_by_keys import without_a_mouse

SITTINGS: dict[str, tuple[Callable[[Person, Path], Facts], ...]] = {
    "first": (
        tasks.open_own_model, tasks.find_the_unit, tasks.find_where_gradients_vanish, tasks.read_a_weight,
        tasks.compare_two_pins, tasks.look_through_a_token, tasks.ablate, tasks.export, tasks.choose_colours,
        tasks.search, tasks.take_notes,
    ),
    "second": (tasks.go_on, tasks.save_session), "third": (tasks.session_opened, tasks.follow),
    "keyboard": (without_a_mouse,), "large": (tasks.another_screen,), "dense": (tasks.another_screen,),
    "long": (tasks.long_text,),
}  # fmt: skip


def sit(name: str, folder: Path) -> Callable[[Person], None]:
    """Do the tasks of a sitting, and close the window."""

    def work(person: Person) -> None:
        found: dict[str, Any] = {}
        for task in SITTINGS[name]:
            try:
                found[task.__name__] = task(person, folder)
            except BaseException:  # noqa: BLE001 - told by the test
                subprocess.run(["import", "-window", "root", str(folder / f"{name}.png")], check=False)
                found[task.__name__] = {"failed": traceback.format_exc()}
                break
            finally:
                (folder / f"{name}.json").write_text(json.dumps(found, indent=1))
        if any("failed" in facts for facts in found.values()):
            os._exit(3)  # whatever dialog is open
        leave(person)

    return work


class Clicks(QObject):
    """Counts buttons of the mouse that are pressed anywhere."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Only looks."""
        if event.type() == QEvent.Type.MouseButtonPress:
            window = self.parent()
            window.setProperty("clicks", int(window.property("clicks") or 0) + 1)
        return False


def main() -> int:
    """Start `inspector` with a person in front of it."""
    name, folder, words = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    import inspector.gui.app as app

    made = app.make_window

    def make_window(*arguments: Any, **named: Any) -> Any:
        window = made(*arguments, **named)
        person = Person(window)
        clicks = Clicks(window)
        QApplication.instance().installEventFilter(clicks)  # type: ignore[union-attr]
        person.begin(sit(name, folder), lambda: None)
        return window

    app.make_window = make_window  # type: ignore[assignment]
    sys.argv = ["inspector", *words]
    from inspector.__main__ import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
