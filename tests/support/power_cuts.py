"""What a power cut may leave of a folder that a program was writing: the model of Pillai et al., OSDI 2014.

A write, a cut and a new, removed or exchanged name are on the disk for certain once the file (or the folder, for names)
was synchronised after it. Of the others a disk may have any, in any order, and of a write any of its blocks.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

BLOCK = 512
SOURCE = Path(__file__).with_name("recorded_writes.c")


@dataclass(frozen=True, slots=True)
class Operation:
    """One call: `kind` w(rite), t(runcate), c(reate), u(nlink), s(ynchronise), d (a new folder), x (`path` and `data`,
    two folders, exchange their names)."""

    kind: str
    path: str
    offset: int
    data: bytes


def compiler() -> str | None:
    """A C compiler that can make the recorder here."""
    return shutil.which("cc") or shutil.which("gcc") if sys.platform == "linux" else None


def recorded(code: str, folder: Path, scratch: Path) -> list[Operation]:
    """What a Python program writes below a folder, which is its first argument, in order."""
    library, log = scratch / "recorded_writes.so", scratch / "record"
    program = compiler()
    assert program is not None
    subprocess.run([program, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    environment = {
        **os.environ, "LD_PRELOAD": str(library), "RECORD_TO": str(log), "RECORD_BELOW": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True, env=environment, timeout=120)
    return list(_read(log.read_bytes()))


def _read(data: bytes) -> Iterator[Operation]:
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<cI", data, at)
        at += 5
        path = data[at : at + length].decode()
        at += length
        offset, size = struct.unpack_from("<QQ", data, at)
        at += 16
        content = data[at : at + size] if kind in b"wx" else b""
        at += len(content)
        yield Operation(kind.decode(), path, offset, content)


def certain(operations: list[Operation], *, strict: bool = False) -> set[int]:
    """Numbers of the operations that are on the disk whatever happens.

    A file's own name goes with its journal entry on ext4, XFS and Btrfs; a `strict` disk has it once the folder was
    synchronised, as POSIX says.
    """
    found: set[int] = set()
    for number, one in enumerate(operations):
        if one.kind == "s":
            for earlier, other in enumerate(operations[:number]):
                own = other.path == one.path and other.kind in ("wt" if strict else "wtc")
                name = str(Path(other.path).parent) == one.path and other.kind in "cudx"
                found |= {earlier} if own or name else set()
    return found


def left(operations: list[Operation], choice: random.Random | None, *, strict: bool = False) -> dict[str, bytes]:
    """{path: content} after a cut at the end of `operations`: with `choice`, of what is not certain any part is there;
    without, all of it."""
    operations = _by_first_names(operations)
    sure = certain(operations, strict=strict)
    files: dict[str, bytearray] = {}
    lost, exchanged = set[str](), list[Operation]()
    chance = 1.0 if choice is None else choice.choice((0.0, 0.2, 0.5, 0.8))
    for number, one in enumerate(operations):
        there = number in sure or choice is None or choice.random() < chance
        if one.kind == "x" and there:
            exchanged.append(one)
        elif one.kind == "d" and strict and not there:
            lost.add(one.path)
        else:
            _replay(files, one, there, choice)
    found = {path: bytes(content) for path, content in files.items() if str(Path(path).parent) not in lost}
    for one in exchanged:
        found = {_exchanged(path, one): content for path, content in found.items()}
    return found


def _replay(files: dict[str, bytearray], one: Operation, there: bool, choice: random.Random | None) -> None:
    if one.kind == "c" and there:
        files.setdefault(one.path, bytearray())
    elif one.kind == "u" and there:
        files.pop(one.path, None)
    elif one.kind == "t" and there and one.path in files:
        content = files[one.path]
        content[:] = content[: one.offset].ljust(one.offset, b"\0")
    elif one.kind == "w" and one.path in files:
        torn = not there and choice is not None and choice.random() < 0.3
        if there or torn:
            _write(files[one.path], one, choice if torn else None)


def _by_first_names(operations: list[Operation]) -> list[Operation]:
    """The same, each path as it would be had no folders exchanged their names: they are at the end of `left`."""
    found: list[Operation] = []
    before: list[Operation] = []
    for one in operations:
        path = one.path
        for exchange in reversed(before):
            path = _exchanged(path, exchange)
        if one.kind == "x":
            before.append(one)
        found.append(replace(one, path=path) if one.kind != "x" else one)
    return found


def _exchanged(path: str, exchange: Operation) -> str:
    one, other = exchange.path, exchange.data.decode()
    for own, its in ((one, other), (other, one)):
        if path == own or path.startswith(f"{own}/"):
            return its + path[len(own) :]
    return path


def _write(content: bytearray, one: Operation, torn: random.Random | None) -> None:
    end = one.offset + len(one.data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    for at in range(0, len(one.data), BLOCK):
        if torn is None or torn.random() < 0.5:
            piece = one.data[at : at + BLOCK]
            content[one.offset + at : one.offset + at + len(piece)] = piece
