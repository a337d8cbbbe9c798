"""`inspector samples`: the sample models."""

from __future__ import annotations

import json
from typing import Any

import click

from inspector.cli.columns import width_of
from inspector.records import counted
from inspector.transport.terminal import complain, say
from inspector.workspace.samples import Sample, list_samples, samples_elsewhere


def _described(sample: Sample) -> dict[str, Any]:
    return {
        "name": sample.name, "row": sample.row, "title": sample.title, "task": sample.task, "shows": sample.shows,
        "checkpoints": [path.name for path in sample.checkpoints],
    }  # fmt: skip


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def samples(as_json: bool) -> None:
    """List the sample models."""
    found = list_samples()
    for sentence in samples_elsewhere()[1]:
        complain(sentence)
    if as_json:
        click.echo(json.dumps([_described(sample) for sample in found], indent=1))
        return
    width = width_of([sample.name for sample in found])
    for sample in found:
        checkpoints = counted(len(sample.checkpoints), "checkpoint")
        say(f"{sample.row:>4}  {sample.name:<{width}}  {sample.title} ({checkpoints})")
        say(f"      {'':<{width}}  {sample.shows}")
