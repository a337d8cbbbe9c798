"""`inspector try`: cures tried on a model, or for what the rules find in a capture, which then keeps the result."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from inspector.analysis.cures import Tried, not_tried, plain, request_for, tried
from inspector.capture import SUFFIX, Capture, check_target, open_capture
from inspector.capture.added import add_trials, forget_trials
from inspector.capture.noted import why_not_added
from inspector.cli.columns import width_of
from inspector.cli.fault import Fault
from inspector.cli.memory_option import memory_option
from inspector.cli.reporting import run_and_report, tell_checkpoint
from inspector.cli.sequence_options import json_object, sequence_options, spec_of_sequence
from inspector.diagnosis import diagnose, untried
from inspector.diagnosis.own_training import recorded_training
from inspector.records import Load, Run
from inspector.transport.run_client import ask_catalog
from inspector.transport.terminal import say
from inspector.workspace.captured import captured_at
from inspector.workspace.its_model import load_of

SCHEMA = "inspector-trials-1"


@click.command("try")
@click.argument("target", metavar="CAPTURE|SUBJECT")
@click.option(
    "--cure", "cures", multiple=True, help="What is tried (repeatable); inspector catalogue cures lists them."
)
@click.option("--steps", default=100, type=click.IntRange(1, 100_000), help="Steps of training of each copy.")
@click.option("--seeds", default=3, type=click.IntRange(1, 100), help="Copies of each kind.")
@click.option(
    "--optimizer", default="own", type=click.Choice(["own", "adam", "adamw", "sgd"]),
    help="Of all copies; own: that of the training where it is known (watched, or the subject's), else adam.",
)  # fmt: skip
@click.option("--rate", default=None, type=click.FloatRange(0.0), help="Learning rate as it is.")
@click.option("--decay", default=None, type=click.FloatRange(0.0), help="Weight decay.")
@click.option("--subject", default="", help="The model of a capture that does not name one that can be opened.")
@click.option("--checkpoint", default="", help="Weights to load; for a sample also a number or a file name.")
@sequence_options
@click.option("--arguments", default="{}", help="Keyword arguments of the callable, as JSON.")
@click.option("--look-at", default=0, hidden=True)
@click.option("--seed", default=0, type=click.IntRange(0, 2**63 - 1), help="Seed with which the model is made.")
@click.option("--device", default="cpu", help="Where the model runs: cpu, cuda, cuda:1, mps.")
@click.option("--out", default=None, help="Keep the result in a capture of its own, and leave the other as it is.")
@click.option("--overwrite", is_flag=True, help="Replace an existing capture.")
@click.option("--python", default=None, help="Interpreter, or environment folder, that runs the model.")
@memory_option
@click.option(
    "--forget", is_flag=True, help="Try nothing: take trials out of the CAPTURE again, those of --cure or all."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--debug", is_flag=True, help="Show tracebacks and the worker's output.")
def try_(
    target: str, cures: tuple[str, ...], options: tuple[str, ...], out: str | None, forget: bool, as_json: bool,
    **given: Any,
) -> None:  # fmt: skip
    """Train copies of a model as it is and with a cure, from the same weights on the same batches, and compare them.

    Of a CAPTURE the cures for its findings are tried, and the capture keeps the result; of a SUBJECT all of them.
    """
    held = captured_at(target)
    if forget:
        _forget(held, target, cures)
        return
    load = _load(held, target, given)
    if held is not None and out is None:
        with open_capture(held) as capture:
            if why := why_not_added(capture):
                raise Fault(f"{why} --out FOLDER keeps the result in a capture of its own.")
    keys = list(cures) or _wanted(held)
    scratch = Path(tempfile.mkdtemp(prefix="inspector-"))
    try:
        made = scratch / f"trial{SUFFIX}" if out is None else Path(out).absolute()
        check_target(made, given["overwrite"])
        asked = {key: given[key] for key in ("seeds", "optimizer", "rate", "decay")}
        asked["recorded"] = _recorded(held)
        request = Run(
            path=str(made), input=spec_of_sequence(given, options), seed=load.seed, overwrite=given["overwrite"],
            only=(request_for(keys, iterations=given["steps"], **asked),),
        )  # fmt: skip
        python = given["python"] or click.get_current_context().find_object(str)
        tell_checkpoint(run_and_report(load, request, given["debug"], python), given["debug"])
        if held is not None and out is None:
            with open_capture(held) as capture, open_capture(made) as result:
                add_trials(capture, result)
        with open_capture(made) as result:
            _tell(result, str(made if out is not None else held or ""), as_json=as_json)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _forget(held: Path | None, target: str, cures: Sequence[str]) -> None:
    """Take trials out of a capture again. Raises Fault where it is none."""
    if held is None:
        raise Fault(f"--forget takes trials out of a capture; {target} is none.")
    with open_capture(held) as capture:
        gone = forget_trials(capture, cures)
    say(f"{held}: {', '.join(gone)} forgotten." if gone else f"{held} has no trials; nothing has changed.")


def _load(held: Path | None, target: str, given: dict[str, Any]) -> Load:
    """The request that opens the model: that of the capture, or the one that is given in its place. Raises Fault."""
    own = Load(
        subject=given["subject"] or target, arguments=json_object(given["arguments"]), checkpoint=given["checkpoint"],
        trusted=True, device=given["device"], seed=given["seed"],
    )  # fmt: skip
    if held is None and given["subject"]:
        raise Fault(f"--subject gives the model of a capture; {target} is none.")
    if held is None or given["subject"]:
        return own
    with open_capture(held) as capture:
        try:
            found = load_of(capture.start)
        except LookupError as problem:
            raise Fault(f"The model cannot be opened: {problem}. --subject file.py:callable names it.") from None
    checkpoint = given["checkpoint"] or found.checkpoint
    return replace(own, subject=found.subject, checkpoint=checkpoint, seed=given["seed"] or found.seed)


def _wanted(held: Path | None) -> list[str]:
    """All cures; of a capture those for what the rules find, at warning and above where there is any. Raises Fault."""
    catalog = ask_catalog()
    if catalog is None:
        raise Fault("The worker, which knows the cures, did not start.", 1)
    if held is None:
        return [cure.key for cure in catalog.cures]
    with open_capture(held) as capture:
        every = diagnose(capture, capture.frames).findings
    found = [one for one in every if one.severity != "info"] or list(every)
    rules = {one.id for one in found}
    keys = [cure.key for cure in catalog.cures if rules & set(cure.rules)]
    if not keys:
        why = {f"{one.id}: {untried(one.rule) or 'no cure names it'}" for one in found}
        told = f" Cannot be tried: {'; '.join(sorted(why))}." if found else " No rule finds anything in it."
        known = ", ".join(cure.key for cure in catalog.cures)
        raise Fault(f"No cure is for what was found in {held.name}.{told} --cure tries one of {known}.")
    return keys


def _recorded(held: Path | None) -> str | None:
    """What a capture knows of how its training made its steps; None of a model, and of a run."""
    if held is None:
        return None
    with open_capture(held) as capture:
        return recorded_training(capture) or None


def _tell(result: Capture, kept: str, *, as_json: bool) -> None:
    """The verdicts, as sentences or as JSON. Raises Fault where none was made."""
    found, refused = tried(result), not_tried(result.refusals)
    if as_json:
        told = {"schema": SCHEMA, "kept": kept, "tried": [plain(one) for one in found], "not_tried": refused}
        click.echo(json.dumps(told, indent=1))
    else:
        _table(found, refused)
        if kept and found:
            say(f"{kept}: the losses are kept there.", err=True)
    if not found:
        raise Fault("Nothing could be tried.", 1)


def _table(found: Sequence[Tried], refused: Mapping[str, str]) -> None:
    """A line for each cure with its verdict, the losses with their spread, and how both copies were trained."""
    width = width_of([*(one.cure for one in found), *refused])
    for one in found:
        say(f"{one.cure:<{width}}  {one.sentence}")
        say(f"{'':<{width}}  {one.method}")
    for key, reason in refused.items():
        say(f"{key:<{width}}  not tried: {reason}")
