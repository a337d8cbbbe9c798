"""`inspector sweep`: a model at every checkpoint of a folder, as frames of one capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from inspector.capture import SUFFIX, open_capture
from inspector.cli.fault import Fault
from inspector.cli.memory_option import memory_option
from inspector.cli.progress import Told
from inspector.cli.reporting import echo
from inspector.cli.sequence_options import file_name, json_object, sequence_options, spec_of_sequence
from inspector.records import Load, Log, Run, Sweep, requests_in
from inspector.records.plain_text import plain_line
from inspector.transport.run_client import INTERRUPTED, sweep_and_wait
from inspector.transport.terminal import say, say_details

KEY = "sweep"
"""The key of what is told of a sweep, in a RunStart's and in a Frame's `meta`."""


@click.command()
@click.argument("checkpoints", nargs=-1, required=True, metavar="FOLDER|PATTERN|FILE…")
@click.option("--subject", required=True, help="The model: a sample, file.py:callable or module:callable.")
@sequence_options
@click.option("--look-at", default=0, help="Which sequence of a batch is shown.")
@click.option("--with", "also", multiple=True, help="Compute this quantity too: KEY[@OPTION=VALUE]… (repeatable).")
@click.option("--only", multiple=True, help="Compute this quantity instead of the default ones (repeatable).")
@click.option("--arguments", default="{}", help="Keyword arguments of the callable, as JSON.")
@click.option("--partial", is_flag=True, help="Load what fits of checkpoints that do not fit completely.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**63 - 1), help="Seed of everything random.")
@click.option("--device", default="cpu", help="Where the model runs: cpu, cuda:0 …")
@click.option(
    "--workers", default=0, type=click.IntRange(0), help="Processes at a time; without it as many as there is room for."
)
@click.option(
    "--threads", default=1, type=click.IntRange(1), help="Threads of each; another number may round otherwise."
)
@click.option("--scheduler", default="", metavar="tcp://…", help="A dask.distributed cluster computes instead.")
@click.option("--follow", is_flag=True, help="Take checkpoints that appear later too, until Ctrl-C.")
@click.option("--out", default=None, help="Folder of the capture; default: NAME-sweep.inspect here.")
@click.option("--overwrite", is_flag=True, help="Compute everything anew, in the place of what is there.")
@click.option("--python", default=None, help="Interpreter, or environment folder, that runs the model.")
@memory_option
@click.option("--debug", is_flag=True, help="Show tracebacks and the worker's output.")
def sweep(
    checkpoints: tuple[str, ...], subject: str, options: tuple[str, ...], out: str | None, debug: bool, **given: Any
) -> int:
    """Run a model at every checkpoint of a folder on the same input, each a frame of one capture.

    What was computed before is not computed again: the same command goes on where it stopped.
    """
    target = Path(out) if out is not None else Path(f"{file_name(subject)}-sweep{SUFFIX}")
    load = Load(
        subject=subject, arguments=json_object(given["arguments"]), partial=given["partial"], trusted=True,
        device=given["device"], seed=given["seed"],
    )  # fmt: skip
    run = Run(
        path=str(target.absolute()), input=spec_of_sequence(given, options), also=requests_in(given["also"]),
        only=requests_in(given["only"]), seed=given["seed"], overwrite=given["overwrite"],
    )  # fmt: skip
    request = Sweep(
        paths=checkpoints, load=load, run=run, workers=given["workers"], threads=given["threads"],
        scheduler=given["scheduler"], follow=given["follow"],
    )  # fmt: skip
    return _carry_out(request, target, debug, given["python"] or click.get_current_context().find_object(str))


def _carry_out(request: Sweep, target: Path, debug: bool, python: str | None) -> int:
    """The exit code. Raises Fault where nothing was captured."""
    with Told() as shown:

        def tell(log: Log) -> None:
            shown.aside(plain_line(log.text))

        outcome = sweep_and_wait(request, shown.tell, tell, lambda stream, text: echo(stream, text, debug), python)
    if outcome.code not in (0, INTERRUPTED):
        if debug and outcome.details:
            say_details(outcome.details)
        raise Fault(outcome.sentence, outcome.code)
    failed = _failed(target)
    if target.exists():
        say(f"{target}: {outcome.sentence}", err=True)
    if outcome.code:
        say("Interrupted; the same command goes on from here.", err=True)
    return outcome.code or (1 if failed else 0)


def _failed(target: Path) -> int:
    """How many frames of the capture failed."""
    if not target.exists():
        return 0
    with open_capture(target) as capture:
        return sum(bool(frame.meta.get(KEY, {}).get("failed")) for frame in capture.frames)
