"""Findings are muted from their menu, or no longer: in the project's file, which the overview then reads again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from inspector.capture.regular import in_words
from inspector.diagnosis.settings import Mute, SettingsError

if TYPE_CHECKING:
    from inspector.gui.panels.overview import Overview
    from inspector.gui.window.asking import Asking


def change_mute(window: Asking, mute: Mute, *, on: bool) -> None:
    """Write it into the nearest project's file, or a new one in the working directory; the status row says where."""
    from inspector.diagnosis.muting import change_mutes

    try:
        path = change_mutes(mute, Path.cwd(), on=on)
    except SettingsError as problem:
        window.fail(str(problem))
        return
    except OSError as problem:
        window.fail(f"The project's file cannot be written: {in_words(problem)}.")
        return
    where = "" if mute.place == "*" else f" at {mute.place}"
    window.say(f"{mute.rule}{where} is {'muted' if on else 'no longer muted'} in {path}.")
    overview = cast("Overview | None", window.panels.get("overview"))
    if overview is not None:
        overview.read_project()
