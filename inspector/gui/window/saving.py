"""Saving what panels show: one question where some of it is damaged, and in the status row what was written where."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog, QMessageBox

from inspector.capture import CaptureError, Damage, left_of, summary, write_atomically
from inspector.gui.state.needed import needed_for
from inspector.gui.widgets.plain_text import plain_box
from inspector.gui.window.between_panels import BetweenPanels, StoppedError
from inspector.records import Finding

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.window.asking import Asking

LEFT = "Save what is left"
FIRST, WITHOUT = "Compute it first", "Save without it"


def save_panel(window: Asking, panel: Panel, key: str, save: Callable[..., Path], kinds: str) -> None:
    """Ask where the figure or the numbers of a panel go, and write them."""
    from inspector.gui.panel.compared import for_file

    first = kinds.partition("(*")[2].partition(")")[0]
    path, chosen = QFileDialog.getSaveFileName(window, "Save", f"{key}{for_file(panel)}{first}", kinds)
    if not path:
        return
    if not Path(path).suffix:
        path += chosen.partition("(*")[2].partition(")")[0]
    try:
        if not complete(window, panel.title, {*panel.shows, *panel.extra}):
            return
        lost = _lost(panel)
        if lost and not agreed(window, panel.title, lost):
            window.say(f"{panel.title} was not saved: some of it is damaged.")
            return
        written = save(panel, path)
    except CaptureError as problem:
        window.fail(str(problem))
        return
    window.say_saved(f"Saved {panel.title} to {written}" + (", without what is damaged." if lost else "."), written)


def save_script(window: Asking, finding: Finding) -> None:
    """Ask where the script that shows a finding's fault on its own goes, and write it."""
    from inspector.diagnosis import NoCaseError, default_name, reproduce

    try:
        text = reproduce(finding.id or finding.rule, [finding])
        proposed = str(default_name(finding.id or finding.rule))
    except NoCaseError as problem:
        window.fail(str(problem))
        return
    path, _ = QFileDialog.getSaveFileName(window, "Save the script", proposed, "Python (*.py)")
    if not path:
        return
    target = Path(path) if Path(path).suffix else Path(path).with_suffix(".py")
    if str(target) != path and os.path.lexists(target):  # the dialog has asked about the name as it was typed
        window.fail(f"{target} exists; choose another name.")
        return
    try:
        write_atomically(target, text.encode())
    except CaptureError as problem:
        window.fail(str(problem))
        return
    window.say_saved(f"Saved {target}: python {target.name} ill, then healthy, then cured.", target)


def export_all(window: Asking) -> None:
    """Ask for a folder, and write a figure of every panel that shows something."""
    folder = QFileDialog.getExistingDirectory(window, "Folder for the figures")
    if not folder or not complete(window, "What the panels show"):
        return
    written: list[Path] = []
    try:
        lost = _write_all(window, Path(folder), written)
    except StoppedError:
        verb = "is" if len(written) == 1 else "are"
        window.say(f"The export was cancelled; {_figures(len(written))} of it {verb} in {folder}.")
    except CaptureError as problem:
        window.fail(str(problem))
    else:
        if lost:
            window.say("No figure was saved: some of what they show is damaged.")
        else:
            window.say_saved(f"Saved {_figures(len(written))} to {folder}.", Path(folder))


def _write_all(window: Asking, folder: Path, written: list[Path]) -> bool:
    """Write the figures, and list them; whether it was not agreed to, since some are damaged.

    Raises CaptureError and StoppedError.
    """
    from inspector.gui.export.figure_files import save_figure
    from inspector.gui.panel.compared import for_file
    from inspector.gui.panel.damaged import damage_in

    keys = list(window.panels)
    with BetweenPanels(window, "Export figures", len(keys)) as looked:
        full: dict[str, Panel] = {}
        for key in keys:
            looked.next(f"Looking at {window.panels.kinds[key].title}")
            panel = window.panels.get(key)
            if panel is not None and panel.state == "figure":
                full[key] = panel
    lost = list(dict.fromkeys(one for panel in full.values() for one in damage_in(panel)))
    if lost and not agreed(window, "What the panels show", lost):
        return True
    with BetweenPanels(window, "Export figures", len(full)) as drawn:
        for key, panel in full.items():
            drawn.next(f"Drawing {panel.title}")
            window.docking.lay_out(key, panel)
            written.append(save_figure(panel, folder / f"{key}{for_file(panel)}.png"))
    return False


def _figures(count: int) -> str:
    return f"{count} figure{'' if count == 1 else 's'}"


def agreed(window: Asking, what: str, lost: Iterable[Damage]) -> bool:
    """Whether what is left of something damaged is to be saved; the user is asked once."""
    box = plain_box(window, "inspector", f"{what} is damaged in part: {summary(list(lost))}")
    box.setIcon(QMessageBox.Icon.Warning)
    box.setStandardButtons(QMessageBox.StandardButton.Cancel)
    left = box.addButton(LEFT, QMessageBox.ButtonRole.AcceptRole)
    box.exec()
    return box.clickedButton() is left


def complete(window: Asking, what: str, among: Collection[str] | None = None) -> bool:
    """Whether to go on with saving: what the run has not computed is named, and can be computed first."""
    capture = window.session.capture
    left = left_of(capture, among) if capture is not None else ()
    if not left:
        return True
    needed = needed_for(window.session)
    said = f"{what} lacks what this run has not computed: {', '.join(left)}. {needed.why}".rstrip()
    box = plain_box(window, "inspector", said)
    box.setStandardButtons(QMessageBox.StandardButton.Cancel)
    possible = not needed.why or needed.load is not None
    first = box.addButton(needed.button or FIRST, QMessageBox.ButtonRole.ActionRole) if possible else None
    without = box.addButton(WITHOUT, QMessageBox.ButtonRole.AcceptRole)
    box.exec()
    if first is not None and box.clickedButton() is first:
        window.compute_also(left)
    return box.clickedButton() is without


def _lost(panel: Panel) -> list[Damage]:
    """What is damaged of that which a panel shows or has as numbers; reading those may find more."""
    from inspector.gui.panel.damaged import damage_in

    found = list(damage_in(panel))
    if panel.capture is not None and panel.state == "figure":
        with panel.capture.noting() as read:
            panel.data()
        more = (one for one in panel.capture.damage if any(one.concerns(name, frame) for name, frame in read))
        found += [one for one in more if one not in found]
    return found
