"""Whether a checkpoint is the one that a frame was computed of, and whether all else that decides the numbers is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from inspector.capture.regular import is_a_file, open_regular, path_of
from inspector.engine.errors import InputError
from inspector.engine.opening.checkpoint_files import files_of
from inspector.records import InputSpec, Sweep, encode

PIECE, PIECES = 1 << 16, 16
"""Bytes of a piece of a file that is hashed, and how many pieces, evenly spaced, the first and the last among them.

Counter-example: weights that were changed in place between two pieces, with size and time of the file put back, pass.
"""


def identity(path: Path) -> dict[str, Any]:
    """Path, size, time of the last change and a hash of some pieces, of a file or of a folder's files together.

    Raises InputError where it cannot be read.
    """
    digest, size, changed = hashlib.sha256(), 0, 0
    try:
        for file in files_of(path):
            status = file.stat()
            size, changed = size + status.st_size, max(changed, status.st_mtime_ns)
            digest.update(f"{file.name} {status.st_size}\n".encode())
            digest.update(_pieces(file, status.st_size))
    except (OSError, ValueError) as problem:
        raise InputError(f"{path.name} cannot be read: {getattr(problem, 'strerror', None) or problem}.") from None
    return {"path": str(path), "size": size, "changed": changed, "hash": digest.hexdigest()[:32]}


def size_and_time(path: Path) -> tuple[int, int]:
    """Bytes, and the time of the last change, of a checkpoint's files together. Raises InputError."""
    try:
        found = [file.stat() for file in files_of(path)]
    except OSError as problem:
        raise InputError(f"{path.name} cannot be read: {problem.strerror or problem}.") from None
    return sum(one.st_size for one in found), max((one.st_mtime_ns for one in found), default=0)


def _pieces(file: Path, size: int) -> bytes:
    digest = hashlib.sha256()
    with open_regular(file) as opened:
        for number in range(PIECES):
            opened.seek(max(0, size - PIECE) * number // (PIECES - 1))
            digest.update(opened.read(PIECE))
            if size <= PIECE:
                break
    return digest.digest()


def settings(sweep: Sweep, sequence: Any = None) -> dict[str, Any]:
    """What decides the numbers of a frame beside its checkpoint, by the words in which a difference is told.

    `sequence`: what a Python caller gave that no InputSpec says.
    """
    load, run = sweep.load, sweep.run
    told = json.loads(encode(run.input)) if sequence is None else _digest_of(sequence)
    where = load.subject.rpartition(":")[0]
    return {
        "the subject": load.subject,
        "the arguments": dict(load.arguments),
        "the subject's file": _sha(path_of(where)) if where.endswith(".py") else "",
        "the sequence": told,
        "the files of the sequence": [_sha(path_of(value)) for value in _files_of(run.input)],
        "--with": sorted(run.also),
        "--only": sorted(run.only),
        "--seed": run.seed,
        "--device": load.device,
        "--partial": load.partial,
        "--threads": sweep.threads,
        "the version of torch": torch.__version__,
    }


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs, in words."""
    found = []
    for name, value in now.items():
        plain, was = json.loads(json.dumps(value)), before.get(name)
        if plain != was:
            short = all(isinstance(one, (str, int, bool)) and len(str(one)) < 40 for one in (plain, was))
            found.append(f"{name} ({was} before, {plain} now)" if short and "file" not in name else name)
    return found


def _files_of(spec: InputSpec) -> list[str]:
    """What is given in a request and names a file."""
    values = [line for part in (spec, *spec.parts.values()) for line in part.value.splitlines()]
    return sorted({value for value in values if 0 < len(value) < 1000 and is_a_file(value)})


def _sha(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return ""


def _digest_of(sequence: Any) -> str:
    """A hash of numbers, texts and containers of them."""
    if isinstance(sequence, Mapping):
        inner = sorted((str(key), _digest_of(value)) for key, value in sequence.items())
        return hashlib.sha256(repr(inner).encode()).hexdigest()
    if isinstance(sequence, (list, tuple)):
        return hashlib.sha256(repr([_digest_of(value) for value in sequence]).encode()).hexdigest()
    if hasattr(sequence, "detach"):
        sequence = sequence.detach().cpu().numpy()
    if hasattr(sequence, "tobytes"):
        return hashlib.sha256(f"{sequence.dtype}{sequence.shape}".encode() + sequence.tobytes()).hexdigest()
    return hashlib.sha256(repr(sequence).encode()).hexdigest()
