"""The memory: a capture is a folder of page files with an SQLite index; the only thing a panel reads."""

from inspector.capture.difference import Difference
from inspector.capture.layout import PACKED_SUFFIX, SUFFIX, CaptureError, NewerVersionError
from inspector.capture.pack import pack
from inspector.capture.reader import Capture, open_capture
from inspector.capture.tables import csv_bytes, export_channel, write_atomically
from inspector.capture.target import check_target
from inspector.capture.writer import Writer

__all__ = [
    "PACKED_SUFFIX",
    "SUFFIX",
    "Capture",
    "CaptureError",
    "Difference",
    "NewerVersionError",
    "Writer",
    "check_target",
    "csv_bytes",
    "export_channel",
    "open_capture",
    "pack",
    "write_atomically",
]
