"""`inspector weights`: every tensor of a checkpoint, or what differs between two, without a model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import click

from inspector.capture.regular import is_there
from inspector.cli.columns import width_of
from inspector.cli.fault import Fault
from inspector.records import counted
from inspector.transport.interpreter import cannot_be_run, chosen, what_is_wrong
from inspector.transport.terminal import say

MODULE = "inspector.engine.session.checkpoint_tensors"


@click.command("weights")
@click.argument("file")
@click.argument("other", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON, with histograms, singular values and gates.")
@click.option("--python", default=None, help="Interpreter, or environment folder, that reads the files.")
def weights(file: str, other: str | None, as_json: bool, python: str | None) -> None:
    """List the tensors of a checkpoint; with OTHER, compare two tensor by tensor. Nothing is executed."""
    paths = [file] if other is None else [file, other]
    for path in paths:
        if not is_there(path):
            raise Fault(f"There is no file {path}.")
    found = _read(paths, chosen(python or click.get_current_context().find_object(str)))
    if as_json:
        click.echo(json.dumps(found, indent=1))
    elif other is None:
        _list(found)
    else:
        _compare(found)


def _read(paths: list[str], python: str) -> Any:
    """What a process with torch found. Raises Fault with its message."""
    command = [python, "-P", "-m", MODULE, *(str(Path(path).absolute()) for path in paths)]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
    except OSError as problem:
        raise Fault(cannot_be_run(python, problem)) from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        ended = f"Reading {' and '.join(paths)} ended with code {done.returncode}."
        if done.returncode != 2 and (wrong := what_is_wrong(python)):  # it has no torch, or not this package
            raise Fault(wrong, 1)
        raise Fault(lines[-1] if lines else ended, 2 if done.returncode == 2 else 1)
    return json.loads(done.stdout)


def _list(found: dict[str, Any]) -> None:
    entries = found["tensors"]
    step = "" if found["step"] is None else f", step {found['step']}"
    say(f"{found['layout']}{step}: {counted(len(entries), 'tensor', ',')}", err=True)
    names = [one["name"] for one in entries]
    for one in entries:
        say(f"{one['name']:<{width_of(names)}}  {one['dtype']} {_shape(one['shape'])}  {_numbers(one)}")
        for gate in one["gates"]:
            say(f"    {gate['gate']:<7} {_numbers(gate)}")


def _numbers(one: dict[str, Any]) -> str:
    parts = []
    if one["min"] is not None:
        parts.append(f"{_short(one['min'])} … {_short(one['max'])}, mean {_short(one['mean'])}, "
                     f"std {_short(one['std'])}, norm {_short(one['norm'])}")  # fmt: skip
    if one["singular_values"]:
        parts.append(f"σ {_short(one['singular_values'][0])} … {_short(one['singular_values'][-1])}")
    parts += [f"{one[key]:,} {word}" for key, word in (("nan", "NaN"), ("inf", "infinite")) if one[key]]
    if same := one.get("same_memory_as"):
        parts.append(f"the same memory as {same}")
    return "; ".join(parts) or "no elements"


def _compare(found: dict[str, Any]) -> None:
    pairs = found["pairs"]
    names = [one["name"] for one in pairs]
    for one in pairs:
        say(f"{one['name']:<{width_of(names)}}  {_differs(one)}")
    for key, word in (("only_first", "first"), ("only_second", "second")):
        for name in found[key]:
            say(f"{name}  only in the {word}")
    equal = sum(bool(one["difference"] and one["difference"]["equal"]) for one in pairs)
    say(f"{equal:,} of {counted(len(pairs), 'common tensor', ',')} equal", err=True)


def _differs(one: dict[str, Any]) -> str:
    found, (first, second) = one["difference"], one["dtypes"]
    types = "" if first == second else f"; {first} and {second}"
    if found is None:
        return f"shapes differ: {_shape(one['shapes'][0])} and {_shape(one['shapes'][1])}{types}"
    if found["equal"]:
        return f"equal{types}"
    left = f"; {found['left_out']:,} not finite" if found["left_out"] else ""
    at = f" at {found['at']}" if found["at"] is not None else ""
    return (f"relative norm {_short(found['relative'])}, norm {_short(found['norm'])}, "
            f"largest {_short(found['largest'])}{at}{left}{types}")  # fmt: skip


def _shape(sizes: list[int]) -> str:
    return "(" + ", ".join(map(str, sizes)) + ")"


def _short(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"
