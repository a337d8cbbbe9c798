"""CRC-32 as zlib has it (ITU-T V.42), of the bytes of pages.

Intel's ISA-L (package `isal`) gives the same numbers ten times as fast where it is installed, and a checksum of every
page is what writing costs most beside the bytes themselves.
"""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32
except ImportError:  # a machine for which there is no build of it
    from zlib import crc32

__all__ = ["crc32", "crc32_at_once"]

KEPT = 5 << 10
"""Bytes of one call up to which both libraries keep Python's lock."""
SMALL = 64 << 10


def crc32_at_once(data: memoryview) -> int:
    """The same number; of little it is made without giving up Python's lock. A thread that gives it up for the
    microsecond that 16 KB take has to wait until another one that computes gives it back, and wakes that up: of 6,400
    pages a thousand switches between threads, where 300 are left."""
    if not 0 < data.nbytes <= SMALL:
        return crc32(data)
    view, found = data.cast("B"), 0
    for first in range(0, len(view), KEPT):
        found = crc32(view[first : first + KEPT], found)
    return found
