"""The checksum of a row of an index: it covers the row's whole content, its number and its owner.

The bytes of a page have a checksum of their own, which is part of the page's row. So a page that was shifted,
transposed, assigned to another channel or exchanged with another is detected. The run's name is covered too: an index
that mixes parts of two captures (a copy over another one that stopped halfway) has rows that are each valid at their
place, but of two runs.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

from inspector.records import Channel


def record_checksum(run: str, table: str, number: int, text: str, kind: str = "") -> int:
    """CRC-32 of a record's row: the run's name, table, number, kind of a note or name of a channel, and text.

    `run` is "" for the row that says how the run begins, whose text has the name.
    """
    rest = f"\0{number}\0{kind}\0{text}"
    return zlib.crc32(rest.encode("utf-8", "surrogatepass"), _owner(run, table))


def page_checksum(owner: int, row: tuple[object, ...]) -> int:
    """CRC-32 of a page's row: what its owner has (`page_owner`), and its columns in their order."""
    return zlib.crc32((_FIELDS[len(row)] % row).encode("utf-8", "surrogatepass"), owner)


def page_owner(run: str, channel: Channel) -> int:
    """What the checksums of all pages of a channel begin with: the run's name, the channel's and its element type."""
    return _owner(run, channel.name, channel.dtype)


_FIELDS = ["\0%s" * count for count in range(16)]
"""So many columns, each after a zero: one call, where joining them takes one for each."""


@lru_cache(maxsize=1 << 9)  # the channels of one run, mostly: each run has a name of its own
def _owner(*words: str) -> int:
    """Of the words that all pages of a channel have: a CRC goes on from that of what stands before."""
    return _crc(words)


def _crc(words: tuple[str, ...]) -> int:
    return zlib.crc32("\0".join(words).encode("utf-8", "surrogatepass"))
