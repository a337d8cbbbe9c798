"""Texts of objects of other code: making the text of an object runs its code, which may fail."""

from __future__ import annotations

from inspector.records.plain_text import shortened

MAX_CLASS_NAME = 100


def text_of(value: object) -> str:
    """`str(value)` as a plain string; where that fails, a text with its class. Never raises."""
    if type(value) is str:
        return value
    try:
        return str.__str__(str(value))  # __str__ may return an instance of a subclass, with methods of its own
    except (Exception, SystemExit):  # noqa: BLE001 - __str__ of a user's class may raise anything
        return f"<{class_name(value)} whose text cannot be made>"


def error_text(fault: BaseException) -> str:
    """An exception as a short text: its class and its message."""
    return f"{class_name(fault)}: {text_of(fault)}"


def in_short(value: object, limit: int) -> str:
    """The text of an object on one line, with "…" for what lies behind its first `limit` characters."""
    return shortened(" ".join(text_of(value).split()), limit)


def class_name(value: object) -> str:
    """The name of the object's class, shortened if it is long."""
    return type(value).__name__[:MAX_CLASS_NAME]


def a_class(value: object) -> str:
    """The name of the object's class with its article: "an int", "a list"."""
    name = class_name(value)
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
