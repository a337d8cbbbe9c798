"""The checksum of a row of an index: it covers all that the row says, its number and what it belongs to.

The bytes of a page have a checksum of their own, which is part of what the page's row says. Thereby a page that was
shifted, transposed, given to another channel or exchanged with another is told from one that was written so. The run's
name is part of it too: an index in which parts of two captures are mixed (a copy over another that stopped halfway) has
rows that are each valid where they were written, but of two runs.
"""

from __future__ import annotations

import zlib

from inspector.records import Channel


def record_checksum(run: str, table: str, number: int, text: str, kind: str = "") -> int:
    """CRC-32 of a record's row: the run's name, table, number, kind of a note or name of a channel, and text.

    `run` is "" for the row that says how the run begins, whose text has the name.
    """
    return _crc((run, table, str(number), kind, text))


def page_checksum(run: str, channel: Channel, *row: object) -> int:
    """CRC-32 of a page's row: the run's name, its channel's name and element type, and its columns in their order."""
    return _crc((run, channel.name, channel.dtype, *map(str, row)))


def _crc(words: tuple[str, ...]) -> int:
    return zlib.crc32("\0".join(words).encode("utf-8", "surrogatepass"))
