"""What the palette finds in a window: its actions, panels, samples, checkpoints, quantities, settings, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMenu

from inspector.capture.regular import is_there
from inspector.gui.dialogs.beside import checkpoints_beside
from inspector.gui.dialogs.dialogs import name_of
from inspector.gui.dialogs.palette import Command, Palette, commands_of
from inspector.gui.dialogs.preferences import FIELDS
from inspector.gui.state.remembered import Opened, recent_models
from inspector.gui.widgets.plain_text import token
from inspector.gui.window.named_layouts import KEPT
from inspector.gui.window.preferences import show_preferences
from inspector.gui.window.reading import show_documentation
from inspector.records import STEP_DOMAIN
from inspector.workspace.documentation import pages
from inspector.workspace.samples import list_samples, step_of
from inspector.workspace.trainings import list_trainings

if TYPE_CHECKING:
    from inspector.gui.window.asking import Asking

MOST_PLACES = 20
"""Places in the text that are listed."""
AROUND = 12
"""Steps of the text shown after a place."""


def show_palette(window: Asking) -> None:
    """Ask for a name, and do what it stands for."""
    Palette(list(named(window)), window.settings, window, partial(in_text, window)).exec()


def named(window: Asking) -> Iterator[Command]:
    """Everything that has a name now."""
    yield from _panels(window)
    yield from commands_of(window.menu_actions)
    yield from _layouts(window)
    yield from _samples(window)
    yield from _models(window)
    yield from _quantities(window)
    for name, about in FIELDS.items():
        yield Command(f"Preferences: {name}", "Setting", partial(show_preferences, window, name), about)
    for page in pages():
        yield Command(page.title, "Page", partial(show_documentation, window, page.name), f"Documentation, {page.name}")


def _panels(window: Asking) -> Iterator[Command]:
    kinds = window.panels.kinds
    for key, dock in window.docks.items():
        hint = kinds[key].hint if key in kinds else ""
        yield Command(dock.windowTitle(), "Panel", partial(window.stops.show, key), hint)


def _layouts(window: Asking) -> Iterator[Command]:
    """The layouts that were saved by name, and what saves and removes them."""
    menu = window.findChild(QMenu, KEPT)
    for action in menu.actions() if isinstance(menu, QMenu) else ():
        if action.isEnabled() and not action.isSeparator():
            yield Command(f"Layouts: {name_of(action)}", "Action", action.trigger, "Window ▸ Layouts")


def _samples(window: Asking) -> Iterator[Command]:
    for sample in list_samples():
        about = f"{sample.title}: {sample.task}. Look for: {sample.shows}"
        yield Command(sample.name, "Sample", partial(window.open_sample, sample.name), about)
        for path in sample.checkpoints:
            step = step_of(path)
            name = f"{sample.name}, {f'step {step}' if step is not None else path.name}"
            yield Command(name, "Checkpoint", partial(window.open_sample, sample.name, path.name))
    for one in list_trainings():
        about = f"{one.title}: {one.task}. Look for: {one.shows}"
        yield Command(one.name, "Training", partial(window.open_path, str(one.capture)), about)
    for place in window.settings.recent():
        if is_there(place):
            yield Command(Path(place).name, "Recent", partial(window.open_path, place), place)


def _models(window: Asking) -> Iterator[Command]:
    """Models that were open, with their checkpoints, and the checkpoints that lie beside the one that is open."""
    for model in recent_models(window.settings):
        name = ", ".join(filter(None, (model.title or model.subject, Path(model.checkpoint).name)))
        about = f"{model.subject} {model.checkpoint}: {model.words}"
        yield Command(name, "Recent", partial(_open_again, window, model), about)
    load = window.session.models.load
    file = load.subject.rpartition(":")[0] if load is not None else ""
    if file.endswith(".py"):
        for path, words in checkpoints_beside(file, window.models.offered.checkpoints):
            yield Command(path.name, "Checkpoint", partial(window.open_path, str(path)), f"{words}, beside {file}")


def _open_again(window: Asking, model: Opened) -> None:
    """As it was opened before, and what ran on it last runs again."""
    window.models.then = model.input
    window.open_model(model.load)


def _quantities(window: Asking) -> Iterator[Command]:
    """Each leads to the panel that shows little else; what is not computed by default can be asked for there."""
    kinds = window.panels.kinds
    held = {key: (*kind.shows, *kind.extra) for key, kind in kinds.items()}
    for entry in window.session.catalog.quantities if window.session.catalog is not None else ():
        shows = min((key for key in kinds if entry.key in held[key]), key=lambda key: len(held[key]), default="")
        if shows:
            about = f"{entry.title}: {entry.summary}. Shown in {kinds[shows].title}"
            yield Command(entry.key, "Quantity", partial(window.stops.show, shows), about)


def in_text(window: Asking, typed: str) -> Iterator[Command]:
    """Where the input reads as what was typed, in any case of letters, over one token or several."""
    capture = window.session.capture
    if capture is None:
        return
    names = capture.labels(STEP_DOMAIN, window.looking.position.frame)
    text, wanted = "".join(names).lower(), typed.lower()
    starts = list(accumulate((len(name.lower()) for name in names), initial=0))
    at, step = text.find(wanted), 0
    for _ in range(MOST_PLACES):
        if at < 0:
            return
        while starts[step + 1] <= at:
            step += 1
        shown = "".join(token(name) for name in names[step : step + AROUND])
        yield Command(f"step {step}: {shown}", "Text", partial(_go_to, window, step), typed)
        at = text.find(wanted, starts[step + 1])


def _go_to(window: Asking, step: int) -> None:
    window.looking.move(step=step)
    window.sequence.strip.setFocus()
