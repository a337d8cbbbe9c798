"""Records as JSON, as they stand in an index and come through a pipe: what is read is written and read again the same."""

from __future__ import annotations

from pathlib import Path

from target import FoundError, Target

from inspector.records import BadRecordError, decode, encode


def attempt(data: bytes, _scratch: Path) -> None:
    """Decode; what was decoded comes back whole."""
    record = decode(data)
    written = encode(record)
    again = encode(decode(written))
    if written != again:
        raise FoundError(f"{type(record).__name__} is another one after it was written and read")


TARGET = Target("records as JSON", ("inspector.records",), attempt, (BadRecordError,))
