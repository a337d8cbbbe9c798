"""The command line. Exit codes: 0 done, 1 the run failed, 2 bad arguments or unreadable input (one sentence)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from inspector.capture import SUFFIX, Capture, CaptureError, export_channel, open_capture, pack
from inspector.records import Edit, InputSpec, Load, Progress, Run, input_spec, parse_edit
from inspector.transport.run_client import run_and_wait
from inspector.version import __version__
from inspector.workspace.samples import Sample, list_samples

COMMANDS_FIRST = ("samples", "run", "list", "export", "pack", "demo")


class Fault(click.ClickException):
    """One sentence on stderr and an exit code."""

    def __init__(self, sentence: str, code: int = 2) -> None:
        super().__init__(sentence)
        self.code = code

    def show(self, file: Any = None) -> None:
        """The sentence alone, without a prefix."""
        click.echo(self.format_message(), err=True)


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
    width = max((len(sample.name) for sample in found), default=0)
    for sample in found:
        click.echo(f"{sample.row:>4}  {sample.name:<{width}}  {sample.title} ({len(sample.checkpoints)} checkpoints)")
        click.echo(f"      {'':<{width}}  {sample.shows}")


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
@click.option("--debug", is_flag=True, help="Show tracebacks and the worker's output.")
def run(subject: str, options: tuple[str, ...], arguments: str, out: str | None, debug: bool, **given: Any) -> None:
    """Run a model without a window and capture what happens inside."""
    spec = _input_spec(given, options)
    load = Load(
        subject=subject, arguments=_json_object(arguments), checkpoint=given["checkpoint"], partial=given["partial"],
        trusted=True, device=given["device"], seed=given["seed"],
    )  # fmt: skip
    target = Path(out) if out is not None else Path(_file_name(subject) + SUFFIX)
    edits = tuple(_edit(text) for text in given["edits"])
    request = Run(
        path=str(target.absolute()), input=spec, quantities=given["quantities"], edits=edits, seed=given["seed"]
    )
    run_and_report(load, request, debug)
    click.echo(f"{target}: {_summary(target)}", err=True)


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


def run_and_report(load: Load, request: Run, debug: bool) -> None:
    """Run in a worker with progress on a terminal. Raises Fault."""
    from tqdm import tqdm

    with tqdm(total=1.0, disable=None, leave=False, bar_format="{desc:<58.58} {bar} {percentage:3.0f} %") as bar:

        def progress(told: Progress) -> None:
            bar.set_description_str(told.text, refresh=False)
            bar.n = told.done / told.total if told.total else 0.0
            bar.refresh()

        outcome = run_and_wait(load, request, progress, lambda stream, line: _echo(stream, line, debug))
    if outcome.code:
        if debug and outcome.details:
            click.echo(outcome.details, err=True)
        raise Fault(outcome.sentence, outcome.code)


def _echo(stream: str, line: str, debug: bool) -> None:
    """The model's own prints go to stdout as they would without inspector; the worker's stderr with --debug."""
    if stream == "stdout":
        click.echo(line)
    elif debug:
        click.echo(line, err=True)


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as problem:
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
def list_(capture: str, as_json: bool) -> None:
    """List the frames and channels of a capture."""
    with _open(capture) as opened:
        rows = [
            {
                "name": c.name, "kind": c.kind, "dims": list(c.dims), "shape": list(opened.extent(c.name)),
                "dtype": c.dtype, "unit": c.unit, "title": c.title,
            }
            for c in opened.channels.values()
        ]  # fmt: skip
        frames = [{"index": f.index, "label": f.label, "step": f.step} for f in opened.frames]
        refused = [{"channel": r.channel, "reason": r.reason} for r in opened.refusals]
        if as_json:
            about = {"title": opened.start.title, "status": opened.status, "frames": frames, "channels": rows}
            click.echo(json.dumps({**about, "refused": refused, "damaged": opened.damaged}, indent=1))
            return
        click.echo(f"{opened.start.title} ({opened.status})")
        for frame in frames:
            click.echo(
                f"frame {frame['index']}: {frame['label']}" + (f", step {frame['step']}" if frame["step"] else "")
            )
        width = max((len(str(row["name"])) for row in rows), default=0)
        for row in rows:
            shape = " × ".join(f"{d} {n}" for d, n in zip(row["dims"], row["shape"], strict=True))
            click.echo(f"  {row['name']:<{width}}  {shape}  {row['dtype']}  [{row['unit']}]")
        for refusal in refused:
            click.echo(f"  refused: {refusal['channel']}: {refusal['reason']}")


@cli.command()
@click.argument("capture")
@click.option("--channel", default=None, help="Data of this channel: .npy .npz .csv .parquet .nc")
@click.option("--panel", default=None, help="Figure of this panel: .png .svg .pdf")
@click.option("--frame", default=-1, help="Index of the frame; -1 is the newest.")
@click.option("--place", default="", help="Which place of the model the panel shows.")
@click.option("--to", required=True, help="The file to write.")
def export(capture: str, channel: str | None, panel: str | None, frame: int, place: str, to: str) -> None:
    """Write a channel's numbers or a panel's figure to a file."""
    if (channel is None) == (panel is None):
        raise Fault("Say what to export: either --channel NAME (numbers) or --panel NAME (a figure).")
    try:
        if channel is not None:
            with _open(capture) as opened:
                click.echo(str(export_channel(opened, channel, frame, to)), err=True)
        else:
            from inspector.gui.export.headless import export_panel

            click.echo(str(export_panel(capture, str(panel), frame, place, to)), err=True)
    except (CaptureError, ValueError) as problem:
        raise Fault(str(problem)) from None


@cli.command("pack")
@click.argument("capture")
@click.option("--to", default=None, help="The file to write; default: NAME.inspect.zip beside the capture.")
def pack_(capture: str, to: str | None) -> None:
    """Make one file of a capture, to mail; it opens like the folder."""
    try:
        click.echo(str(pack(capture, to)), err=True)
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
    target = folder / f"demo{SUFFIX}"
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    run_and_report(Load(subject="char-lstm"), Run(path=str(target)), debug)
    from inspector.gui.export.headless import export_all

    try:
        pictures = export_all(target, folder / "demo-panels")
    except ImportError as problem:
        raise Fault(f"The run is in {target}, but no figure could be drawn: {_no_qt(problem)}", 1) from None
    click.echo(f"No display was found, so the run was made without a window: {_summary(target)}")
    for path in (target, *pictures):
        click.echo(f"  {path}")
    click.echo(f"Open it on a machine with a display: inspector {target.name}")


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
    return f"Qt cannot be loaded ({text}); README names the system packages that it needs."


def main() -> int:
    """Entry point of the command `inspector`."""
    try:
        return _main()
    except Exception as fault:  # a fault of ours is told in one sentence too
        if "--debug" in sys.argv:
            raise
        text = " ".join(str(fault).split())[:200]
        told = f"inspector met a fault of its own ({type(fault).__name__}: {text}); inspector --debug … shows where."
        if isinstance(fault, ImportError) and "PySide6" in f"{fault.name} {fault.path} {fault}":
            told = _no_qt(fault)
        click.echo(told, err=True)
        return 1


def _main() -> int:
    try:
        cli.main(standalone_mode=False)
    except click.UsageError as problem:
        click.echo(f"{problem.format_message()} See inspector --help.", err=True)
        return 2
    except click.ClickException as problem:
        problem.show()
        return problem.code if isinstance(problem, Fault) else problem.exit_code
    except click.Abort:
        click.echo("Interrupted.", err=True)
        return 130
    except CaptureError as problem:
        click.echo(str(problem), err=True)
        return 2
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        click.echo(f"{where}{problem.strerror or problem}.", err=True)
        return 2
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
