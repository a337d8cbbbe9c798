"""Files that belong to a capture and travel beside its records: iterations that a training kept to be run again."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.capture import CaptureError
from inspector.capture.private import private_file
from inspector.capture.spike_files import FOLDER
from inspector.records.json_text import read_json
from inspector.transport.network.wire import WireError

PIECE = 1 << 20
MOST_BYTES = 256 << 20
"""Of one file, and of all that wait in a training to be sent."""
MOST_FILES = 20
"""Of one training."""
_NUMBER = struct.Struct("!Q?")
_LENGTH = struct.Struct("!I")
_MOST_HEAD = 1 << 10
_NAME = re.compile(r"[0-9]{4}\.safetensors\Z")


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A whole file, by its name in the folder `spikes` of the capture."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class FilePiece:
    """A part of a file: which one, where the part begins, how long all of it is."""

    name: str
    start: int
    total: int
    content: bytes


def packed_file(number: int, file: KeptFile) -> Iterator[bytes]:
    """The bodies of the messages that carry a file, the record of this number."""
    total = len(file.content)
    for start in range(0, max(1, total), PIECE):
        head = json.dumps({"file": file.name, "start": start, "total": total}).encode()
        piece = file.content[start : start + PIECE]
        yield _NUMBER.pack(number, start + PIECE < total) + _LENGTH.pack(len(head)) + head + piece


def unpacked_file(body: bytes) -> tuple[int, bool, FilePiece]:
    """(number of the record, whether more of it follows, the part). Raises WireError for what `packed_file` would not
    make: a name that is no kept iteration's, a part that lies outside of its file, a file that is too long."""
    lead = _NUMBER.size + _LENGTH.size
    (length,) = _LENGTH.unpack_from(body, _NUMBER.size) if len(body) >= lead else (_MOST_HEAD + 1,)
    if length > min(_MOST_HEAD, len(body) - lead):
        raise WireError("a part of a file has no description")
    number, more = _NUMBER.unpack_from(body)
    told = _told(body[lead : lead + length])
    name, start, total = str(told.get("file")), _whole(told.get("start")), _whole(told.get("total"))
    content = body[lead + length :]
    if not _NAME.match(name) or not 0 < total <= MOST_BYTES or start < 0 or start + len(content) > total:
        raise WireError("a part of a file that no training sends arrived")
    if more == (start + len(content) == total):
        raise WireError("a part of a file contradicts itself")
    return number, more, FilePiece(name, start, total, content)


def _whole(value: object) -> int:
    return value if type(value) is int else -1


def _told(head: bytes) -> dict[str, Any]:
    try:
        told = read_json(head)
    except ValueError:
        raise WireError("the description of a file is not JSON") from None
    return told if isinstance(told, dict) else {}


class Arriving:
    """The files of one capture as they arrive, a part after the other; a file is there once it is whole."""

    def __init__(self, capture: Path) -> None:
        self._folder = capture / FOLDER
        self._open: Any = None
        self._name = ""
        self._at = 0

    def take(self, piece: FilePiece) -> None:
        """Write a part. Raises WireError for one that is out of order, and CaptureError where the disk refuses it."""
        try:
            if piece.start == 0:
                self._begin(piece)
            elif self._open is None or (piece.name, piece.start) != (self._name, self._at):
                raise WireError("a part of a file is missing")
            self._open.write(piece.content)
            self._at += len(piece.content)
            if self._at == piece.total:
                self._finish(piece)
        except OSError as problem:
            self.close()
            raise CaptureError(
                f"{self._folder / piece.name} cannot be written ({problem.strerror or problem})."
            ) from None

    def _begin(self, piece: FilePiece) -> None:
        self.close()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if len({one.name for one in self._folder.iterdir() if _NAME.match(one.name)} - {piece.name}) >= MOST_FILES:
            raise WireError("a training sent more files than it keeps")
        self._open = private_file(self._partial(piece.name))
        self._name, self._at = piece.name, 0

    def _finish(self, piece: FilePiece) -> None:
        self._open.close()
        self._open = None
        self._partial(piece.name).replace(self._folder / piece.name)

    def _partial(self, name: str) -> Path:
        return self._folder / f"{name}.part"

    def close(self) -> None:
        """Forget a file of which parts are missing: it is sent again from its beginning."""
        if self._open is not None:
            with suppress(OSError):
                self._open.close()
            self._open = None
            with suppress(OSError):
                self._partial(self._name).unlink(missing_ok=True)
