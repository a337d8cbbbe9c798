"""Archives that every program reads alike.

Python's zipfile looks for the directory of a zip archive before its end, torch's own reader (miniz) where the end says
that it is; and to the latter small and capital letters are one. An archive may so show one content to what checks it
and another to what loads it. The layout of the end is that of PKWARE's APPNOTE 4.3.14 to 4.3.16.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from inspector.capture.encrypted import encrypted
from inspector.engine.errors import InputError

END, END64, LOCATOR = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
END_BYTES, END64_BYTES, LOCATOR_BYTES = 22, 56, 20
MOST_BEHIND = (1 << 16) + END_BYTES
"""Bytes before the end of a file in which the end of its archive begins: its comment has at most 2¹⁶ − 1."""
UNKNOWN = 0xFFFFFFFF
"""What the fields of 32 bits say where those of 64 bits count."""
DOS_FOLDER = 0x10
"""The bit of a member's attributes that says that it is a folder."""
ELSEWHERE = "the directory of the archive is not where its end says"


def require_plain(path: Path, members: Iterable[zipfile.ZipInfo]) -> None:
    """Raises InputError where a member of an archive needs a password."""
    locked = encrypted(members)
    if locked is not None:
        raise InputError(f"{path.name} is not read: {locked}.")


def require_one_directory(file: IO[bytes]) -> None:
    """Raises BadZipFile where an archive has no end, or its directory does not end where the end begins."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MOST_BEHIND))
    tail = file.read()
    at = tail.rfind(END)
    if at < 0 or at + END_BYTES > len(tail):
        raise zipfile.BadZipFile("File is not a zip file")
    length, offset = struct.unpack("<II", tail[at + 12 : at + 20])
    stop = size - len(tail) + at
    if tail[: max(0, at - LOCATOR_BYTES + 4)].endswith(LOCATOR):
        stop -= LOCATOR_BYTES + END64_BYTES
        length, offset = _of_64_bits(tail[: at - LOCATOR_BYTES], tail[at - LOCATOR_BYTES : at], stop, (length, offset))
    if offset + length != stop:
        raise zipfile.BadZipFile(ELSEWHERE)


def _of_64_bits(before: bytes, locator: bytes, place: int, short: tuple[int, int]) -> tuple[int, int]:
    """(length, offset) of the directory, in the end of 64 bits, which begins at `place` and lies before its locator."""
    end = before[-END64_BYTES:]
    if len(end) < END64_BYTES or not end.startswith(END64) or struct.unpack("<Q", locator[8:16])[0] != place:
        raise zipfile.BadZipFile(ELSEWHERE)
    length, offset = struct.unpack("<QQ", end[40:56])
    if any(one not in (UNKNOWN, other) for one, other in zip(short, (length, offset), strict=True)):
        raise zipfile.BadZipFile(ELSEWHERE)
    return int(length), int(offset)


def named_twice(names: Iterable[str]) -> str | None:
    """A name that two members of an archive have, of which torch's reader and zipfile may read different ones."""
    return next((name for name, count in Counter(one.lower() for one in names).items() if count > 1), None)


def left_unread(members: Iterable[zipfile.ZipInfo]) -> str | None:
    """A member with bytes that torch's reader takes for a folder or for empty: it reads none, and what the memory for
    them held before is taken for numbers."""
    return next((one.filename for one in members if one.file_size and (_is_empty(one) or _is_folder(one))), None)


def _is_empty(member: zipfile.ZipInfo) -> bool:
    stored = member.compress_type == zipfile.ZIP_STORED
    return not member.compress_size or (stored and member.compress_size != member.file_size)


def _is_folder(member: zipfile.ZipInfo) -> bool:
    return member.is_dir() or bool(member.external_attr & DOS_FOLDER)
