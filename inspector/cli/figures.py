"""What `inspector export` is told of figures: how they look, how many there are, whether they move."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from inspector.cli.fault import Fault
from inspector.cli.progress import Told
from inspector.records import Progress, ViewAt, counted
from inspector.transport.terminal import say
from inspector.workspace.trainings import path_or_training

if TYPE_CHECKING:
    from inspector.gui.export.look import Look

OPTIONS = (
    click.option("--all-panels", is_flag=True, help="A figure of every panel that shows something, into a folder."),
    click.option("--panels", default=None, metavar="A,B", help="The same of these panels."),
    click.option("--all-frames", is_flag=True, help="With --panel or --all-panels: a figure of every frame."),
    click.option("--format", "form", type=click.Choice(["png", "svg", "pdf"]), default="png", help="Of many figures."),
    click.option("--theme", "colours", type=click.Choice(["light", "dark", "paper"]), default=None,
                 help="Colours of figures; paper: on white."),
    click.option("--dark", is_flag=True, help="The same as --theme dark."),
    click.option("--size", default=None, metavar="WxH", help="Of a figure: 900x600 (pixels), 85x60mm, 3.3x2.2in."),
    click.option("--font-size", "font", type=float, default=0.0, metavar="PT", help="Points of the texts of figures."),
    click.option("--dpi", type=int, default=None, help="Pixels an inch of a PNG or an animation; 192."),
    click.option("--numbers", type=click.Choice(["csv", "json", "npz"]), default=None,
                 help="Write what a figure shows beside it, as numbers."),
    click.option("--animate", type=click.Choice(["steps", "training"]), default=None,
                 help="With --panel: in motion; .gif .apng .webp .mp4"),
    click.option("--rate", type=float, default=10.0, help="With --animate: pictures a second."),
    click.option("--every", type=int, default=1, metavar="N", help="With --animate: each N-th step or frame."),
    click.option("--progress", is_flag=True, hidden=True, help="Progress as lines of JSON, for the window."),
)  # fmt: skip


def figure_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that writes figures."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Figures:
    """The options, checked. `several`: a folder of figures rather than one file."""

    look: Look
    several: bool
    panels: tuple[str, ...]
    all_frames: bool
    form: str
    numbers: str
    animate: str
    rate: float
    every: int
    progress: bool

    @classmethod
    def of(cls, given: dict[str, Any], panel: str | None, others: bool) -> Figures:
        """From what was given; `others`: no figure is asked for. Raises Fault, and CaptureError."""
        from inspector.gui.export.look import Look, size_of

        if (panel is not None) + bool(given["all_panels"]) + (given["panels"] is not None) > 1:
            raise Fault("Give one of --panel NAME, --panels A,B and --all-panels.")
        own = ("all_frames", "colours", "dark", "size", "font", "dpi", "numbers", "animate")
        if others and (strange := [name for name in own if given[name]]):
            raise Fault(f"--{strange[0].replace('_', '-')} is of figures: it needs --panel NAME or --all-panels.")
        if given["animate"] and (given["all_panels"] or given["panels"] or given["all_frames"] or given["numbers"]):
            raise Fault("--animate draws one panel: it goes with --panel NAME alone.")
        if given["dark"] and given["colours"] not in (None, "dark"):
            raise Fault(f"--dark and --theme {given['colours']} contradict each other.")
        named = tuple(name.strip() for name in (given["panels"] or "").split(",") if name.strip())
        look = Look(
            size=None if given["size"] is None else size_of(given["size"]),
            colours="dark" if given["dark"] else given["colours"] or "light",
            font=given["font"], dpi=Look().dpi if given["dpi"] is None else given["dpi"],
        )  # fmt: skip
        names = (panel,) if panel else named
        several = bool(given["all_panels"] or named or given["all_frames"])
        return cls(
            look, several, names, given["all_frames"], given["form"], given["numbers"] or "", given["animate"] or "",
            given["rate"], given["every"], given["progress"],
        )  # fmt: skip


def export_figures(path: str, at: ViewAt, to: str, asked: Figures, *, damaged: bool) -> None:
    """Write many figures, or one that moves. Raises CaptureError; Fault with code 1 where some are lacking."""
    with Told(first="the capture is opened") as bar:
        told = _Lines(asked.progress, bar)
        if asked.animate:
            _animation(path, at, to, asked, told, damaged=damaged)
        else:
            _many(path, at, to, asked, told, damaged=damaged)


class _Lines:
    """Progress as a bar, or as lines of JSON on stdout for a program that reads them."""

    def __init__(self, as_lines: bool, bar: Told) -> None:
        self._as_lines, self._bar = as_lines, bar

    def tell(self, done: int, total: int, text: str) -> None:
        if self._as_lines:
            say(json.dumps({"done": done, "total": total, "text": text}))
        else:
            self._bar.tell(Progress(done=done, total=total, text=text))


def _animation(path: str, at: ViewAt, to: str, asked: Figures, told: _Lines, *, damaged: bool) -> None:
    from inspector.gui.export.animation import export_animation

    written, count = export_animation(
        path_or_training(path), at, to, asked.animate, look=asked.look, rate=asked.rate, every=asked.every,
        damaged=damaged, told=lambda done, total: told.tell(done, total, f"picture {done:,} of {total:,}"),
    )  # fmt: skip
    say(f"{written}: {counted(count, 'picture', ',')}", err=True)


def _many(path: str, at: ViewAt, to: str, asked: Figures, told: _Lines, *, damaged: bool) -> None:
    from inspector.gui.export.many import Wanted, export_many

    wanted = Wanted(
        panels=asked.panels, frames=None if asked.all_frames else (at.frame,), at=at,
        look=asked.look, form=asked.form, numbers=asked.numbers, damaged=damaged,
    )  # fmt: skip
    written, problems = 0, []
    for one in export_many(path_or_training(path), to, wanted):
        told.tell(one.done, one.total, one.then or one.title)
        written += one.path is not None
        problems += [one.why] if one.why else []
        if one.path is not None and not asked.progress:
            said = f", without what is damaged: {one.lost}" if one.lost else ""
            say(str(one.path) + said + (f"; {one.left_out}" if one.left_out else ""), err=True)
    if problems:
        more = f" ({len(problems) - 1} more like it.)" if len(problems) > 1 else ""
        raise Fault(f"{counted(written, 'figure', ',')} in {to}; {problems[0]}{more}", 1)
    say(f"{to}: {counted(written, 'figure', ',')}", err=True)
