"""Records and pages as the bodies of messages, each with its number; whatever arrives is checked field by field."""

from __future__ import annotations

import json
import math
import re
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from inspector.capture.layout import MAX_JSON
from inspector.capture.splitting import split
from inspector.records import (
    Axis,
    Channel,
    Event,
    Finding,
    Frame,
    Labels,
    Log,
    Page,
    Refusal,
    RunStart,
    RunStop,
    Scalar,
    decode,
    encoded,
)  # fmt: skip
from inspector.records.channel import DTYPES
from inspector.records.json_text import read_json
from inspector.records.plain_text import shortened
from inspector.records.unreadable import why_unreadable
from inspector.transport.network.address import safe_name
from inspector.transport.network.files import unpacked_file
from inspector.transport.network.wire import MAX_BODY, Kind, WireError

TAKEN = (Axis, Channel, Event, Finding, Frame, Labels, Log, Refusal, RunStart, RunStop, Scalar)
"""Records that a training sends; any other one ends the connection."""
FARTHEST = 1 << 40
"""Positions along an axis; indices of frames."""
MAX_DIMS = 8
_LEAD = struct.Struct("!Q?")
_LENGTH = struct.Struct("!I")
_MAX_HEAD = 1 << 14
_RUN = re.compile(r"[0-9a-f]{32}\Z")


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a sender: which run, under which name, and the number of the first message that it has."""

    run: str
    name: str
    first: int

    def encoded(self) -> bytes:
        """As a body."""
        return json.dumps({"run": self.run, "name": self.name, "first": self.first}).encode()

    @classmethod
    def decoded(cls, body: bytes) -> Hello:
        """Of a body. Raises WireError."""
        told = _object(body)
        run, name, first = told.get("run"), told.get("name"), told.get("first")
        if not (isinstance(run, str) and _RUN.match(run) and isinstance(name, str) and safe_name(name)):
            raise WireError("a sender named no run")
        return cls(run, name, _position(first))


def packed(number: int, record: Any) -> list[tuple[Kind, bytes]]:
    """A record as one message, or several where it is long. Raises ValueError where that is not enough."""
    if isinstance(record, Page):
        pieces = [(Kind.PAGE, _page_body(part)) for part in split(record)]
    else:
        most = MAX_BODY // 2 if isinstance(record, RunStart) else MAX_JSON  # the start stays one record
        pieces = [(Kind.RECORD, body) for body in encoded(record, most)]
        pieces = pieces[:1] if isinstance(record, RunStart) else pieces
    if any(len(body) + _LEAD.size > MAX_BODY for _, body in pieces):
        raise ValueError(f"A {type(record).__name__} is too long to be sent.")
    last = len(pieces) - 1
    return [(kind, _LEAD.pack(number, n < last) + body) for n, (kind, body) in enumerate(pieces)]


def _page_body(page: Page) -> bytes:
    array = np.asarray(page.array)
    told = {
        "channel": page.channel, "frame": int(page.frame), "offset": [int(n) for n in page.offset],
        "dtype": array.dtype.name, "shape": list(array.shape),
    }  # fmt: skip
    head = json.dumps(told).encode("utf-8", "backslashreplace")
    return _LENGTH.pack(len(head)) + head + array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


@dataclass(frozen=True, slots=True)
class Arrived:
    """A record that arrived: its number, whether more pieces of it follow, and itself."""

    number: int
    more: bool
    record: Any


def unpacked(kind: Kind, body: bytes) -> Arrived:
    """The record of a message. Raises WireError for anything that `packed` would not make."""
    if len(body) < _LEAD.size:
        raise WireError("a message has no number")
    if kind == Kind.FILE:
        return Arrived(*unpacked_file(body))
    number, more = _LEAD.unpack_from(body)
    rest = memoryview(body)[_LEAD.size :]
    try:
        record = _page(rest) if kind == Kind.PAGE else decode(bytes(rest))
    except (ValueError, TypeError, RecursionError) as problem:
        raise WireError(f"a record cannot be read ({why_unreadable(problem)})") from None
    if not isinstance(record, (Page, *TAKEN)):
        raise WireError(f"a training sends no {type(record).__name__}")
    if isinstance(record, (Frame, Event, Labels)):
        _position(getattr(record, "index", None) or max(0, getattr(record, "start", 0)))
    return Arrived(number, more, record)


def _page(body: memoryview) -> Page:
    (length,) = _LENGTH.unpack_from(body) if len(body) >= _LENGTH.size else (_MAX_HEAD + 1,)
    if length > min(_MAX_HEAD, len(body) - _LENGTH.size):
        raise WireError("a page has no description")
    told = _object(bytes(body[_LENGTH.size : _LENGTH.size + length]))
    shape, offset = _positions(told.get("shape")), _positions(told.get("offset"))
    name, channel = told.get("dtype"), told.get("channel")
    if name not in DTYPES or not isinstance(channel, str) or len(shape) != len(offset):
        raise WireError("a page's description contradicts itself")
    dtype = np.dtype(str(name))
    data = body[_LENGTH.size + length :]
    if math.prod(shape) * dtype.itemsize != len(data):  # of Python's numbers, which do not overflow
        raise WireError(f"a page of shape {shape} has {len(data)} bytes")
    array = np.frombuffer(data, dtype).reshape(shape)
    if dtype == np.bool_ and (np.frombuffer(data, np.uint8) > 1).any():
        raise WireError("a page of truth values has others")
    return Page(channel, _position(told.get("frame")), offset, array)


def _object(body: bytes) -> dict[str, Any]:
    if len(body) > _MAX_HEAD:
        raise WireError("a description is too long")
    try:
        told = read_json(body)
    except ValueError:
        raise WireError("a description is not JSON") from None
    if not isinstance(told, dict):
        raise WireError("a description is not an object")
    return told


def _position(value: Any) -> int:
    if type(value) is not int or not 0 <= value < FARTHEST:
        raise WireError(f"{shortened(str(value), 40)} is no position")
    return value


def _positions(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or len(values) > MAX_DIMS:
        raise WireError("a page has no shape")
    return tuple(_position(one) for one in values)
