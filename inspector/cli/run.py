"""`inspector run`: runs a model without a window and captures what happens inside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from inspector.capture import SUFFIX, check_target
from inspector.cli.fault import Fault
from inspector.cli.memory_option import memory_option
from inspector.cli.reporting import (
    costs_of,
    run_and_report,
    spike_lines,
    summary_of,
    tell_checkpoint,
    tell_not_run,
    tell_unshown,
)
from inspector.cli.sequence_options import (
    file_name,
    json_object,
    sequence_options,
    sequences_in,
    spec_of_sequence,
    values_in,
)
from inspector.cli.session_option import session_run
from inspector.records import Edit, InputSpec, Load, Run, data_spec, is_data_set, parse_edit, requests_in
from inspector.transport.terminal import say


@click.command()
@click.argument("subject", required=False, default="")
@click.option("--session", default=None, metavar="FILE", help="The model and run of a session that a window saved.")
@click.option("--trust", is_flag=True, help="With --session: run its code without asking.")
@click.option("--checkpoint", default="", help="Weights to load; for a sample also a number or a file name.")
@sequence_options
@click.option("--data", default=None, help="Many sequences: a folder, a file, 'examples', or 'subject' (its own data).")
@click.option("--lines", is_flag=True, help="With --data FILE: each line is a sequence.")
@click.option("--most", default=None, type=click.IntRange(1), help="With --data: how many are read at most.")
@click.option(
    "--number", default=None, type=click.IntRange(0), help="With --data: run this one alone, as an ordinary run."
)
@click.option("--spike", default=None, help="An iteration that a training kept: PATH/spikes/0001.safetensors.")
@click.option(
    "--edit", "edits", multiple=True, help="Run twice, the second time with PLACE:SIGNAL[UNIT]=VALUE@FROM:TO."
)
@click.option(
    "--with", "also", multiple=True, help="Compute this quantity too: KEY[@OPTION=VALUE]… (repeatable, or a list)."
)
@click.option("--only", multiple=True, help="Compute this quantity instead of the default ones (repeatable).")
@click.option("--arguments", default="{}", help="Keyword arguments of the callable, as JSON.")
@click.option("--partial", is_flag=True, help="Load what fits of a checkpoint that does not fit completely.")
@click.option("--look-at", default=0, help="Which sequence of a batch is shown.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**63 - 1), help="Seed of everything random.")
@click.option("--device", default="cpu", help="Where the model runs: cpu, cuda, cuda:1, mps.")
@click.option("--out", default=None, help="Folder of the capture; default: NAME.inspect here.")
@click.option("--overwrite", is_flag=True, help="Replace an existing capture, once this run has ended.")
@click.option("--python", default=None, help="Interpreter, or environment folder, that runs the model.")
@memory_option
@click.option("--costs", is_flag=True, help="Print afterwards how long each quantity took.")
@click.option("--debug", is_flag=True, help="Show tracebacks and the worker's output.")
def run(
    subject: str, options: tuple[str, ...], arguments: str, out: str | None, overwrite: bool, debug: bool, trust: bool,
    session: str | None, **given: Any,
) -> None:  # fmt: skip
    """Run a model without a window and capture what happens inside."""
    if bool(subject) == (session is not None) or (trust and session is None):
        raise Fault("Give either a SUBJECT or --session FILE; --trust belongs to --session.")
    saved = session_run(session, given, trust=trust) if session is not None else None
    spec = _input_spec(given, options) if saved is None else saved.input
    many = is_data_set(spec)
    if many and (given["also"] or given["only"] or given["edits"]):
        raise Fault("--with, --only and --edit belong to the run of one sequence; --number N runs one of --data.")
    load = _load(subject, arguments, given) if saved is None else saved.load
    target = Path(out) if out is not None else Path(file_name(load.subject) + SUFFIX)
    edits = tuple(_edit(text) for text in given["edits"]) if saved is None else saved.edits
    check_target(target, overwrite)
    request = Run(
        path=str(target.absolute()), input=spec, only=requests_in(given["only"]),
        also=(*(saved.also if saved is not None else ()), *requests_in(given["also"])), edits=edits,
        decode=saved.decode if saved is not None else None, seed=load.seed, overwrite=overwrite,
    )  # fmt: skip
    python = given["python"] or click.get_current_context().find_object(str)
    tell_checkpoint(run_and_report(load, request, debug, python), debug)
    tell_unshown(target)
    tell_not_run(target)
    say(f"{target}: {summary_of(target)}", err=True)
    for line in spike_lines(target):
        say(line)
    if given["costs"]:
        for line in costs_of(target):
            say(line, err=True)


def _load(subject: str, arguments: str, given: dict[str, Any]) -> Load:
    return Load(
        subject=subject, arguments=json_object(arguments), checkpoint=given["checkpoint"], partial=given["partial"],
        trusted=True, device=given["device"], seed=given["seed"],
    )  # fmt: skip


def _edit(text: str) -> Edit:
    try:
        return parse_edit(text)
    except ValueError as problem:
        raise Fault(str(problem)) from None


def _input_spec(given: dict[str, Any], options: tuple[str, ...]) -> InputSpec:
    if given["spike"] is not None:
        if given["data"] is not None or any(sequences_in(given).values()) or given["edits"]:
            raise Fault("--spike runs one iteration of a training; give no other sequence, and no --edit.")
        return InputSpec(kind="spike", value=str(Path(given["spike"]).absolute()))
    if given["data"] is None and (given["lines"] or given["most"] is not None or given["number"] is not None):
        raise Fault("--lines, --most and --number belong to --data.")
    if given["data"] is None:
        return spec_of_sequence(given, options)
    if any(sequences_in(given).values()):
        raise Fault("--data runs many sequences; give either it or one sequence.")
    own = data_spec(given["data"], lines=given["lines"], most=given["most"], number=given["number"])
    return replace(own, options={**values_in(options), **own.options})
