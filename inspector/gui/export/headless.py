"""Panels without a window: figures from the command line, on machines without a display."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from inspector.capture import (
    Capture,
    CaptureError,
    DamagedError,
    LogView,
    not_computed,
    open_any,
    summary,
    write_atomically,
)
from inspector.gui.export.look import Look
from inspector.gui.runtime.display import has_display
from inspector.records import Frame, ViewAt
from inspector.transport.terminal import say

if TYPE_CHECKING:
    from inspector.gui.export.offscreen import Stage
    from inspector.gui.export.panels_of import Filled
    from inspector.gui.panel.base import Panel

PLAIN = Look()


def application() -> object:
    if not has_display():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler
    from PySide6.QtWidgets import QApplication

    def on_message(kind: QtMsgType, _where: QMessageLogContext, text: str) -> None:
        if kind != QtMsgType.QtDebugMsg and "propagateSizeHints" not in text:  # no window is resized here
            say(text, err=True)

    qInstallMessageHandler(on_message)
    return QApplication.instance() or QApplication(["inspector"])


def check_frame(frames: Iterable[Frame], frame: int) -> None:
    """Raises CaptureError where a frame is asked for by number (0 or more) that is not there."""
    known = [one.index for one in frames]
    if frame >= 0 and frame not in known:
        raise CaptureError(f"The capture has no frame {frame}; it has {known}.")


def key_of(name: str) -> str:
    """The key of the panel that a person names by its key or by its title, in letters of any case. Raises CaptureError.

    A key goes before a title: a panel of another package may have a title that is the key of one of these.
    """
    from inspector.gui.panel.registry import PANELS, ordered

    wanted = name.strip().casefold()
    known = [(key, panel.title) for key, panel in ordered()]
    for names in ([key for key, _ in known], [title for _, title in known]):
        for (key, _), own in zip(known, names, strict=True):
            if own.casefold() == wanted:
                return key
    listed = [key if key.casefold() == title.casefold() else f"{key} ({title})" for key, title in known]
    lost = "".join(f" {bad.origin} could not be loaded: {bad.reason}." for bad in PANELS.broken)
    raise CaptureError(f"There is no panel {name!r}; there are {', '.join(listed)}.{lost}")


def export_panel(
    path: Path | str, at: ViewAt, to: Path | str, *, damaged: bool = False, look: Look = PLAIN, numbers: str = ""
) -> tuple[Path, str]:
    """Draw one panel of a capture or a log into a file: (the file, what the figure lacks of it, as one line).

    `numbers`: "csv", "json" or "npz", to write what it shows beside it.
    Raises DamagedError where something that is drawn is damaged and `damaged` does not allow that, else CaptureError.
    """
    with drawing(path, at, look) as (_, panel):
        lost = write_figure(panel, Path(to), damaged=damaged, look=look, numbers=numbers)
        if left_out := left_out_of(panel):
            say(f"{to}: {left_out}.", err=True)
    return Path(to), lost


@contextmanager
def drawing(path: Path | str, at: ViewAt, look: Look = PLAIN) -> Iterator[tuple[Stage, Panel]]:
    """A panel of a capture or a log at a position, laid out to be drawn. Raises CaptureError."""
    running = application()
    with open_any(path, at.run or None) as opened, staged(opened, at, look) as drawn:
        yield drawn
    del running


@contextmanager
def staged(
    opened: Capture | LogView, at: ViewAt, look: Look = PLAIN, *, of_many: bool = False
) -> Iterator[tuple[Stage, Panel]]:
    """The same of what is open already. Raises CaptureError, also for a place, unit or head that the panel does not
    have; of one of many panels, that none of them has."""
    from inspector.gui.export.offscreen import Stage
    from inspector.gui.export.what_is_there import check_view
    from inspector.gui.panel.registry import PANELS

    panel_key = key_of(at.panel)
    check_frame(opened.frames, at.frame)
    shown = as_window(opened)
    check_view(shown, at, None if of_many else PANELS[panel_key])
    with look.applied():
        stage = Stage(shown, look.laid_out, look.theme)
        try:
            panel = stage.panel(panel_key, at=at)
            if look.size is not None:
                stage.fit(panel)
            yield stage, panel
        finally:
            stage.close()


def as_window(opened: Capture | LogView) -> Capture:
    """A capture or a log as panels read it."""
    from inspector.gui.state.followed_log import FollowedLog

    return cast(Capture, FollowedLog(opened)) if isinstance(opened, LogView) else opened


def panels_in(opened: Capture | LogView, frame: int = -1) -> list[Filled]:
    """The panels that have something to show of a frame."""
    from inspector.gui.export.panels_of import panels_of

    return panels_of(as_window(opened), frame)


def lacks(path: Path | str, panel_key: str) -> str:
    """What the run has not computed of what a panel shows, as one sentence, or ""."""
    from inspector.gui.panel.registry import PANELS

    panel = PANELS[key_of(panel_key)]
    with open_any(path) as opened:
        return "" if isinstance(opened, LogView) else not_computed(opened, {*panel.shows, *panel.extra})


def left_out_of(panel: Panel) -> str:
    """What has no room in a figure of the size that was asked for, as one line; "" for nothing."""
    found = panel.figure.left_out
    return f"{' and '.join(found)} had no room; a larger --size, or a smaller --font-size, has it" if found else ""


def why_nothing(panel: Panel, *, damaged: bool = False) -> CaptureError | None:
    """Why a panel has no figure; None where it has one."""
    from inspector.gui.state.followed_log import as_log

    assert panel.capture is not None
    if panel.state == "figure":
        return None
    lost = summary([one for one in panel.capture.damage if one.anywhere])
    if lost and not damaged:
        return DamagedError(f"{panel.title} has nothing to show, perhaps because of damaged data: {lost}")
    a_log = as_log(panel.capture) is not None
    lacking = "" if a_log else not_computed(panel.capture, {*panel.shows, *panel.extra})
    return CaptureError(f"{panel.title} has nothing to show in this capture: {panel.hint} {lacking}".rstrip())


def write_figure(panel: Panel, target: Path, *, damaged: bool, look: Look = PLAIN, numbers: str = "") -> str:
    """Write a panel's figure, and its numbers beside it; returns what it lacks, as one line, or "".

    Raises DamagedError or CaptureError.
    """
    from inspector.gui.export.figure_files import figure_bytes, save_data
    from inspector.gui.panel.damaged import damage_in

    if (why := why_nothing(panel, damaged=damaged)) is not None:
        raise why
    figure = figure_bytes(panel, target, look.scale, look.zoom)
    lost = summary(damage_in(panel))
    if lost and not damaged:
        raise DamagedError(f"{panel.title} shows damaged data: {lost}")
    if lost:  # once more, since some damage may have been found only while it was painted
        panel.redraw()
        figure = figure_bytes(panel, target, look.scale, look.zoom)
    write_atomically(target, figure)
    if numbers:
        save_data(panel, target.with_suffix(f".{numbers}"))
    return lost
