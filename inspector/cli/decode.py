"""`inspector decode`: searches for a model's answer token by token, and prints the tree of what was tried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from inspector.analysis.decoded_tree import hypothesis_lines, read_tree, tree_as_json, tree_lines
from inspector.capture import SUFFIX, check_target, open_capture
from inspector.cli.fault import Fault
from inspector.cli.memory_option import memory_option
from inspector.cli.reporting import run_and_report, summary_of, tell_checkpoint
from inspector.cli.sequence_options import file_name, json_object, sequence_options, spec_of_sequence
from inspector.records import Decode, Load, Run, requests_in
from inspector.records.decoding import HOWS
from inspector.transport.terminal import say

ASKED = ("how", "width", "longest", "length_penalty", "temperature", "top_k", "top_p", "shown")


@click.command("decode")
@click.argument("subject")
@click.option("--checkpoint", default="", help="Weights to load; for a sample also a number or a file name.")
@sequence_options
@click.option("--how", type=click.Choice(HOWS), default="greedy", help="The likeliest token, draws, or a beam.")
@click.option("--width", default=4, help="Hypotheses of a beam, samples drawn, or tokens noted at each greedy step.")
@click.option("--longest", default=50, help="Tokens of an answer at most, its end included.")
@click.option("--length-penalty", default=0.0, help="α of the score ln p / ((5 + tokens) / 6)^α; 0: ln p itself.")
@click.option("--temperature", default=1.0, help="Of samples: logits are divided by it.")
@click.option("--top-k", default=0, help="Of samples: draw from the k likeliest tokens; 0: from all.")
@click.option("--top-p", default=1.0, help="Of samples: draw from the fewest tokens whose probabilities sum to p.")
@click.option("--shown", default=1, help="How many hypotheses are run with every quantity, each as a frame.")
@click.option("--pruned", is_flag=True, help="Also print what was pruned.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--with", "also", multiple=True, help="Compute this quantity too: KEY[@OPTION=VALUE]… (repeatable).")
@click.option("--only", multiple=True, help="Compute this quantity instead of the default ones (repeatable).")
@click.option("--arguments", default="{}", help="Keyword arguments of the callable, as JSON.")
@click.option("--partial", is_flag=True, help="Load what fits of a checkpoint that does not fit completely.")
@click.option("--look-at", default=0, help="Which sequence of a batch is decoded.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**63 - 1), help="Seed of everything random.")
@click.option("--device", default="cpu", help="Where the model runs: cpu, cuda, cuda:1, mps.")
@click.option("--out", default=None, help="Folder of the capture; default: NAME-decode.inspect here.")
@click.option("--overwrite", is_flag=True, help="Replace an existing capture, once this run has ended.")
@click.option("--python", default=None, help="Interpreter, or environment folder, that runs the model.")
@memory_option
@click.option("--debug", is_flag=True, help="Show tracebacks and the worker's output.")
def decode(subject: str, options: tuple[str, ...], arguments: str, out: str | None, debug: bool, **given: Any) -> None:
    """Search for the answer of a model token by token, and capture what happens inside while it is said."""
    try:
        asked = Decode(**{name: given[name] for name in ASKED})
    except ValueError as problem:
        raise Fault(str(problem)) from None
    load = Load(
        subject=subject, arguments=json_object(arguments), checkpoint=given["checkpoint"], partial=given["partial"],
        trusted=True, device=given["device"], seed=given["seed"],
    )  # fmt: skip
    target = Path(out) if out is not None else Path(f"{file_name(subject)}-decode{SUFFIX}")
    check_target(target, given["overwrite"])
    request = Run(
        path=str(target.absolute()), input=spec_of_sequence(given, options), also=requests_in(given["also"]),
        only=requests_in(given["only"]), decode=asked, seed=given["seed"], overwrite=given["overwrite"],
    )  # fmt: skip
    python = given["python"] or click.get_current_context().find_object(str)
    tell_checkpoint(run_and_report(load, request, debug, python), debug)
    _tell(target, pruned=given["pruned"], as_json=given["as_json"])
    say(f"{target}: {summary_of(target)}", err=True)


def _tell(target: Path, *, pruned: bool, as_json: bool) -> None:
    """What was found, and the tree below it."""
    with open_capture(target) as capture:
        tree = read_tree(capture)
    if tree is None:
        raise Fault(f"{target} has no tree of a search.", 1)
    if as_json:
        click.echo(json.dumps(tree_as_json(tree), indent=1))
        return
    for line in (*hypothesis_lines(tree), "", *tree_lines(tree, pruned=pruned)):
        say(line)
