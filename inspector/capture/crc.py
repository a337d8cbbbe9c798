"""CRC-32 as zlib has it (ITU-T V.42), of the bytes of pages.

Intel's ISA-L (package `isal`) gives the same numbers ten times as fast where it is installed, and a checksum of every
page is what writing costs most beside the bytes themselves.
"""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32
except ImportError:  # a machine for which there is no build of it
    from zlib import crc32

__all__ = ["crc32"]
