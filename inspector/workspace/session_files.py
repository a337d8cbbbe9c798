"""Sessions of the window as text files: written, read and checked, and agreed to before any code is opened by one.

A session that somebody else wrote names code and the arguments it is called with: opening it asks first, unless this
user saved it, or agreed to it, with exactly this content (trust.py).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.capture import CaptureError, write_atomically
from inspector.capture.regular import in_words
from inspector.records import BadRecordError, InputSpec, decode, encode
from inspector.records.json_text import read_json
from inspector.records.plain_text import shortened
from inspector.records.saved_session import VERSION, SavedSession
from inspector.records.unreadable import why_unreadable
from inspector.workspace.samples import list_samples
from inspector.workspace.trust import agree, agreed_files, digest, read_regular

SUFFIX = ".session.json"
LARGEST, DEEPEST, LARGEST_NUMBER = 1 << 20, 24, 1 << 53
"""Bytes of a file, lists in lists, and the greatest whole number: a session has a few kilobytes."""
OF_PATHS = ("file", "several", "spike")
"""Kinds of input whose value is a path."""


class SessionError(Exception):
    """A session that cannot be read or written, as one sentence."""


def is_session(path: str) -> bool:
    """Whether a path is that of a session, by its name."""
    return path.lower().endswith(SUFFIX)


def with_suffix(path: str) -> str:
    """A name that was typed with what sessions end in, of which it may have a part."""
    if is_session(path):
        return path
    for part in (".session", ".json"):
        path = path[: -len(part)] if path.lower().endswith(part) else path
    return path + SUFFIX


def write_session(session: SavedSession, path: Path) -> None:
    """Write a session, which this user agrees to by that. Paths inside its folder are written relative to it.

    Raises SessionError.
    """
    folder = path.absolute().parent
    data = json.dumps(json.loads(encode(_told(session, folder))), indent=1, ensure_ascii=False) + "\n"
    content = data.encode("utf-8", "backslashreplace")
    if len(content) > LARGEST:
        raise SessionError(f"This session has {len(content):,} bytes, more than the {LARGEST:,} that are read again.")
    try:
        write_atomically(path, content)
    except CaptureError as problem:
        raise SessionError(str(problem)) from None
    _agree(path, content)


def read_session(path: Path) -> tuple[SavedSession, bytes]:
    """A session, its paths made absolute, and the bytes of its file. Raises SessionError."""
    try:
        content, _ = read_regular(path, LARGEST)
    except OSError as problem:
        why = in_words(problem) if problem.strerror else str(problem)
        raise SessionError(f"{path} cannot be opened as a session: {why}.") from None
    try:
        _check(read_json(content))
        session = decode(content)
    except ValueError as problem:
        what = str(problem) if isinstance(problem, BadRecordError) else why_unreadable(problem)
        if isinstance(problem, json.JSONDecodeError):
            what = f"it is no JSON text (line {problem.lineno}, column {problem.colno})"
        raise SessionError(f"{path.name} is no session: {shortened(what, 200).rstrip('.')}.") from None
    if not isinstance(session, SavedSession):
        raise SessionError(f"{path.name} is no session: it holds a {type(session).__name__}.")
    if session.version != VERSION:
        raise SessionError(
            f"{path.name} is a session of version {session.version}; this program reads version {VERSION}."
        )
    return _found(session, path.absolute().parent), content


def what_runs(session: SavedSession, path: Path, content: bytes) -> str:
    """What opening it would run, as one sentence to be agreed to; "" where nothing, or it is agreed to already.

    Samples are this program's own code. The worker asks about files of code in any case.
    """
    load = session.load
    if load is None or load.subject in {sample.name for sample in list_samples()}:
        return ""
    if agreed_files()[0].get(str(path.absolute())) == digest(content):
        return ""
    arguments = (
        f" with the arguments {shortened(json.dumps(load.arguments, default=str), 300)}" if load.arguments else ""
    )
    return f"{path.name} opens {load.subject}{arguments}. That is code, which can do whatever you can do."


def agree_to(path: Path, content: bytes) -> None:
    """The user agreed to what the session runs; it is not asked again until the file changes."""
    _agree(path, content)


def _agree(path: Path, content: bytes) -> None:
    with contextlib.suppress(OSError):  # it is asked again then
        agree({str(path.absolute()): digest(content)})


def _check(raw: Any) -> None:
    """Raises ValueError for what is nested too deep, or has a number that no position has."""
    for value, depth in _all_in(raw):
        if depth > DEEPEST:
            raise ValueError(f"it is nested more than {DEEPEST} deep")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("it has a number that is not finite")
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            raise ValueError(f"it has a number beyond {LARGEST_NUMBER:,}")


def _all_in(raw: Any) -> Iterator[tuple[Any, int]]:
    rest: list[tuple[Any, int]] = [(raw, 0)]
    while rest:
        value, depth = rest.pop()
        yield value, depth
        if depth <= DEEPEST:
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            rest += [(one, depth + 1) for one in inner]


# -- paths


def _told(session: SavedSession, folder: Path) -> SavedSession:
    return replace(_moved(session, lambda path: _shorter(path, folder)), opened=_shorter(session.opened, folder))


def _found(session: SavedSession, folder: Path) -> SavedSession:
    opened = str(folder / session.opened) if session.opened else ""
    return replace(_moved(session, lambda path: _longer(path, folder)), opened=opened)


def _moved(session: SavedSession, other: Callable[[str], str]) -> SavedSession:
    """The session with the other form of each path of its model and input, and without what was agreed to."""
    load = session.load
    if load is not None:
        where, colon, name = load.subject.rpartition(":")
        subject = f"{other(where)}:{name}" if colon and len(where) > 1 else other(load.subject)
        load = replace(load, subject=subject, checkpoint=other(load.checkpoint), trusted=False, agreed={}, generation=0)
    return replace(session, load=load, input=_of_input(session.input, other))


def _of_input(spec: InputSpec | None, change: Callable[[str], str]) -> InputSpec | None:
    return None if spec is None else _of_part(spec, change)


def _of_part(spec: InputSpec, change: Callable[[str], str]) -> InputSpec:
    value = change(spec.value) if spec.kind in OF_PATHS else spec.value
    return replace(spec, value=value, parts={name: _of_part(part, change) for name, part in spec.parts.items()})


def _shorter(path: str, folder: Path) -> str:
    """A path that exists, relative to the folder where it lies in it, else absolute; any other text as it is."""
    if not path or "\0" in path or not os.path.lexists(path):
        return path
    whole = Path(path).absolute()
    return whole.relative_to(folder).as_posix() if whole.is_relative_to(folder) else str(whole)


def _longer(path: str, folder: Path) -> str:
    """A path that lies in the folder, absolute; any other text as it is."""
    if not path or "\0" in path or len(path) > 4096 or Path(path).is_absolute():
        return path
    try:
        return str(folder / path) if os.path.lexists(folder / path) else path
    except OSError:
        return path
