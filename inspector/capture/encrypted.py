"""Members of a zip archive that need a password, told before anything reads them: zipfile raises a RuntimeError with
its own words there, torch's reader one of two lines. The bits are those of PKWARE's APPNOTE 4.4.4, the method that of
AES.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable

ENCRYPTED_BITS = 0x1 | 0x40 | 0x2000
"""Of a member's flags: encrypted, strongly, and the directory with its headers."""
AES_METHOD = 99
MOST_NAMED = 120
"""Characters of a member's name that are quoted."""


def encrypted(members: Iterable[zipfile.ZipInfo]) -> str | None:
    """What is said of the first member that needs a password; None where all are plain."""
    for member in members:
        if member.flag_bits & ENCRYPTED_BITS or member.compress_type == AES_METHOD:
            name = " ".join(member.filename.split())[:MOST_NAMED]
            return f"archive member {name} is encrypted, and no password is known; write the file without one"
    return None
