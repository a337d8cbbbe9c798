"""One full example of every class of record, made from the types of its fields.

What a type alone does not tell (a mark that must fit another, a name that is checked) stands in VALUES.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from inspector.records.codec import RECORDS

VALUES: Mapping[str, Any] = {
    "Channel.name": "l:h", "Channel.shape": (None, 4), "Channel.dims": ("step", "unit"), "Channel.dtype": "float32", "Channel.kind": "state",
    "Decode.how": "sample", "Decode.top_p": 0.5,
}  # fmt: skip


def examples() -> dict[str, Any]:
    """{class name: a record whose every field is filled}."""
    return {name: example(record) for name, record in RECORDS.items()}


def example(record: type[Any]) -> Any:
    """A record of a class; fields whose filled value it refuses keep their default."""
    hints = typing.get_type_hints(record)
    filled = {one.name: VALUES.get(f"{record.__name__}.{one.name}", _value(hints[one.name])) for one in fields(record)}
    try:
        return record(**filled)
    except (ValueError, TypeError):
        pass
    made = {one.name: filled[one.name] for one in fields(record) if _is_needed(one)}
    for one in fields(record):
        try:
            record(**{**made, one.name: filled[one.name]})
            made[one.name] = filled[one.name]
        except (ValueError, TypeError):
            continue
    return record(**made)


def _is_needed(one: Any) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _value(hint: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    simple = {str: "a", int: 1, float: 0.5, bool: True, Any: "a", types.NoneType: None}
    if hint in simple:
        return simple[hint]
    if origin in (types.UnionType, typing.Union):
        return _value(next(one for one in arguments if one is not types.NoneType))
    if origin is typing.Literal:
        return arguments[0]
    if origin is tuple:
        parts = arguments[:1] if len(arguments) == 2 and arguments[1] is Ellipsis else arguments
        return tuple(map(_value, parts))
    if is_dataclass(hint):
        return example(typing.cast(type, hint))
    return {"a": _value(arguments[1])} if not _is_recursive(arguments[1]) else {}


def _is_recursive(hint: Any) -> bool:
    return is_dataclass(hint)
