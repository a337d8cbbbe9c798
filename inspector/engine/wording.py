"""Texts of objects that somebody else wrote: asking one for its text runs its code, which may fail."""

from __future__ import annotations

MAX_CLASS_NAME = 100


def text_of(value: object) -> str:
    """`str(value)` as a plain string; where that fails, what kind of object has no text. Never raises."""
    if type(value) is str:
        return value
    try:
        return str.__str__(str(value))  # __str__ may return an instance of a subclass, with methods of its own
    except (Exception, SystemExit):  # noqa: BLE001 - __str__ of a user's class may raise anything
        return f"<{class_name(value)} whose text cannot be made>"


def told(fault: BaseException) -> str:
    """An exception in a few words: its class and its message."""
    return f"{class_name(fault)}: {text_of(fault)}"


def class_name(value: object) -> str:
    """The name of the object's class, in bearable length."""
    return type(value).__name__[:MAX_CLASS_NAME]


def counted(count: int | None, word: str) -> str:
    """So many of something: "1 number", "2 numbers"."""
    return f"{count} {word}{'' if count == 1 else 's'}"
