"""The records of one frame in a file of their own, until they are merged into the capture.

Each is 1 byte ("R", or "P" for a page), 8 bytes of length, and the record as JSON; behind a page's JSON come its
numbers, whose length their dtype and shape say. Frames that were computed elsewhere arrive in this form too: nothing is
unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from inspector.records import Page, decode, encode
from inspector.records.json_text import read_json

LENGTH = 8


class Spool:
    """The sink of a run that writes to a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, record: Any) -> None:
        """Append one record. Raises OSError."""
        if not isinstance(record, Page):
            self._put(b"R", encode(record))
            return
        array = np.ascontiguousarray(record.array)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        head = {
            "channel": record.channel, "frame": record.frame, "offset": record.offset, "dtype": array.dtype.str,
            "shape": record.array.shape,
        }  # fmt: skip
        self._put(b"P", json.dumps(head).encode())
        flat: Any = array.reshape(-1).view(np.uint8)
        self._file.write(memoryview(flat))

    def _put(self, kind: bytes, data: bytes) -> None:
        self._file.write(kind + len(data).to_bytes(LENGTH, "little"))
        self._file.write(data)


def spooled(file: BinaryIO) -> Iterator[Any]:
    """The records of a spool, in order. Raises ValueError where it is not whole."""
    while kind := file.read(1):
        data = _exactly(file, int.from_bytes(_exactly(file, LENGTH), "little"))
        if kind == b"R":
            yield decode(data)
            continue
        head = read_json(data)
        dtype, shape = np.dtype(head["dtype"]), tuple(head["shape"])
        numbers = _exactly(file, dtype.itemsize * int(np.prod(shape, dtype=np.int64)))
        array = np.frombuffer(numbers, dtype).reshape(shape)
        yield Page(
            head["channel"], head["frame"], tuple(head["offset"]), array.astype(dtype.newbyteorder("="), copy=False)
        )


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise ValueError("the spool of a frame is cut short")
    return data
