"""`inspector samples`: the sample models, and the recorded trainings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from inspector.cli.columns import width_of
from inspector.records import counted
from inspector.transport.terminal import complain, say
from inspector.workspace.samples import Sample, list_samples, samples_elsewhere
from inspector.workspace.trainings import Training, list_trainings


def _described(sample: Sample) -> dict[str, Any]:
    return {
        "name": sample.name, "row": sample.row, "title": sample.title, "task": sample.task, "shows": sample.shows,
        "checkpoints": [path.name for path in sample.checkpoints],
    }  # fmt: skip


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--trainings", is_flag=True, help="The recorded trainings alone, with where their captures lie.")
def samples(as_json: bool, trainings: bool) -> None:
    """List the sample models and the recorded trainings; as JSON only one of the two."""
    if trainings:
        _say_trainings(list_trainings(), as_json)
        return
    found = list_samples()
    for sentence in samples_elsewhere()[1]:
        complain(sentence)
    if as_json:
        click.echo(json.dumps([_described(sample) for sample in found], indent=1))
        return
    width = width_of([sample.name for sample in found])
    for sample in found:
        checkpoints = counted(len(sample.checkpoints), "checkpoint")
        say(f"{sample.name:<{width}}  {sample.title} ({checkpoints})")
        say(f"{'':<{width}}  {sample.shows}")
    _say_trainings(list_trainings(), False)


def _training(one: Training) -> dict[str, Any]:
    return {**asdict(one), "file": str(one.file), "capture": str(one.capture)}


def _say_trainings(found: Sequence[Training], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([_training(one) for one in found], indent=1))
        return
    width = width_of([one.name for one in found])
    for one in found:
        say(f"{one.name:<{width}}  {one.title}: a recorded training ({one.capture})")
        say(f"{'':<{width}}  {one.shows}")
