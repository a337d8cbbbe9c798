"""The command line. Exit codes: 0 done, 1 the run failed or what is to be written is damaged, 2 bad arguments or
unreadable input (one sentence)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from inspector.capture import (
    SUFFIX,
    Capture,
    CaptureError,
    DamagedError,
    check_target,
    export_channel,
    listed,
    open_capture,
    pack,
    summary,
)
from inspector.records import Edit, InputSpec, Load, Progress, Run, input_spec, parse_edit, report
from inspector.records.plain_text import plain_line
from inspector.transport.run_client import Outcome, run_and_wait
from inspector.transport.terminal import complain, pass_on, say, say_details
from inspector.version import __version__
from inspector.workspace.demo import DEMO, check_demo
from inspector.workspace.samples import Sample, list_samples

CHECKED_BYTES = 1 << 30
"""Bytes of pages that `list` checks without being asked: about a second."""
MOST_DAMAGE = 20
"""Lines about damage that `list` prints."""
WIDEST_COLUMN, PROGRESS_WIDTH = 60, 58
COMMANDS_FIRST = ("samples", "run", "list", "export", "pack", "demo")


class Fault(click.ClickException):
    """One sentence on stderr and an exit code."""

    def __init__(self, sentence: str, code: int = 2) -> None:
        super().__init__(sentence)
        self.code = code

    def show(self, file: Any = None) -> None:
        """The sentence alone, without a prefix."""
        complain(self.format_message())


class PathsAllowed(click.Group):
    """A group that takes a path where a command could stand: then the window opens it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A known command, or the hidden `open` with all arguments."""
        if args and args[0] not in self.commands and (Path(args[0]).exists() or "." in args[0] or "/" in args[0]):
            return "open", self.commands["open"], args
        return super().resolve_command(ctx, args)


@click.group(cls=PathsAllowed, invoke_without_command=True)
@click.version_option(__version__, prog_name="inspector")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """See, step by step, what happens inside a sequence model. Without a command: the window."""
    if ctx.invoked_subcommand is None:
        ctx.exit(_window([]))


def _window(paths: list[str]) -> int:
    from inspector.gui.app import run

    return run(paths)


@cli.command("open", hidden=True)
@click.argument("paths", nargs=-1)
def open_(paths: tuple[str, ...]) -> None:
    """Open the window on some files."""
    for path in paths:
        if not Path(path).exists():
            raise Fault(f"There is no file {path}, and no command of that name; there are {', '.join(COMMANDS_FIRST)}.")
    raise SystemExit(_window(list(paths)))


def _described(sample: Sample) -> dict[str, Any]:
    return {
        "name": sample.name, "row": sample.row, "title": sample.title, "task": sample.task, "shows": sample.shows,
        "checkpoints": [path.name for path in sample.checkpoints],
    }  # fmt: skip


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def samples(as_json: bool) -> None:
    """List the sample models."""
    found = list_samples()
    if as_json:
        click.echo(json.dumps([_described(sample) for sample in found], indent=1))
        return
    width = _width([sample.name for sample in found])
    for sample in found:
        say(f"{sample.row:>4}  {sample.name:<{width}}  {sample.title} ({len(sample.checkpoints)} checkpoints)")
        say(f"      {'':<{width}}  {sample.shows}")


def _width(names: list[str]) -> int:
    """Of a column; a longer name pushes its own row aside, not all of them."""
    return min(max(map(len, names), default=0), WIDEST_COLUMN)


@cli.command()
@click.argument("subject")
@click.option("--checkpoint", default="", help="Weights to load; for a sample also a number or a file name.")
@click.option("--text", multiple=True, help="[NAME=] The sequence as text in the vocabulary; repeated: a batch.")
@click.option("--input", "file", multiple=True, help="[NAME=] A file: .txt .npy .csv .wav …; repeated: a batch.")
@click.option("--ids", multiple=True, help="[NAME=] Token ids, for example '3 1 4'; repeated, or after ';': a batch.")
@click.option("--generate", default=None, help="noise, impulse, constant or sine, for models that read vectors.")
@click.option("--example", default=None, help="One of the subject's ready sequences, by name.")
@click.option("--option", "options", multiple=True, help="NAME=VALUE for the input: steps=200, at=10 …; src.key=x.")
@click.option(
    "--edit", "edits", multiple=True, help="Run twice, the second time with PLACE:SIGNAL[UNIT]=VALUE@FROM:TO."
)
@click.option("--with", "quantities", multiple=True, help="Compute only this quantity (repeatable).")
@click.option("--arguments", default="{}", help="Keyword arguments of the callable, as JSON.")
@click.option("--partial", is_flag=True, help="Load what fits of a checkpoint that does not fit whole.")
@click.option("--look-at", default=0, help="Which sequence of a batch is shown.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**63 - 1), help="Seed of everything random.")
@click.option("--device", default="cpu", help="cpu, cuda:0 …")
@click.option("--out", default=None, help="Folder of the capture; default: NAME.inspect here.")
@click.option("--overwrite", is_flag=True, help="Replace the capture that lies there, once this run has numbers.")
@click.option("--debug", is_flag=True, help="Show tracebacks and the worker's output.")
def run(
    subject: str, options: tuple[str, ...], arguments: str, out: str | None, overwrite: bool, debug: bool, **given: Any
) -> None:
    """Run a model without a window and capture what happens inside."""
    spec = _input_spec(given, options)
    load = Load(
        subject=subject, arguments=_json_object(arguments), checkpoint=given["checkpoint"], partial=given["partial"],
        trusted=True, device=given["device"], seed=given["seed"],
    )  # fmt: skip
    target = Path(out) if out is not None else Path(_file_name(subject) + SUFFIX)
    edits = tuple(_edit(text) for text in given["edits"])
    check_target(target, overwrite)
    request = Run(
        path=str(target.absolute()), input=spec, quantities=given["quantities"], edits=edits, seed=given["seed"],
        overwrite=overwrite,
    )  # fmt: skip
    _tell_checkpoint(run_and_report(load, request, debug), debug)
    say(f"{target}: {_summary(target)}", err=True)


def _tell_checkpoint(outcome: Outcome, whole: bool) -> None:
    """What the checkpoint did to the model: a few lines, or every name."""
    if outcome.loaded is not None and outcome.loaded.report is not None:
        for told in report.lines(outcome.loaded.report, whole=whole):
            say(told, err=True)


def _edit(text: str) -> Edit:
    try:
        return parse_edit(text)
    except ValueError as problem:
        raise Fault(str(problem)) from None


def _file_name(subject: str) -> str:
    name = subject.replace("\\", "/").rpartition("/")[2]
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:80] or "run"


def _summary(target: Path) -> str:
    with open_capture(target) as capture:
        refused = f", {len(capture.refusals)} refused" if capture.refusals else ""
        seconds = capture.stop.seconds if capture.stop is not None else 0.0
        return f"{len(capture.channels)} channels{refused}, {capture.status} in {seconds:.1f} s"


def run_and_report(load: Load, request: Run, debug: bool) -> Outcome:
    """Run in a worker with progress on a terminal. Raises Fault."""
    from tqdm import tqdm

    form = f"{{desc:<{PROGRESS_WIDTH}}} {{bar}} {{percentage:3.0f}} %"
    silent = True if sys.stderr is None else None  # None: only where it is a terminal
    with tqdm(total=1.0, disable=silent, leave=False, bar_format=form) as bar:

        def progress(told: Progress) -> None:
            bar.set_description_str(plain_line(told.text, PROGRESS_WIDTH), refresh=False)
            bar.n = told.done / told.total if told.total else 0.0
            bar.refresh()

        outcome = run_and_wait(load, request, progress, lambda stream, text: _echo(stream, text, debug))
    if outcome.code:
        if debug:
            _tell_checkpoint(outcome, whole=True)
        if debug and outcome.details:
            say_details(outcome.details)
        raise Fault(outcome.sentence, outcome.code)
    return outcome


def _echo(stream: str, text: str, debug: bool) -> None:
    """The model's own prints go to stdout as they would without inspector; the worker's stderr with --debug."""
    if stream == "stdout" or debug:
        pass_on(text, err=stream != "stdout")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Fault(f"--arguments is not JSON ({problem}); expected for example '{{\"hidden\": 64}}'.") from None
    if not isinstance(value, dict):
        raise Fault(f"--arguments is a {type(value).__name__}; expected a JSON object of keyword arguments.")
    return value


def _input_spec(given: dict[str, Any], options: tuple[str, ...]) -> InputSpec:
    kinds = {"text": "text", "file": "file", "ids": "ids", "generate": "generated", "example": "example"}
    sequences = {
        kind: value if isinstance(value, tuple) else (value,)
        for name, kind in kinds.items()
        if (value := given[name]) is not None
    }
    parsed: dict[str, Any] = {}
    for option in options:
        name, separator, value = option.partition("=")
        if not separator:
            raise Fault(f"--option {option!r} has no value; expected NAME=VALUE.")
        parsed[name] = _number(value)
    try:
        return input_spec(sequences, parsed, given["look_at"])
    except ValueError as problem:
        raise Fault(str(problem)) from None


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _open(path: str) -> Capture:
    try:
        return open_capture(path)
    except CaptureError as problem:
        raise Fault(str(problem)) from None


@cli.command("list")
@click.argument("capture")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option(
    "--check", is_flag=True, help=f"Check all pages for damage, not only the first {CHECKED_BYTES >> 30} GiB."
)
def list_(capture: str, as_json: bool, check: bool) -> None:
    """List the frames and channels of a capture, and what of it is damaged."""
    with _open(capture) as opened:
        opened.verify(None if check else CHECKED_BYTES)
        rows = [
            {
                "name": c.name, "kind": c.kind, "dims": list(c.dims), "shape": list(opened.extent(c.name)),
                "dtype": c.dtype, "unit": c.unit, "title": c.title,
            }
            for c in opened.channels.values()
        ]  # fmt: skip
        frames = [{"index": f.index, "label": f.label, "step": f.step} for f in opened.frames]
        refused = [{"channel": r.channel, "reason": r.reason} for r in opened.refusals]
        checkpoint = report.from_meta(opened.start.meta)
        if as_json:
            about = {"title": opened.start.title, "status": opened.status, "frames": frames, "channels": rows}
            damaged = [asdict(one) for one in opened.damage]
            loaded = opened.start.meta.get(report.KEY)
            more = {"refused": refused, "damaged": damaged, "unchecked_bytes": opened.unchecked, "checkpoint": loaded}
            click.echo(json.dumps({**about, **more}, indent=1))
            return
        say(f"{opened.start.title} ({opened.status})")
        if checkpoint is not None:
            say(f"checkpoint: {report.line(checkpoint)}")
        for frame in frames:
            say(f"frame {frame['index']}: {frame['label']}" + (f", step {frame['step']}" if frame["step"] else ""))
        width = _width([str(row["name"]) for row in rows])
        for row in rows:
            shape = " × ".join(f"{d} {n}" for d, n in zip(row["dims"], row["shape"], strict=True))
            say(f"  {row['name']:<{width}}  {shape}  {row['dtype']}  [{row['unit']}]")
        for refusal in refused:
            say(f"  refused: {refusal['channel']}: {refusal['reason']}")
        for sentence in listed(opened.damage, MOST_DAMAGE):
            say(f"  damaged: {sentence}")
        if opened.unchecked:
            say(f"  {opened.unchecked / 2**30:.1f} GiB of pages were not checked for damage; --check does.")


@cli.command()
@click.argument("capture")
@click.option("--channel", default=None, help="Data of this channel: .npy .npz .csv .parquet .nc")
@click.option("--panel", default=None, help="Figure of this panel: .png .svg .pdf")
@click.option("--frame", default=-1, help="Index of the frame; -1 is the newest.")
@click.option("--place", default="", help="Which place of the model the panel shows.")
@click.option("--to", required=True, help="The file to write.")
@click.option("--damaged", is_flag=True, help="Write what is left where something is damaged.")
def export(
    capture: str, channel: str | None, panel: str | None, frame: int, place: str, to: str, damaged: bool
) -> None:
    """Write a channel's numbers or a panel's figure to a file."""
    if (channel is None) == (panel is None):
        raise Fault("Say what to export: either --channel NAME (numbers) or --panel NAME (a figure).")
    try:
        if channel is not None:
            with _open(capture) as opened:
                _check_frame(opened, frame)
                written = export_channel(opened, channel, frame, to, damaged=damaged)
                lost = summary(opened.damage_of(channel, frame))
        else:
            from inspector.gui.export.headless import export_panel

            with _open(capture) as opened:
                _check_frame(opened, frame)
            written, lost = export_panel(capture, str(panel), frame, place, to, damaged=damaged)
        say(str(written) + (f", without what is damaged: {lost}" if lost else ""), err=True)
    except DamagedError as problem:
        raise Fault(f"{problem} With --damaged what is left is written.", 1) from None
    except (CaptureError, ValueError) as problem:
        raise Fault(str(problem)) from None


def _check_frame(opened: Capture, frame: int) -> None:
    known = [one.index for one in opened.frames]
    if frame != -1 and frame not in known:
        raise Fault(
            f"There is no frame {frame}; there are {', '.join(map(str, known)) or 'none'}, and -1 for the newest."
        )


@cli.command("pack")
@click.argument("capture")
@click.option("--to", default=None, help="The file to write; default: NAME.inspect.zip beside the capture.")
@click.option("--overwrite", is_flag=True, help="Replace the packed capture that lies there.")
def pack_(capture: str, to: str | None, overwrite: bool) -> None:
    """Make one file of a capture, to mail; it opens like the folder."""
    try:
        say(str(pack(capture, to, overwrite=overwrite)), err=True)
    except CaptureError as problem:
        raise Fault(str(problem)) from None


@cli.command()
@click.option("--debug", is_flag=True, help="Show tracebacks and the worker's output.")
def demo(debug: bool) -> None:
    """Open the window on a run of a trained LSTM; without a display write the capture and every panel as PNG."""
    from inspector.gui.runtime.display import has_display

    if has_display() and _qt_starts():
        from inspector.gui.app import run as run_window

        raise SystemExit(run_window([], demo=True))
    folder = Path.cwd()
    target, panels = folder / f"demo{SUFFIX}", folder / "demo-panels"
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    overwrite = check_demo(target, panels)
    run_and_report(Load(subject="char-lstm"), Run(path=str(target), overwrite=overwrite, made_by=DEMO), debug)
    from inspector.gui.export.headless import export_all

    try:
        pictures = export_all(target, panels)
    except ImportError as problem:
        raise Fault(f"The run is in {target}, but no figure could be drawn: {_no_qt(problem)}", 1) from None
    say(f"No display was found, so the run was made without a window: {_summary(target)}")
    for path in (target, *pictures):
        say(f"  {path}")
    say(f"Open it on a machine with a display: inspector {target.name}")


def _qt_starts() -> bool:
    """Whether Qt can open the display, tried in a process of its own: where it cannot, it aborts the process."""
    code = "from PySide6.QtWidgets import QApplication; QApplication([])"
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    try:
        return subprocess.run([sys.executable, "-P", "-c", code], timeout=30, **quiet).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _no_qt(problem: ImportError) -> str:
    text = " ".join(str(problem).split())[:200].rstrip(".")
    return f"Qt cannot be loaded ({text}); docs/install.md names the system packages that it needs."


def main() -> int:
    """Entry point of the command `inspector`."""
    try:
        return _main()
    except Exception as fault:  # noqa: BLE001 - a fault of ours is told in one sentence too
        if "--debug" in sys.argv:
            say_details(traceback.format_exc())
            return 1
        text = " ".join(str(fault).split())[:200]
        told = f"inspector met a fault of its own ({type(fault).__name__}: {text}); inspector --debug … shows where."
        if isinstance(fault, ImportError) and "PySide6" in f"{fault.name} {fault.path} {fault}":
            told = _no_qt(fault)
        complain(told)
        return 1


def _main() -> int:
    try:
        cli.main(standalone_mode=False)
    except click.UsageError as problem:
        complain(f"{problem.format_message()} See inspector --help.")
        return 2
    except click.ClickException as problem:
        complain(problem.format_message())
        return problem.code if isinstance(problem, Fault) else problem.exit_code
    except click.Abort:
        complain("Interrupted.")
        return 130
    except CaptureError as problem:
        complain(str(problem))
        return 2
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        complain(f"{where}{problem.strerror or problem}.")
        return 2
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
