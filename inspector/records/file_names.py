"""Names of files made from names of models, layers and channels, which may hold anything."""

from __future__ import annotations

import re
import zlib

MOST = 80
"""Characters, which are bytes too: file systems allow 255, and suffixes and partial names come on top."""
RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
"""Windows opens devices under these names, whatever comes behind a dot."""
_OTHER = re.compile(r"[^A-Za-z0-9._-]")


def file_stem(name: str, otherwise: str) -> str:
    """Letters, digits, dots, hyphens and underscores for any name, never hidden, empty, a device, or a path.

    A name of which nothing is left is told apart from others like it by a checksum.
    """
    plain = _OTHER.sub("_", name[:4096]).strip(".")[:MOST].rstrip(".")
    if not plain.strip("_-."):
        return f"{otherwise}-{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}" if name else otherwise
    return f"{plain}_" if plain.partition(".")[0].lower() in RESERVED else plain
