"""`inspector export`: a channel's numbers or panels' figures as files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from inspector.analysis.curve_table import chosen, export_curves
from inspector.analysis.sequence_table import export_table, table_of
from inspector.capture import Capture, CaptureError, DamagedError, LogView, export_channel, not_computed, summary
from inspector.capture.logs.view import PLACE
from inspector.cli.fault import Fault, opened_any
from inspector.cli.fault import opened as open_at
from inspector.cli.figures import Figures, export_figures, figure_options
from inspector.cli.view_options import colours_in, slices_of, steps_of, view_options
from inspector.records import ViewAt
from inspector.transport.terminal import say
from inspector.workspace.trainings import path_or_training


@click.command()
@click.argument("capture")
@click.option("--channel", default=None, help="Data of this channel: .npy .npz .csv .json .parquet .nc")
@click.option("--slice", "parts", multiple=True, metavar="DIM=A:B", help="With --channel: from A to the one before B.")
@view_options
@click.option("--sequences", is_flag=True, help="The table of a data set, a row a sequence: .csv .json .parquet")
@click.option("--curves", is_flag=True, help="Curves over training, a row an iteration: .csv .json .parquet")
@click.option("--match", multiple=True, metavar="PATTERN", help="With --curves: those whose names match (repeatable).")
@click.option("--run", default=None, metavar="NAME", help="One of the runs of a log.")
@figure_options
@click.option("--to", required=True, help="The file to write; for many figures a folder.")
@click.option("--damaged", is_flag=True, help="Write what is left where something is damaged.")
def export(
    capture: str, channel: str | None, parts: tuple[str, ...], panel: str | None, frame: int, place: str,
    step: int | None, steps: str | None, iterations: str | None, unit: int | None, head: int | None,
    curves_of: tuple[str, ...],
    map_colours: str, sequences: bool, curves: bool, match: tuple[str, ...], run: str | None, to: str, damaged: bool,
    **figures: Any,
) -> None:  # fmt: skip
    """Write the numbers of a channel, of a capture or a log, or figures of panels to files."""
    _check_what(
        channel, panel is not None or bool(figures["all_panels"] or figures["panels"]), sequences, curves, parts
    )
    asked = Figures.of(figures, panel, channel is not None or sequences or curves)
    at = ViewAt(
        panel=panel or "", frame=frame, place=place, step=step, steps=steps_of(steps),
        iterations=steps_of(iterations), unit=unit, head=head, curves=curves_of, run=run or "",
        colours=colours_in(map_colours),
    )  # fmt: skip
    with _as_faults():
        if asked.several or asked.animate:
            export_figures(capture, at, to, asked, damaged=damaged)
            return
        lacking = ""
        if sequences:
            written, lost = _sequences(capture, frame, to, damaged=damaged)
        elif curves:
            written, lost = _curves(capture, run, match, to, damaged=damaged)
        elif channel is not None:
            written, lost = _numbers(capture, run, channel, frame, to, slices_of(parts), damaged=damaged)
        else:
            written, lost, lacking = _figure(capture, at, to, asked, damaged=damaged)
        say(str(written) + (f", without what is damaged: {lost}" if lost else ""), err=True)
        if lacking:
            say(lacking, err=True)


def _check_what(channel: str | None, panels: bool, sequences: bool, curves: bool, parts: tuple[str, ...]) -> None:
    """One thing is asked for. Raises Fault."""
    if (channel is not None) + panels + sequences + curves != 1:
        raise Fault(
            "Say what to export: either --channel NAME (numbers), --panel NAME (a figure), --all-panels (figures), "
            "--sequences or --curves (tables)."
        )
    if parts and channel is None:
        raise Fault("--slice is of a channel's numbers: it needs --channel NAME.")


@contextmanager
def _as_faults() -> Iterator[None]:
    """What cannot be written is the command's fault, told in its own words."""
    try:
        yield
    except DamagedError as problem:
        raise Fault(f"{problem} With --damaged what is left is written.", 1) from None
    except (CaptureError, ValueError) as problem:
        raise Fault(str(problem)) from None


def _figure(path: str, at: ViewAt, to: str, asked: Figures, *, damaged: bool) -> tuple[Path, str, str]:
    """Draw a panel: (the file, what it lacks since that is damaged, what the run has not computed of it)."""
    from inspector.gui.export.headless import export_panel, lacks

    with opened_any(path, at.run or None) as opened:
        if not isinstance(opened, LogView):
            _check_frame(opened, at.frame)
    found = path_or_training(path)
    written, lost = export_panel(found, at, to, damaged=damaged, look=asked.look, numbers=asked.numbers)
    return written, lost, lacks(found, at.panel)


def _numbers(
    path: str, run: str | None, channel: str, frame: int, to: str, slices: dict[str, tuple[int, int]], *, damaged: bool
) -> tuple[Path, str]:
    """Write a channel of a capture, or a curve of a log: (the file, what it lacks)."""
    with opened_any(path, run) as opened:
        if isinstance(opened, LogView):
            channel = _curve(opened, channel)
        else:
            _check_frame(opened, frame)
        written = _export_channel(opened, channel, frame, to, slices, damaged=damaged)
        return written, summary(opened.damage_of(channel, frame))


def _sequences(path: str, frame: int, to: str, *, damaged: bool) -> tuple[Path, str]:
    """Write the table of a data set: (the file, what it lacks)."""
    with open_at(path) as opened:
        _check_frame(opened, frame)
        table = table_of(opened, frame)
        if table is None:
            raise Fault("This capture is not of many sequences, so it has no table of them.")
        lost = "; ".join(summary(found) for name in table.columns if (found := opened.damage_of(name, frame)))
        if lost and not damaged:
            raise DamagedError(f"The table is damaged: {lost}")
        return export_table(table, to), lost


def _curves(path: str, run: str | None, match: tuple[str, ...], to: str, *, damaged: bool) -> tuple[Path, str]:
    """Write the table of curves: (the file, what it lacks)."""
    with opened_any(path, run) as opened:
        names = {curve.channel.name for curve in chosen(opened, match)}
        lost = "; ".join(dict.fromkeys(summary(found) for name in names if (found := opened.damage_of(name))))
        if lost and not damaged:
            raise DamagedError(f"The curves are damaged: {lost}")
        return export_curves(opened, to, match), lost


def _curve(log: LogView, name: str) -> str:
    """The channel of a log that is meant: of one run the name that was logged is enough."""
    if log.run is None:
        raise Fault(f"{log.path.name} has several runs: choose one with --run NAME; there are {', '.join(log.runs)}.")
    return name if name in log.channels or f"{PLACE}:{name}" not in log.channels else f"{PLACE}:{name}"


def _export_channel(
    opened: Capture | LogView, channel: str, frame: int, to: str, slices: dict[str, tuple[int, int]], *, damaged: bool
) -> Path:
    """Write it; where there is none of that name, the error says what the run has not computed."""
    lacking = "" if isinstance(opened, LogView) or channel in opened.channels else not_computed(opened)
    try:
        return export_channel(opened, channel, frame, to, damaged=damaged, slices=slices)
    except CaptureError as problem:
        if not lacking:
            raise
        raise CaptureError(f"{problem} {lacking}") from None


def _check_frame(opened: Capture, frame: int) -> None:
    known = [one.index for one in opened.frames]
    if frame != -1 and frame not in known:
        raise Fault(
            f"There is no frame {frame}; there are {', '.join(map(str, known)) or 'none'}, and -1 for the newest."
        )
