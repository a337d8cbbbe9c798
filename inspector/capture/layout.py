"""The layout of a capture on disk: file names, the index's tables and version, alignment, and what counts as damaged.

`NAME.inspect/` holds `index.sqlite` and `pages-0000.bin`, `pages-0001.bin`, … The page files are append-only raw
little-endian arrays, each starting at a multiple of 64 bytes; the index has the position of each. Bytes are written
first, then the row that commits them, so a reader never sees an incomplete page. In a capture that replaced another the
numbers of page files and of rows continue after those of the other. The table `run` holds a RunStart (more of one `run`
where the model's tree is large), a RowCounts with the numbers of the first rows, at the end a RunStop, and
RowCounts with the numbers of the last rows.

Format 2 differs from format 1 in this: every row but the lease has a checksum of its content and of its number
(`checksums.py`); rows are numbered without gaps, so that a missing one is detected; the rows of `channels` are
descriptions, of which a channel may have several, and a page points to the one that describes it; a page has at most
PAGE_BYTES; every frame that a page names has a row. Captures of format 1 are still read.
"""

from __future__ import annotations

import math

from inspector.records.plain_text import plain_sentence

APPLICATION_ID = 0x696E7370  # "insp"
MAJOR, MINOR = 2, 0
OLDEST = 1
"""The oldest major version that is read."""
USER_VERSION = MAJOR * 1000 + MINOR
INDEX = "index.sqlite"
SUFFIX = ".inspect"
PACKED_SUFFIX = ".inspect.zip"
ALIGN = 64
ROLL_BYTES = 1 << 30
PAGE_BYTES = 8_000_000
"""Bytes of the largest page: what a reader has to check and have in memory at once. Larger arrays are split."""
MAX_JSON = 1 << 20
MAX_ELEMENTS = 1 << 40

_RECORDS = "id INTEGER PRIMARY KEY, record TEXT NOT NULL, checksum INTEGER NOT NULL"
TABLES: dict[str, str] = {
    "run": _RECORDS,
    "lease": "id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, started TEXT NOT NULL, token TEXT NOT NULL",
    "channels": "id INTEGER PRIMARY KEY, name TEXT NOT NULL, record TEXT NOT NULL, checksum INTEGER NOT NULL",
    "frames": _RECORDS,
    "pages": (
        "id INTEGER PRIMARY KEY, channel INTEGER NOT NULL, frame INTEGER NOT NULL, file INTEGER NOT NULL,"
        " offset INTEGER NOT NULL, nbytes INTEGER NOT NULL, start TEXT NOT NULL, shape TEXT NOT NULL,"
        " crc INTEGER NOT NULL, checksum INTEGER NOT NULL"
    ),
    "notes": "id INTEGER PRIMARY KEY, kind TEXT NOT NULL, record TEXT NOT NULL, checksum INTEGER NOT NULL",
}
"""Table name → columns. `notes` holds Labels, Axis, Scalar, Refusal, Finding, Event, Log and Note records; `lease` the
writer's pid.
`pages.channel` is the number of the row of `channels` that describes the page."""
COUNTED = ("run", "channels", "frames", "pages", "notes")
"""Tables whose rows are numbered without gaps."""


def schema() -> str:
    """The SQL script that makes an empty index."""
    tables = ";\n".join(f"CREATE TABLE {name} ({columns})" for name, columns in TABLES.items())
    return f"PRAGMA application_id={APPLICATION_ID};\nPRAGMA user_version={USER_VERSION};\n{tables};"


def page_file(number: int) -> str:
    """Name of the page file of a number."""
    return f"pages-{number:04d}.bin"


def elements(shape: tuple[int, ...]) -> int:
    """Number of elements, as an exact integer (never a wrapped one)."""
    return math.prod(shape)


class CaptureError(Exception):
    """A capture that cannot be read or written; the message is one line of plain text that says what to do.

    full: whether only space is missing, so that it may go well later.
    """

    def __init__(self, message: str, *, full: bool = False) -> None:
        super().__init__(plain_sentence(message))
        self.full = full


class BusyError(CaptureError):
    """The index is locked, or changes too quickly, at the moment: try again."""


class TooLargeError(CaptureError, MemoryError):
    """An array that would take more memory than its pages account for, or than is sensible at once."""


class NewerVersionError(CaptureError):
    """The capture was written by a newer major version of the format."""
