"""A file that is a model by itself, program or graph: read once, agreed to where it is code, and opened."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from inspector.capture.regular import in_words
from inspector.engine.errors import InputError
from inspector.engine.model.subject import Subject
from inspector.engine.opening.user_code import UserCode
from inspector.records import CheckpointReport, Load
from inspector.workspace.trust import read_regular


def open_program(path: Path, loader: Any, load: Load, code: UserCode | None) -> tuple[Subject, CheckpointReport]:
    """The subject of a program and the report of its weights. Raises InputError, ModelError, NotAgreedError.

    The bytes that were agreed to are the ones that are opened, whatever the path names by then.
    """
    runs = bool(getattr(loader, "runs_code", False))
    if runs and code is None and not load.trusted:
        raise InputError(f"{path.name} is a program; it runs only after you have agreed to trust it.")
    try:
        content, _ = read_regular(path, sys.maxsize)
    except OSError as problem:
        raise InputError(f"{path.name} cannot be read: {in_words(problem)}.") from None
    if runs and code is not None:
        code.require_content(path, content)
    subject: Subject = loader.program(path, content, load.arguments)
    tensors = {id(one) for one in (*subject.model.parameters(), *subject.model.buffers())}
    report = CheckpointReport(
        path=str(path), layout=loader.title, matched=len(tensors), total=len(tensors), fits=True,
        rebuilt=subject.rebuilt, sha256=hashlib.sha256(content).hexdigest(),
    )  # fmt: skip
    return subject, report
