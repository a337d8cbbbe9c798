"""LevelDB's log framing as W&B uses it: blocks of 32 KiB with pieces of records, each with its checksum.

A piece has a crc32 (4 bytes; zlib's, begun with the type), a length (2), a type (1: whole, 2: first, 3: middle, 4:
last) and data.
A damaged piece is skipped where its length leads to another one, else the rest of its block; its record is told.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO

from inspector.capture.logs.marks import read_at

BLOCK = 32 << 10
LARGEST = 64 << 20
"""Bytes of the largest record that is put together."""
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
_HEAD = struct.Struct("<IHB")
_STARTS = {kind: zlib.crc32(bytes([kind])) for kind in (WHOLE, FIRST, MIDDLE, LAST)}


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `start` and `stop` are where its pieces lie. `problem` says why it has no data."""

    start: int
    stop: int
    data: bytes
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    stop: int
    kind: int
    data: bytes
    problem: str = ""


def records(file: FileIO, at: int, size: int) -> Iterator[Record]:
    """The records from an offset, at which one begins. What is not complete yet is not given."""
    parts: list[bytes] = []
    start, length = -1, 0
    for piece in _pieces(file, at, size):
        if piece.problem:
            yield Record(piece.start, piece.stop, b"", piece.problem)
        if piece.problem or piece.kind in (WHOLE, FIRST):
            parts, start, length = [], piece.start if piece.kind == FIRST else -1, 0
        if piece.kind == WHOLE:
            yield Record(piece.start, piece.stop, piece.data)
        elif start >= 0:
            parts.append(piece.data)
            length += len(piece.data)
            if length > LARGEST:
                yield Record(start, piece.stop, b"", f"a record of more than {LARGEST:,} bytes is left out")
                start = -1
            elif piece.kind == LAST:
                yield Record(start, piece.stop, b"".join(parts))
                start = -1


def _pieces(file: FileIO, at: int, size: int) -> Iterator[_Piece]:
    """The pieces from an offset up to the first that is not complete; a damaged one has the kind 0."""
    block, base = b"", -1
    while at + _HEAD.size <= size:
        if at - at % BLOCK != base:
            base = at - at % BLOCK
            block = read_at(file, base, min(BLOCK, size - base))
        place = at - base
        if place + _HEAD.size > len(block):
            if len(block) < BLOCK:
                return
            at = base + BLOCK
            continue
        check, length, kind = _HEAD.unpack_from(block, place)
        stop = place + _HEAD.size + length
        if check == length == kind == 0:  # the rest of a block that is left empty
            at = base + BLOCK
        elif kind not in _STARTS or stop > BLOCK:
            yield _Piece(at, base + BLOCK, 0, b"", "a piece of a record has an impossible type or length")
            at = base + BLOCK
        elif stop > len(block):
            return
        else:
            data = block[place + _HEAD.size : stop]
            good = zlib.crc32(data, _STARTS[kind]) == check
            problem = "" if good else "the checksum of a record is wrong"
            yield _Piece(at, base + stop, kind if good else 0, data, problem)
            at = base + stop
