"""Session files of the window."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from target import FoundError, Target

from inspector.workspace.session_files import SessionError, read_session, what_runs, write_session


def attempt(data: bytes, scratch: Path) -> None:
    """Read it, ask what it runs, write it and read it again."""
    path = scratch / "a.session.json"
    path.write_bytes(data)
    session, content = read_session(path)
    what_runs(session, path, content)
    write_session(session, scratch / "b.session.json")
    again, _ = read_session(scratch / "b.session.json")
    if _known(again) != _known(session):
        raise FoundError("it is another session after it was written and read")


def _known(session: object) -> str:
    """As text, since NaN is not equal to itself."""
    return repr(replace(session, load=None))  # type: ignore[type-var]


TARGET = Target("session files", ("inspector.workspace", "inspector.records"), attempt, (SessionError,))
