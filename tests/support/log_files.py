"""Logs as other tools write them, made by small encoders of their own: event files, W&B's files, trackio's databases.

tests/oracles compares the readers with files that the tools themselves wrote.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any


def _after_byte(register: int) -> int:
    for _ in range(8):
        register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register


_AFTER = [_after_byte(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """CRC-32C byte by byte."""
    register = 0xFFFFFFFF
    for byte in data:
        register = (register >> 8) ^ _AFTER[(register ^ byte) & 0xFF]
    return register ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    """As TFRecord stores a checksum."""
    value = crc32c(data)
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """One TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(value: int) -> bytes:
    """An unsigned number, or a negative one as 64 bits."""
    value &= (1 << 64) - 1
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def part(number: int, value: bytes | str | int | float) -> bytes:
    """A field of a message: bytes and text with their length, whole numbers as varints, floats as doubles."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 1) + struct.pack("<d", value)


def event(step: int, *values: bytes, time: float = 1000.0, **more: bytes) -> bytes:
    """An Event with the values of a summary."""
    summary = b"".join(part(1, value) for value in values)
    body = part(1, time) + (part(2, step) if step else b"")
    return body + (part(5, summary) if values else b"") + b"".join(more.values())


BEGIN = record(part(1, 1000.0) + part(3, "brain.Event:2"))


def scalar(tag: str, value: float) -> bytes:
    """A value of the older encoding."""
    return part(1, tag) + b"\x15" + struct.pack("<f", value)


def metadata(plugin: str, content: bytes = b"") -> bytes:
    """The metadata of a value."""
    return part(9, part(1, part(1, plugin) + (part(2, content) if content else b"")))


def tensor(tag: str, dtype: int, values: bytes, shape: Sequence[int] = (), plugin: str = "scalars") -> bytes:
    """A value of the newer encoding; `values` are fields of a TensorProto."""
    dims = b"".join(part(2, part(1, n)) for n in shape)
    return part(1, tag) + (metadata(plugin) if plugin else b"") + part(8, part(1, dtype) + part(2, dims) + values)


def histogram(tag: str, limits: Sequence[float], counts: Sequence[float], low: float, high: float) -> bytes:
    """A HistogramProto."""
    packed = [struct.pack(f"<{len(own)}d", *own) for own in (limits, counts)]
    return part(1, tag) + part(5, part(1, low) + part(2, high) + part(6, packed[0]) + part(7, packed[1]))


def events(path: Path, *bodies: bytes) -> Path:
    """An event file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(BEGIN + b"".join(map(record, bodies)))
    return path


def curve(tag: str, values: Iterable[float], first: int = 0, every: int = 1) -> list[bytes]:
    """Events of a scalar at every n-th step."""
    return [event(first + every * n, scalar(tag, value), time=1000.0 + n) for n, value in enumerate(values)]


# -- W&B

WANDB_BEGIN = b":W&B\xe1\xbe\x00"
BLOCK = 32 << 10


def wandb_file(path: Path, *bodies: bytes) -> Path:
    """A `.wandb` file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(WANDB_BEGIN + wandb_records(len(WANDB_BEGIN), *bodies))
    return path


def wandb_records(at: int, *bodies: bytes) -> bytes:
    """Records in pieces, from an offset in the file on."""
    found = b""
    for body in bodies:
        first = True
        while True:
            room = BLOCK - (at + len(found)) % BLOCK
            if room < 7:
                found += b"\0" * room
                continue
            now, body = body[: room - 7], body[room - 7 :]
            kind = bytes([(1 if first else 4) if not body else (2 if first else 3)])
            found += struct.pack("<IH", zlib.crc32(now, zlib.crc32(kind)), len(now)) + kind + now
            first = False
            if not body:
                break
    return found


def item(keys: Sequence[str], value: Any, *, nested: bool = True) -> bytes:
    """An item with JSON text, its keys nested or as one."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b"".join(part(2 if nested else 1, key) for key in keys) + part(16, text)


def history(step: int | None, *items: bytes, time: float = 1000.0) -> bytes:
    """A row of the history."""
    own = [item(["_timestamp"], time)] + ([] if step is None else [item(["_step"], step)])
    return part(2, b"".join(part(1, one) for one in (*items, *own)))


# -- trackio

OLDER = "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)"
NEWER = (
    "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL,"
    " run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL)"
)


def trackio(path: Path, rows: Iterable[tuple[str, int, Any]], *, wal: bool = False) -> sqlite3.Connection:
    """A database with its tables, and the connection of its writer."""
    base = sqlite3.connect(path)
    if wal:
        base.execute("PRAGMA journal_mode = WAL")
    base.execute(NEWER)
    base.execute(
        "CREATE TABLE configs (id INTEGER PRIMARY KEY, run_id TEXT, run_name TEXT, config TEXT, created_at TEXT)"
    )
    add_rows(base, rows)
    return base


def add_rows(base: sqlite3.Connection, rows: Iterable[tuple[str, int, Any]]) -> None:
    """More rows, committed."""
    for run, step, values in rows:
        stamp = f"2026-01-01T00:00:{step % 60:02d}+00:00"
        told = values if isinstance(values, str) else json.dumps(values)
        base.execute(
            "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)",
            (f"id-{run}", stamp, run, step, told),
        )
    base.commit()


# -- files of any number of points: the curve "loss" has the value n at step n


def growing_events(count: int) -> bytes:
    """An event file."""
    return BEGIN + b"".join(map(record, curve("loss", range(count))))


def growing_wandb(count: int) -> bytes:
    """A `.wandb` file of which a block has ten rows."""
    filler = item(["fill"], "y" * 3000)
    return WANDB_BEGIN + wandb_records(len(WANDB_BEGIN), *(history(n, item(["loss"], n), filler) for n in range(count)))


def growing_table(count: int) -> bytes:
    """A CSV."""
    return b"step,loss\n" + b"".join(b"%d,%d\n" % (n, n) for n in range(count))


def growing_lines(count: int) -> bytes:
    """JSON lines."""
    return b"".join(json.dumps({"step": n, "loss": n}).encode() + b"\n" for n in range(count))


GROWING: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "tensorboard": ("events.out.tfevents.1", growing_events), "wandb": ("run-x.wandb", growing_wandb),
    "csv": ("x.csv", growing_table), "jsonl": ("x.jsonl", growing_lines),
}  # fmt: skip
"""Name of the file, and its bytes for a number of points: each is a prefix of those of a larger one."""
