"""Figures of many panels over many frames, one file each, with their numbers beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import Capture, CaptureError, DamagedError, LogView, open_any
from inspector.gui.export.headless import (
    PLAIN,
    application,
    as_window,
    key_of,
    left_out_of,
    panels_in,
    staged,
    write_figure,
)
from inspector.gui.export.look import Look
from inspector.gui.export.what_is_there import check_view
from inspector.records import ViewAt

if TYPE_CHECKING:
    from inspector.gui.export.offscreen import Stage
    from inspector.gui.panel.base import Panel

WHOLE = ViewAt()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is drawn.

    Attributes:
        panels: their keys or titles; () for all that have something to show.
        frames: their indices; None for all of them, (-1,) for the newest.
        at: what is the same in all: place, steps, unit, head …
        form: "png", "svg" or "pdf"; numbers: "csv", "json", "npz" or "" for none.
        damaged: draw what is left where something is damaged.
    """

    panels: tuple[str, ...] = ()
    frames: tuple[int, ...] | None = (-1,)
    at: ViewAt = WHOLE
    look: Look = PLAIN
    form: str = "png"
    numbers: str = ""
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class Drawn:
    """One of them: `path` of its file, or None and `why` there is none; `lost`: what is damaged in it, one line;
    `left_out`: what had no room in it, one line; `then`: the title of what is drawn next, "" after the last. The first
    one (`done` 0) is of nothing, and says with what it begins."""

    done: int
    total: int
    title: str
    path: Path | None
    why: str = ""
    lost: str = ""
    left_out: str = ""
    then: str = ""


def export_many(path: Path | str, folder: Path | str, wanted: Wanted) -> Iterator[Drawn]:
    """Draw one figure after the other into a folder, which is made. Each panel is made once and shows every frame.

    What the figures of one panel lack does not keep the others from being drawn. A frame in which a panel that was not
    asked for by its name has nothing to show is left out. Raises CaptureError where nothing can be drawn at all.
    """
    from inspector.gui.panel.registry import PANELS

    running, target = application(), Path(folder)
    with open_any(path, wanted.at.run or None) as opened:
        frames = _frames(opened, wanted)
        keys = tuple(map(key_of, wanted.panels)) or _filled(opened, frames)
        if not keys:
            raise CaptureError(f"No panel has anything to show of {opened.path.name}.")
        check_view(as_window(opened), replace(wanted.at, frame=frames[0]))
        _make(target)
        titles = [PANELS[key].title for key in keys]
        yield Drawn(0, len(keys) * len(frames), "", None, then=titles[0])
        for number, key in enumerate(keys):
            for one in _panel(opened, target, wanted, key, frames, number, len(keys)):
                ended = one.done == (number + 1) * len(frames)
                yield replace(one, then="".join(titles[number + 1 : number + 2]) if ended else one.title)
    del running


def export_all(path: Path | str, folder: Path | str) -> list[Path]:
    """A PNG of every panel that has something to show; the paths, in the order of the panels."""
    return [one.path for one in export_many(path, folder, Wanted()) if one.path is not None]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise CaptureError(f"Cannot make the folder {folder}: {problem.strerror or problem}.") from None


def _frames(opened: Capture | LogView, wanted: Wanted) -> tuple[int, ...]:
    """Raises CaptureError."""
    there = tuple(one.index for one in as_window(opened).frames)
    if wanted.frames is None:
        return there or (-1,)
    if missing := [frame for frame in wanted.frames if frame >= 0 and frame not in there]:
        raise CaptureError(f"There is no frame {missing[0]}; there are {', '.join(map(str, there)) or 'none'}.")
    return wanted.frames


def _filled(opened: Capture | LogView, frames: Sequence[int]) -> tuple[str, ...]:
    """Keys of the panels that have something to show in one frame at least, in the order of the tabs."""
    from inspector.gui.panel.registry import ordered

    found = {one.key for frame in frames for one in panels_in(opened, frame)}
    return tuple(key for key, _ in ordered() if key in found)


def _panel(
    opened: Capture | LogView, folder: Path, wanted: Wanted, key: str, frames: Sequence[int], number: int, many: int
) -> Iterator[Drawn]:
    """The figures of one panel."""
    from inspector.gui.panel.registry import PANELS

    total, title = many * len(frames), PANELS[key].title
    at = replace(wanted.at, panel=key, frame=frames[0])
    try:
        with staged(opened, at, wanted.look, of_many=True) as (stage, panel):
            for index, frame in enumerate(frames):
                done = number * len(frames) + index + 1
                if index:
                    stage.turn(panel, frame)
                yield _figure(stage, panel, folder / f"{_stem(key, frame)}.{wanted.form}", wanted, (done, total))
    except CaptureError as problem:
        yield Drawn((number + 1) * len(frames), total, title, None, str(problem))


def _stem(key: str, frame: int) -> str:
    return key if frame < 0 else f"{key}-frame-{frame:04}"


def _figure(stage: Stage, panel: Panel, target: Path, wanted: Wanted, count: tuple[int, int]) -> Drawn:
    if panel.state == "empty" and not wanted.panels:
        return Drawn(*count, panel.title, None)
    try:
        lost = write_figure(panel, target, damaged=wanted.damaged, look=wanted.look, numbers=wanted.numbers)
    except DamagedError as problem:
        return Drawn(*count, panel.title, None, f"{problem} With --damaged what is left is written.")
    except CaptureError as problem:
        return Drawn(*count, panel.title, None, str(problem))
    return Drawn(*count, panel.title, target, lost=lost, left_out=left_out_of(panel))
