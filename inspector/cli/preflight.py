"""`inspector preflight`: tests of a model's structure, before any training."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from inspector.analysis.before_training import preflight as tests_before
from inspector.analysis.before_training.verdicts import MARKS, Verdict
from inspector.capture import SUFFIX, check_target, open_capture
from inspector.cli.memory_option import memory_option
from inspector.cli.preflight_tests import tests_of
from inspector.cli.reporting import run_and_report, tell_checkpoint
from inspector.cli.sequence_options import json_object, sequence_options, spec_of_sequence
from inspector.cli.whole_file import write_whole
from inspector.records import Load, Run, counted, requests_in
from inspector.transport.terminal import say

SCHEMA = "inspector-preflight-1"


@click.command()
@click.argument("subject")
@click.option("--checkpoint", default="", help="Weights to load; for a sample also a number or a file name.")
@sequence_options
@click.option("--arguments", default="{}", help="Keyword arguments of the callable, as JSON.")
@click.option("--look-at", default=0, help="Which sequence of a batch is tested.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**63 - 1), help="Seed of everything random.")
@click.option("--device", default="cpu", help="Where the model runs: cpu, cuda, cuda:1, mps.")
@click.option("--out", default=None, help="Keep the capture with all numbers in this folder.")
@click.option("--overwrite", is_flag=True, help="Replace an existing capture.")
@click.option("--python", default=None, help="Interpreter, or environment folder, that runs the model.")
@memory_option
@click.option("--quick", is_flag=True, help="The structure tests alone, no trial step.")
@click.option("--pytest", "tests", default=None, type=click.Path(dir_okay=False), help="Also write a pytest file.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--check", is_flag=True, help="End with 1 where a test finds a fault.")
@click.option("--debug", is_flag=True, help="Show tracebacks and the worker's output.")
def preflight(
    subject: str, options: tuple[str, ...], out: str | None, tests: str | None, as_json: bool, check: bool, **given: Any
) -> None:
    """Test a model before training: leaks of the future, padding and the batch, order, state, cache, trial steps."""
    load = Load(
        subject=subject, arguments=json_object(given["arguments"]), checkpoint=given["checkpoint"], trusted=True,
        device=given["device"], seed=given["seed"],
    )  # fmt: skip
    spec = spec_of_sequence(given, options)
    python = given["python"] or click.get_current_context().find_object(str)
    scratch = Path(tempfile.mkdtemp(prefix="inspector-"))
    try:
        target = scratch / f"preflight{SUFFIX}" if out is None else Path(out).absolute()
        check_target(target, given["overwrite"])
        wanted = requests_in(tests_before.asked(quick=given["quick"]))
        request = Run(path=str(target), input=spec, only=wanted, seed=given["seed"], overwrite=given["overwrite"])
        tell_checkpoint(run_and_report(load, request, given["debug"], python), given["debug"])
        with open_capture(target) as capture:
            found = tests_before.found(capture)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if tests is not None:
        write_whole(Path(tests), tests_of(load, spec, found))
    _tell(found, as_json=as_json)
    if check and any(one.word == "fault" for one in found):
        raise SystemExit(1)


def _tell(found: list[Verdict], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "tests": [_plain(one) for one in found]}, indent=1))
        return
    for one in found:
        say(f"{MARKS[one.word]:>10}  {one.test}: {one.sentence}")
    faults = sum(one.word == "fault" for one in found)
    tested = {one.test for one in found if one.word != "not tested"}
    lacking = {one.test for one in found} - tested
    more = f"; {len(lacking)} not tested" if lacking else ""
    say(f"{counted(faults, 'fault')} in {counted(len(tested), 'test')}{more}." if found else "No test.")


def _plain(one: Verdict) -> dict[str, Any]:
    """As JSON, which has no NaN and no infinity."""
    number = one.number if abs(one.number) < float("inf") else (None if one.number != one.number else "infinite")
    return {**asdict(one), "number": number, "steps": list(one.steps)}
