"""Sequences as they are written on a command line: `--text hello`, or by the names of inputs `--text src=hello`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from inspector.records.requests import InputSpec

NAMED = re.compile(r"(?P<name>[^\W\d]\w*)=(?P<value>.*)", re.DOTALL)
OWN = ("text", "file", "ids", "generated", "example")
"""Kinds that have an option of their own on the command line."""
SEQUENCES = "sequences"
"""The kind of many sequences, each run alone or in batches of equally long ones: a data set."""
MORE = {"text": "texts", "file": "files"}
"""Options for the further sequences of a batch, by kind ("more" of others); ids are joined by semicolons."""


def input_spec(given: Mapping[str, Sequence[str]], options: Mapping[str, Any], look_at: int = 0) -> InputSpec:
    """The InputSpec of what was given by kind ("text", "file", "ids", "generated", "example"); repeated it is a batch.

    Where everything is written NAME=VALUE, `parts` has it by name, and the options `NAME.option` go to that part alone.
    Raises ValueError with a one-line message where there are several kinds without names.
    """
    kinds = [kind for kind, values in given.items() if values]
    found = [(kind, value, NAMED.fullmatch(value)) for kind in kinds for value in given[kind]]
    shared = {name: value for name, value in options.items() if "." not in name}
    parts: dict[str, InputSpec] = {}
    if all(match is not None for _, _, match in found):
        by_name: dict[str, dict[str, list[str]]] = {}
        for kind, _, match in found:
            assert match is not None
            by_name.setdefault(match["name"], {}).setdefault(kind, []).append(match["value"])
        parts = {name: _part(name, values, options, shared) for name, values in by_name.items()}
    if len(kinds) > 1:
        if not parts:
            raise ValueError(f"One kind of sequence is run at a time or NAME=… of each; given were {_list(kinds)}.")
        return InputSpec(look_at=look_at, parts=parts)
    return InputSpec(
        **_one_kind(kinds[0], given[kinds[0]], shared) if kinds else {"options": shared}, look_at=look_at, parts=parts
    )


def data_spec(source: str, *, lines: bool = False, most: int | None = None, number: int | None = None) -> InputSpec:
    """Many sequences: a folder, a file, the subject's "examples" or its own data ("subject").

    `lines`: each line of the file is a sequence. `most`: how many are read at most. `number`: that one alone, as an
    ordinary run.
    """
    options = {"lines": lines or None, "most": most, "number": number}
    return InputSpec(
        kind=SEQUENCES, value=source, options={name: value for name, value in options.items() if value is not None}
    )


def is_data_set(spec: InputSpec) -> bool:
    """Whether every sequence of a data set is to be run, not one of it alone."""
    return spec.kind == SEQUENCES and spec.options.get("number") is None


def _part(
    name: str, values: Mapping[str, Sequence[str]], options: Mapping[str, Any], shared: Mapping[str, Any]
) -> InputSpec:
    if len(values) > 1:
        raise ValueError(f"{name} is of one kind of sequence; given were {_list(list(values))}.")
    ((kind, own),) = values.items()
    mine = {key.removeprefix(f"{name}."): value for key, value in options.items() if key.startswith(f"{name}.")}
    return InputSpec(**_one_kind(kind, own, {**shared, **mine}))


def _one_kind(kind: str, values: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields kind, value and options of one or several sequences."""
    if kind == "ids":
        return {"kind": kind, "value": ";".join(values), "options": options}
    more = {MORE.get(kind, "more"): list(values[1:])} if len(values) > 1 else {}
    return {"kind": kind, "value": values[0], "options": {**options, **more}}


def _list(kinds: Sequence[str]) -> str:
    written = {"file": "--input", "generated": "--generate"}
    return " and ".join(written.get(kind, f"--{kind}" if kind in OWN else f"--as {kind}") for kind in kinds)
