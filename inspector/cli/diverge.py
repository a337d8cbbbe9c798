"""`inspector diverge`: where two runs of the same code begin to differ by more than rounding explains."""

from __future__ import annotations

import json

import click

from inspector.analysis.divergence import first_divergence
from inspector.cli.fault import Fault, opened_any
from inspector.transport.terminal import say


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--frames", nargs=2, default=(-1, -1), type=int, help="Which frame of each; -1 is the newest.")
@click.option("--runs", nargs=2, default=("", ""), metavar="NAME NAME", help="Which run of each, of logs.")
@click.option("--dtype", default="", help="Judge rounding as of this dtype at least: bfloat16 where autocast was on.")
@click.option("--check", is_flag=True, help="End with 1 where they differ beyond rounding, or are damaged.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def diverge(
    a: str, b: str, frames: tuple[int, int], runs: tuple[str, str], dtype: str, check: bool, as_json: bool
) -> None:
    """Find the first operation, parameter and iteration at which two runs differ by more than rounding explains."""
    with opened_any(a, runs[0] or None) as one, opened_any(b, runs[1] or None) as other:
        try:
            found = first_divergence(one, other, frame_a=frames[0], frame_b=frames[1], dtype=dtype)
        except ValueError as problem:
            raise Fault(str(problem)) from None
    if found.nothing:
        raise Fault(found.lines()[0])
    if as_json:
        click.echo(json.dumps(found.data(), indent=1))
    else:
        for line in found.lines():
            say(line)
    if check and (found.differs or found.damage):
        raise SystemExit(1)
