"""Records as JSON bytes and back, for pipes, sockets and the index. Nothing is ever unpickled.

A record travels as {"record": class name, field: value, …}. Only classes listed in RECORDS are made, only with
their own fields, and every value is checked against the field's declared type; otherwise BadRecordError is raised.
Pages do not travel this way: arrays go to the page files.
"""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any

from inspector.records import catalogue, checkpoint_list, decoding, edits, options, parameter_changes, requests, run
from inspector.records.axis import Axis
from inspector.records.channel import Channel
from inspector.records.event import Event
from inspector.records.json_text import no_constant, read_json
from inspector.records.note import Note, Noted
from inspector.records.plain_text import plain_sentence, shortened
from inspector.records.saved_session import Pinned, SavedSession
from inspector.records.unreadable import why_unreadable
from inspector.records.view_at import ViewAt

MOST_SAID = 300
"""Characters of a message: a field may hold megabytes of anything. The list of all records has more, and is cut."""
MAX_BYTES = 16 * 1024 * 1024
FARTHEST = 1 << 64
"""Whole numbers in fields of their own are smaller: no position, size or seed is larger."""
_PASS = frozenset((str, bool, int, type(None)))
"""Types that JSON has as they are."""
RECORDS: dict[str, type[Any]] = {
    record.__name__: record
    for record in (
        Axis, Channel, Event, Note, Noted, run.RunStart, run.Place, run.Frame, run.Labels, run.Scalar, run.Refusal,
        run.Finding, run.Log, run.RunStop, run.RowCounts, edits.Edit, requests.InputSpec, requests.Load, requests.Run,
        requests.Sweep, requests.SweepFrame, decoding.Decode,
        requests.Analyse, requests.Cancel, requests.Quit, options.Option, catalogue.Entry, catalogue.Catalog,
        requests.Mismatch, requests.CheckpointReport,
        requests.Loaded, requests.CodeFile, requests.NeedsTrust, requests.Progress, requests.Failure,
        requests.Finished, parameter_changes.CompareCheckpoints, parameter_changes.ParameterChange,
        parameter_changes.ParameterChanges, checkpoint_list.ListCheckpoints, checkpoint_list.ListedCheckpoint,
        checkpoint_list.CheckpointList, ViewAt, SavedSession, Pinned,
    )
}  # fmt: skip


_FIELDS: dict[type[Any], tuple[str, ...] | None] = {}
_AS_JSON = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


class BadRecordError(ValueError):
    """Bytes that are not a known record with well-typed fields. Its message quotes them in one plain sentence."""

    def __init__(self, text: str) -> None:
        super().__init__(plain_sentence(text, MOST_SAID))


def encode(record: Any) -> bytes:
    """A record as UTF-8 JSON; NaN and infinities as the strings "NaN", "Infinity", "-Infinity".

    Lone surrogates (file names and arguments that are not UTF-8) are escaped: neither UTF-8 nor SQLite takes them.
    """
    return _AS_JSON.encode(_plain(record)).encode("utf-8", "backslashreplace")


def decode(data: bytes | str) -> Any:
    """The record that `encode` made. Raises BadRecordError."""
    if len(data) > MAX_BYTES:
        raise BadRecordError(f"A record has {len(data)} bytes; at most {MAX_BYTES} are read.")
    try:
        text = data.decode("utf-8", "surrogatepass") if isinstance(data, bytes) else data
        raw = read_json(text, parse_constant=no_constant)
    except ValueError as error:
        raise BadRecordError(f"Not a record: {why_unreadable(error)}") from None
    return _build(raw)


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _PASS or (kind is float and math.isfinite(value)):
        return value
    if (names := _fields(kind)) is not None:
        body = {"record": kind.__name__}
        for name in names:
            own = getattr(value, name)
            body[name] = own if type(own) in _PASS else _plain(own)
        return body
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def _fields(kind: type[Any]) -> tuple[str, ...] | None:
    """Names of the fields of a record; None for anything else."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(part.name for part in fields(kind)) if is_dataclass(kind) else None
    return _FIELDS[kind]


@cache
def _hints(name: str) -> dict[str, Any]:
    return typing.get_type_hints(RECORDS[name])


def _build(raw: Any) -> Any:
    if not isinstance(raw, dict) or not isinstance(raw.get("record"), str) or raw["record"] not in RECORDS:
        raise BadRecordError(f"Not a record; known are {', '.join(sorted(RECORDS))}.")
    record = RECORDS[raw["record"]]
    fields_of = _checks(raw["record"])
    try:
        given = {}
        for key, value in raw.items():
            check = fields_of.get(key)
            if check is not None:  # a newer minor version may have written more fields
                kinds, words, hint = check
                kind = type(value)
                passes = kind in kinds or (kind is str and value in words)
                given[key] = value if passes else _value(value, hint, f"{record.__name__}.{key}")
        return record(**given)
    except (TypeError, RecursionError) as error:
        lacking = [part.name for part in fields(record) if _is_needed(part) and part.name not in raw]
        why = f"{record.__name__} has no {', '.join(lacking)}." if lacking else f"{record.__name__}: {error}"
        raise BadRecordError(why) from None
    except BadRecordError:
        raise
    except ValueError as error:
        raise BadRecordError(str(error)) from None


def _is_needed(part: Field[Any]) -> bool:
    """Whether a record cannot be made without this field."""
    return part.init and part.default is MISSING and part.default_factory is MISSING


@cache
def _checks(name: str) -> dict[str, tuple[frozenset[type[Any]], frozenset[str], Any]]:
    """By field of a record: the types of values that may stay as they are, the texts that may, and its type as it is
    declared, by which any other value is checked. An index has hundreds of thousands of records, nearly all plain."""
    found = {}
    for field, hint in _hints(name).items():
        origin, arguments = _parts(hint)
        union = arguments if origin in (types.UnionType, typing.Union) else (hint,)
        kinds = frozenset(one for one in union if one in (str, bool, type(None)))
        words = frozenset(one for one in arguments if type(one) is str) if origin is typing.Literal else frozenset()
        found[field] = (kinds, words, hint)
    return found


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return typing.get_origin(hint), typing.get_args(hint)


def _value(raw: Any, hint: Any, where: str) -> Any:
    """`raw` as the type `hint` asks, or BadRecordError naming the field."""
    if hint is int and type(raw) is int and not -FARTHEST < raw < FARTHEST:
        raise BadRecordError(f"{where} is a whole number of {len(str(abs(raw)))} digits; expected less than 2⁶⁴.")
    if hint is Any or (hint in _PASS and type(raw) is hint):
        return raw
    origin, arguments = _parts(hint)
    if origin in (types.UnionType, typing.Union):
        return _union(raw, arguments, where)
    if origin is typing.Literal:
        if raw not in arguments:
            raise BadRecordError(f"{where} is {raw!r}, not one of {arguments}.")
        return raw
    if origin is tuple:
        return _tuple(raw, arguments, where)
    if origin is not None and isinstance(raw, dict):
        return {str(key): _value(item, arguments[1], where) for key, item in raw.items()}
    if is_dataclass(hint) and isinstance(raw, dict):
        made = _build(raw)
        if isinstance(made, typing.cast(type, hint)):
            return made
    if hint is float and isinstance(raw, (int, float, str)) and not isinstance(raw, bool):
        return _number(raw, where)
    raise BadRecordError(f"{where} should be {getattr(hint, '__name__', hint)}, not {shortened(str(raw), 60)!r}.")


def _union(raw: Any, arguments: tuple[Any, ...], where: str) -> Any:
    if raw is None and type(None) in arguments:
        return None
    others = [argument for argument in arguments if argument is not type(None)]
    for argument in others[:-1]:
        try:
            return _value(raw, argument, where)
        except BadRecordError:
            continue
    return _value(raw, others[-1], where)


def _tuple(raw: Any, arguments: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        raise BadRecordError(f"{where} should be a list, not {shortened(str(raw), 60)!r}.")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        if _all_pass(raw, arguments[0]):
            return tuple(raw)
        return tuple(_value(item, arguments[0], where) for item in raw)
    if len(raw) != len(arguments):
        raise BadRecordError(f"{where} should have {len(arguments)} items, not {len(raw)}.")
    return tuple(_value(item, argument, where) for item, argument in zip(raw, arguments, strict=True))


def _all_pass(raw: list[Any], hint: Any) -> bool:
    """Whether each item may stay as it is: 100,000 labels are checked at once."""
    if hint not in _PASS or not {*map(type, raw)} <= {hint}:
        return False
    return hint is not int or not raw or (min(raw) > -FARTHEST and max(raw) < FARTHEST)


def _number(raw: int | float | str, where: str) -> float:
    if isinstance(raw, str) and raw not in ("NaN", "Infinity", "-Infinity"):
        raise BadRecordError(f"{where} should be a number, not {shortened(raw, 60)!r}.")
    try:
        return float(raw)
    except OverflowError:
        raise BadRecordError(f"{where} is a whole number of {len(str(raw))} digits, beyond any float.") from None
