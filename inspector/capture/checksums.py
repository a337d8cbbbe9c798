"""The checksum of a row of an index: it covers the row's whole content, its number and its owner.

The bytes of a page have a checksum of their own, which is part of the page's row. So a page that was shifted,
transposed, assigned to another channel or exchanged with another is detected.
"""

from __future__ import annotations

import zlib

from inspector.records import Channel


def record_checksum(table: str, number: int, text: str, kind: str = "") -> int:
    """CRC-32 of a record's row: its table, number, kind of a note or name of a channel, and text."""
    return zlib.crc32("\0".join((table, str(number), kind, text)).encode("utf-8", "surrogatepass"))


def page_checksum(channel: Channel, *row: object) -> int:
    """CRC-32 of a page's row: its channel's name and element type, and the columns of the row in their order."""
    return zlib.crc32("\0".join((channel.name, channel.dtype, *map(str, row))).encode("utf-8", "surrogatepass"))
