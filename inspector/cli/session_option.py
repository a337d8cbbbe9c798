"""`inspector run --session FILE`: the run of a session that a window has saved."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from inspector.cli.fault import Fault
from inspector.records import Decode, Edit, InputSpec, Load
from inspector.records.plain_text import plain_sentence
from inspector.workspace.session_files import SessionError, read_session, what_runs
from inspector.workspace.trust import agreed_files

OTHERS = (
    "checkpoint", "data", "lines", "most", "number", "spike", "edits", "partial", "look_at", "text", "file", "ids",
    "generate", "example", "kinds",
)  # fmt: skip
"""Parameters of the command that a session has itself."""


@dataclass(frozen=True, slots=True)
class SessionRun:
    """What a session runs."""

    load: Load
    input: InputSpec
    edits: tuple[Edit, ...]
    decode: Decode | None
    also: tuple[str, ...]


def session_run(path: str, given: dict[str, Any], *, trust: bool) -> SessionRun:
    """The run of a session, which may use the code that the user agrees to, or agreed to before. Raises Fault."""
    if strange := [name for name in OTHERS if given.get(name)]:
        raise Fault(f"A session has its own sequence and model: --{strange[0].replace('_', '-')} does not go with it.")
    try:
        session, content = read_session(Path(path))
    except SessionError as problem:
        raise Fault(str(problem)) from None
    if session.load is None:
        raise Fault(f"{Path(path).name} has no model, so there is nothing to run: inspector {path} opens it.")
    asked = what_runs(session, Path(path), content)
    if asked and not trust:
        trust = _agreed(plain_sentence(asked), path)
    load = replace(session.load, trusted=trust, agreed=agreed_files()[0])
    return SessionRun(load, session.input or InputSpec(), session.edits, session.decode, session.also)


def _agreed(what: str, path: str) -> bool:
    """Whether the user agrees; only somebody at a terminal can be asked. Raises Fault."""
    if sys.stdin is not None and sys.stdin.isatty():
        if click.confirm(f"{what} Run it?", default=False, err=True):
            return True
        raise Fault("The session was not run.")
    raise Fault(f"{what} Give --trust to run it, or open {path} in the window once and agree there.")
