"""Options that give a sequence and the arguments of a model, the same for every command that runs one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from inspector.cli.fault import Fault
from inspector.records import InputSpec, input_spec
from inspector.records.file_names import file_stem
from inspector.records.json_text import no_constant, read_json
from inspector.records.plain_text import shortened

OPTIONS = (
    click.option("--text", multiple=True, help="[NAME=] The sequence as text in the vocabulary; repeated: a batch."),
    click.option("--input", "file", multiple=True, help="[NAME=] A file: .txt .npy .csv .wav …; repeated: a batch."),
    click.option(
        "--ids", multiple=True, help="[NAME=] Token ids, for example '3 1 4'; repeated, or after ';': a batch."
    ),
    click.option("--generate", default=None, help="noise, impulse, constant or sine, for models that read vectors."),
    click.option("--example", default=None, help="One of the subject's example sequences, by name."),
    click.option(
        "--as", "kinds", nargs=2, multiple=True, metavar="KIND VALUE", help="A sequence that another input makes."
    ),
    click.option("--option", "options", multiple=True, help="NAME=VALUE for the input: steps=200, at=10 …; src.key=x."),
)
KINDS = {"text": "text", "file": "file", "ids": "ids", "generate": "generated", "example": "example"}
"""The parameter of each option → key of the input that makes its sequence."""


def sequence_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, in their order."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def spec_of_sequence(given: dict[str, Any], options: tuple[str, ...]) -> InputSpec:
    """The sequence of a command's parameters. Raises Fault."""
    try:
        return input_spec(sequences_in(given), values_in(options), given["look_at"])
    except ValueError as problem:
        raise Fault(str(problem)) from None


def sequences_in(given: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """{key of an input: what was given}."""
    sequences = {
        kind: value if isinstance(value, tuple) else (value,)
        for name, kind in KINDS.items()
        if (value := given[name]) is not None
    }
    for kind, value in given["kinds"]:  # inputs of other packages, and built-in ones by their keys
        sequences[kind] = (*sequences.get(kind, ()), value)
    return sequences


def values_in(options: tuple[str, ...]) -> dict[str, Any]:
    """{name: value} of options NAME=VALUE. Raises Fault."""
    parsed: dict[str, Any] = {}
    for option in options:
        name, separator, value = option.partition("=")
        if not separator:
            raise Fault(f"--option {option!r} has no value; expected NAME=VALUE.")
        parsed[name] = _number(value)
    return parsed


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def json_object(text: str) -> dict[str, Any]:
    """The keyword arguments of a callable. Raises Fault."""
    try:
        value = read_json(text, parse_constant=no_constant)
    except ValueError as problem:
        raise Fault(f"--arguments is not JSON ({problem}); expected for example '{{\"hidden\": 64}}'.") from None
    if not isinstance(value, dict):
        raise Fault(f"--arguments is {shortened(text, 40)!r}; expected a JSON object of keyword arguments.")
    return value


def file_name(subject: str) -> str:
    """The name of a capture for a subject."""
    name = subject.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return file_stem(name.replace(".", "_"), "run")
