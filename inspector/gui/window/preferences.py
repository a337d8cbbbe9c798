"""The choices of the preferences dialog: read from where each is remembered, and put into effect."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QApplication

from inspector.gui.dialogs.preferences import Chosen, PreferencesDialog
from inspector.gui.state.preferred import DEVICE, MEMORY_GB, POINTS, PYTHON, RUNS, THREADS, whole
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.type_scale import FIRST

if TYPE_CHECKING:
    from inspector.gui.window.asking import Asking

NEXT_START = "Runs are kept there from the next start on; those that were made stay where they are."
NEXT_WORKER = "Threads, memory and Python of models hold from the next start of the worker on."
ANOTHER_WORKER = "A worker with the new preferences was started."


def chosen_now(window: Asking) -> Chosen:
    """What is in effect."""
    settings = window.settings
    return Chosen(
        settings.text("theme", "Auto"), whole(settings, POINTS), whole(settings, THREADS),
        settings.text(DEVICE, "cpu"), settings.text(RUNS) or str(window.session.runs),
        window.session.background.budget,
        frozenset(key for key, action in window.compute_menu.keys.items() if action.isChecked()),
        settings.text(PYTHON), whole(settings, MEMORY_GB),
    )  # fmt: skip


def show_preferences(window: Asking, name: str = "") -> None:
    """Ask, and put what was chosen into effect; the focus begins in the field of `name`."""
    now = chosen_now(window)
    dialog = PreferencesDialog(now, (), [], window)
    once = window.compute_menu.offered.connect(lambda: _fill(window, dialog))
    _fill(window, dialog)
    dialog.go_to(name)
    agreed = dialog.exec()
    window.compute_menu.offered.disconnect(once)
    if agreed:
        use(window, replace(now, also=dialog.at_first), dialog.chosen)


def _fill(window: Asking, dialog: PreferencesDialog) -> None:
    """Offer what the worker has, once it has said so: it may come while the dialog is open."""
    catalog = window.session.catalog
    further = [entry for entry in catalog.quantities if not entry.default] if catalog is not None else []
    if catalog is not None and window.compute_menu.keys.keys() >= {entry.key for entry in further}:
        dialog.offer(catalog.devices, further, chosen_now(window).also)


def use(window: Asking, now: Chosen, wanted: Chosen) -> None:
    """Remember what is chosen otherwise than now, and do what can be done at once."""
    settings = window.settings
    if wanted.theme != now.theme:
        window.choose_theme(wanted.theme)
    texts = {THREADS: str(wanted.threads), MEMORY_GB: str(wanted.memory), DEVICE: wanted.device, PYTHON: wanted.python}
    for name, value in texts.items():
        settings.set_text(name, value)
    if wanted.points != now.points:
        settings.set_text(POINTS, str(wanted.points))
        use_font_size(settings)
        window.apply_theme(window.theme)
    if wanted.runs != now.runs:
        settings.set_text(RUNS, wanted.runs)
    if wanted.budget != now.budget:
        window.choose_budget(wanted.budget)
    for key in wanted.also ^ now.also:
        window.compute_menu.keys[key].setChecked(key in wanted.also)
    said = [why] if (why := settings.not_kept()) else []
    said += [NEXT_START] * (wanted.runs != now.runs)
    if (wanted.threads, wanted.python, wanted.memory) != (now.threads, now.python, now.memory):
        said.append(_another_worker(window))
    if said:
        window.session.sentence = " ".join(said)
        window.show_state()


def _another_worker(window: Asking) -> str:
    """At once where the worker has nothing to do; the model that is open is opened again there."""
    session = window.session
    if session.busy or not session.connection.alive:
        return NEXT_WORKER
    session.background.stop()
    session.connection.end()
    session.start_again(ANOTHER_WORKER)
    return session.sentence or ANOTHER_WORKER


def use_font_size(settings: Settings) -> None:
    """All texts in the size that was chosen; the system's where none was."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    if application.property(FIRST) is None:
        application.setProperty(FIRST, application.font().pointSizeF())
    font = application.font()
    wanted = float(whole(settings, POINTS)) or float(application.property(FIRST))
    if wanted != font.pointSizeF():
        font.setPointSizeF(wanted)
        application.setFont(font)
