"""`inspector compare` of two checkpoint files: the parameters that changed most."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from inspector.capture import PACKED_SUFFIX, SUFFIX, csv_bytes, is_log, write_atomically
from inspector.capture.layout import INDEX
from inspector.cli.columns import width_of
from inspector.cli.fault import Fault
from inspector.records import CompareCheckpoints, ParameterChanges
from inspector.transport.run_client import compare_checkpoints
from inspector.transport.terminal import say

PARAMETER_COLUMNS = ("name", "relative", "change", "first", "second", "largest", "elements", "problem")


def may_be_checkpoint(path: str) -> bool:
    """Whether a path is there and is neither that of a capture nor of a log."""
    at = Path(path)
    captured = path.rstrip("/").endswith((SUFFIX, PACKED_SUFFIX)) or (at / INDEX).exists()
    return at.exists() and not captured and not is_log(at)


def compare_parameters(first: str, second: str, *, as_json: bool, out: str | None) -> None:
    """Raises Fault where they cannot be read."""
    request = CompareCheckpoints(first=first, second=second)
    python = click.get_current_context().find_object(str)
    outcome, found = compare_checkpoints(request, lambda _stream, _text: None, python)
    if found is None:
        raise Fault(outcome.sentence, outcome.code)
    parameters = [{key: strict(value) for key, value in asdict(one).items()} for one in found.changes]
    about = {"first": first, "second": second, "steps": list(found.steps), "left_out": found.left_out}
    data = {**about, "parameters": parameters}
    if out is not None:
        target, suffix = Path(out), Path(out).suffix.lower()
        if suffix not in (".csv", ".json"):
            raise Fault(f"Parameters cannot be written as {target.suffix or target.name!r}; there are .csv, .json.")
        rows = [[cell(getattr(one, column)) for column in PARAMETER_COLUMNS] for one in found.changes]
        table = csv_bytes([list(PARAMETER_COLUMNS), *rows])
        write_atomically(target, table if suffix == ".csv" else json.dumps(data, indent=1).encode())
        say(str(target), err=True)
    if as_json:
        click.echo(json.dumps(data, indent=1))
    elif out is None:
        _say_parameters(found)


def _say_parameters(found: ParameterChanges) -> None:
    for word, path, step in zip(("first", "second"), (found.first, found.second), found.steps, strict=True):
        say(f"{word}: {path}" + (f", step {step}" if step >= 0 else ""))
    width = width_of([one.name for one in found.changes])
    for one in found.changes:
        if one.problem:
            say(f"  {one.name:<{width}}  not compared: {one.problem}")
        elif one.change == 0:
            say(f"  {one.name:<{width}}  equal in every one of {one.elements:,} numbers")
        else:
            sizes = f"norm of the change {one.change:.4g}, of the first {one.first:.4g}"
            say(f"  {one.name:<{width}}  relative change {one.relative:.4g} ({sizes}); largest {one.largest:.4g}")
    if found.left_out:
        say(f"  and {found.left_out:,} more")


def strict(value: Any) -> Any:
    """A number that JSON has no other way for as text: NaN and infinities."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def cell(value: Any) -> str:
    """A value as a cell of a CSV, numbers with every digit."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)
