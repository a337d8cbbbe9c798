"""The group of commands, and the entry point that turns every failure into a one-line message and an exit code."""

from __future__ import annotations

import errno
import sys
import traceback

import click

from inspector.capture import CaptureError
from inspector.capture.regular import is_there
from inspector.cli.catalogue import catalogue
from inspector.cli.compare import compare
from inspector.cli.decode import decode
from inspector.cli.demo import demo, no_qt
from inspector.cli.desktop import desktop
from inspector.cli.diagnose import diagnose_, rules
from inspector.cli.diverge import diverge
from inspector.cli.docs import docs
from inspector.cli.export import export
from inspector.cli.fault import Fault
from inspector.cli.listen import listen
from inspector.cli.listing import list_
from inspector.cli.memory_option import memory_option
from inspector.cli.mute import mute_
from inspector.cli.pack import pack_
from inspector.cli.preflight import preflight
from inspector.cli.reproduce import reproduce_
from inspector.cli.run import run
from inspector.cli.samples import samples
from inspector.cli.sweep import sweep
from inspector.cli.trying import try_
from inspector.cli.view_options import colours_in, steps_of, view_options
from inspector.cli.watch import watch
from inspector.cli.weights import weights
from inspector.records import ViewAt
from inspector.records.naming import model_in_file
from inspector.registry import close_to
from inspector.transport.parent_link import end_with_window
from inspector.transport.terminal import complain, say_details
from inspector.version import __version__
from inspector.workspace.samples import list_samples, path_or_sample
from inspector.workspace.trainings import list_trainings, path_or_training

COMMANDS = (
    samples, run, decode, preflight, sweep, watch, listen, list_, compare, diverge, export, diagnose_, rules,
    mute_, reproduce_, pack_, weights, catalogue, docs,
    demo, try_, desktop,
)  # fmt: skip

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
UNSAID = "What this prints cannot be written: "


class PathsAllowed(click.Group):
    """A group that accepts a path instead of a command: then the window opens it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A known command, or the hidden `open` with all arguments."""
        if args and args[0] not in self.commands and _is_path(args[0]):
            return "open", self.commands["open"], args
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            ctx.fail(f"There is no command, sample or recorded training {args[0]!r}{_close(args[0])}.")
        return super().resolve_command(ctx, args)


def _close(word: str) -> str:
    """The names that may have been meant, of all that may stand there."""
    there = [*(sample.name for sample in list_samples()), *(training.name for training in list_trainings())]
    close = close_to(word, [*(str(command.name) for command in COMMANDS), *there])
    return f"; {close}" if close else ""


def _is_path(word: str) -> bool:
    return is_there(word) or "." in word or "/" in word or _named(word) != word


def _named(word: str) -> str:
    """Where the recorded training of that name lies, or the file of the sample; else the word itself, as for a path."""
    return path_or_sample(path_or_training(word))


@click.group(cls=PathsAllowed, invoke_without_command=True)
@click.version_option(__version__, prog_name="inspector")
@click.option("--python", default=None, help="Interpreter, or environment folder, that runs models.")
@memory_option
@click.option("--new-window", is_flag=True, help="Open files in a window of their own, also where one is open.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.pass_context
def cli(ctx: click.Context, python: str | None, new_window: bool, debug: bool) -> None:
    """See, step by step, what happens inside a sequence model. Without a command: the window."""
    ctx.obj = python
    if ctx.invoked_subcommand is None:
        ctx.exit(_window([], python))


def _window(paths: list[str], python: str | None, at: ViewAt | None = None, *, new: bool = True) -> int:
    from inspector.gui.runtime.signals import end_at_once
    from inspector.gui.window.first_frame import import_behind_it

    end_at_once()
    if new or not paths:  # else a window that is open may take them
        import_behind_it()
    from inspector.gui.app import run

    return run(paths, python=python, at=at or ViewAt(), new_window=new)


@cli.command("open", hidden=True)
@click.argument("paths", nargs=-1)
@view_options
@click.option("--run", default="", metavar="NAME", help="One of the runs of a log.")
@click.option("--new-window", is_flag=True, help="Open them in a window of their own.")
@click.pass_context
def open_(
    ctx: click.Context, paths: tuple[str, ...], panel: str | None, frame: int, place: str, step: int | None,
    steps: str | None, iterations: str | None,
    unit: int | None, head: int | None, curves_of: tuple[str, ...], map_colours: str, run: str, new_window: bool,
) -> None:  # fmt: skip
    """Open the window on some files, or samples and recorded trainings by their names, at a position."""
    at = ViewAt(
        panel=panel or "",
        frame=frame,
        place=place,
        step=step,
        steps=steps_of(steps),
        iterations=steps_of(iterations),
        unit=unit,
        head=head,
        curves=curves_of,
        run=run,
        colours=colours_in(map_colours),
    )
    paths = tuple(map(_named, paths))
    for path in paths:
        if not is_there(model_in_file(path) or path):
            raise Fault(f"There is no file, command, sample or recorded training {path}{_close(path)}.")
    new = new_window or bool(ctx.parent is not None and ctx.parent.params["new_window"])
    raise SystemExit(_window(list(paths), ctx.obj, at, new=new))


for command in COMMANDS:
    cli.add_command(command)


def main() -> int:
    """Entry point of the command `inspector`."""
    end_with_window()
    try:
        return _main()
    except Exception as fault:  # noqa: BLE001 - an internal error is reported in one line too
        if "--debug" in sys.argv:
            say_details(traceback.format_exc())
            return 1
        text = " ".join(str(fault).split())[:200]
        told = f"inspector met a fault of its own ({type(fault).__name__}: {text}); inspector --debug … shows where."
        if isinstance(fault, ImportError) and "PySide6" in f"{fault.name} {fault.path} {fault}":
            told = no_qt(fault)
        complain(told)
        return 1


def _main() -> int:
    try:
        code = cli.main(standalone_mode=False)  # the code of `ctx.exit`, which nobody else hands on
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
        where = f"{problem.filename}: " if problem.filename else UNSAID if problem.errno in FULL else ""
        complain(f"{where}{problem.strerror or problem}.")
        return 2
    except SystemExit as end:
        return int(end.code or 0)
    return code if isinstance(code, int) else 0
