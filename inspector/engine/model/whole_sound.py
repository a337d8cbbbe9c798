"""Whether a file of sound is whole, which the library does not say: it plays what is there and leaves damage out.

RIFF: a chunk is four bytes of name, four of length, then so many bytes (IBM and Microsoft, 1991). Ogg: RFC 3533; a page
is `OggS`, …, its checksum at byte 22 (polynomial 0x04C11DB7, computed with zeros in its place), the lengths of its
segments from byte 27 on. FLAC has checksums that the library looks at.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import IO

from inspector.capture.regular import open_regular

HEADER, LAST = 27, 4
MOST_CHUNKS = 10_000
UNKNOWN = 0xFFFFFFFF
"""As a length: the program that wrote it could not go back to its beginning."""
REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def missing_part(path: Path) -> str:
    """What is wrong with a file, as the end of a sentence; "" where it is whole or of another kind. Raises OSError."""
    with open_regular(path) as file:
        head = file.read(12)
        file.seek(0)
        if head.startswith(b"OggS"):
            return _of_ogg(file)
        return _of_riff(file, path.stat().st_size) if head.startswith(b"RIFF") and head.endswith(b"WAVE") else ""


def _of_riff(file: IO[bytes], size: int) -> str:
    file.seek(12)
    for _ in range(MOST_CHUNKS):
        head = file.read(8)
        if len(head) < 8:
            return ""
        name, length = struct.unpack("<4sI", head)
        if name == b"data":
            there = size - file.tell()
            return f"it is cut short, with {there:,} of {length:,} bytes" if there < length != UNKNOWN else ""
        file.seek(length + length % 2, 1)
    return ""


def _of_ogg(file: IO[bytes]) -> str:
    flags = 0
    while header := file.read(HEADER):
        at = file.tell() - len(header)
        if len(header) < HEADER or not header.startswith(b"OggS"):
            return f"it is damaged or cut short at byte {at:,}"
        segments = file.read(header[26])
        body = file.read(sum(segments))
        stored = int.from_bytes(header[22:26], "little")
        whole = len(segments) == header[26] and len(body) == sum(segments)
        if not whole or _checksum(header[:22] + bytes(4) + header[26:] + segments + body) != stored:
            return f"it is damaged or cut short at byte {at:,}"
        flags = header[5]
    return "" if flags & LAST else "it is cut short: its last page is missing"


def _checksum(page: bytes) -> int:
    """zlib's has the same polynomial, with the bits of each byte, and those of the result, the other way round."""
    turned = zlib.crc32(page.translate(REVERSED), UNKNOWN) ^ UNKNOWN
    return int(f"{turned:032b}"[::-1], 2)
