"""The memory: a capture is a folder of page files with an SQLite index; the only thing a panel reads."""

from inspector.capture.damage import Damage, listed, summary
from inspector.capture.difference import Difference
from inspector.capture.holes import Holes
from inspector.capture.layout import PACKED_SUFFIX, SUFFIX, CaptureError, NewerVersionError
from inspector.capture.pack import pack
from inspector.capture.reader import Capture, open_capture
from inspector.capture.tables import DamagedError, csv_bytes, export_channel, write_atomically
from inspector.capture.writer import Writer

__all__ = [
    "PACKED_SUFFIX",
    "SUFFIX",
    "Capture",
    "CaptureError",
    "Damage",
    "DamagedError",
    "Difference",
    "Holes",
    "NewerVersionError",
    "Writer",
    "csv_bytes",
    "export_channel",
    "listed",
    "open_capture",
    "pack",
    "summary",
    "write_atomically",
]
