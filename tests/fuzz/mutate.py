"""Mutants of bytes: blind changes, numbers and words at which parsers fail, and pieces of other seeds."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Sequence

NUMBERS = (
    b"1" + b"0" * 400, b"9" * 5000, b"-1", b"0", b"1e999", b"-1e999", b"NaN", b"Infinity", b"nan", b"inf", b"-0", b"1e-400", b"9223372036854775807",
    b"9223372036854775808", b"18446744073709551616", b"4611686018427387904", b"4294967296", b"2147483648", b"65536", b"0.5", b"1_000", b"007", b"0x10",
    "٣".encode(), "²".encode(),
)  # fmt: skip
WORDS = (
    b"null", b"true", b"[]", b"{}", b'""', b"[" * 3000 + b"]" * 3000, b'{"a":' * 2000 + b"1" + b"}" * 2000, b'"\\ud800"', b"\xff\xfe", b"\xef\xbb\xbf",
    b"\x00", b"\r\n", b"\n\n", b"\x1b[2J", "\u202e".encode(), b'<img src="file:///dev/zero">', b"../../etc/passwd", b"x" * 70_000, b'"', b",", b";", b"\t",
    b'{"_type": "histogram"}', b"__class__", b"=1+1",
)  # fmt: skip
INTEGERS = (
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_PIECE = re.compile(rb'"(?:[^"\\]|\\.){0,200}"|[A-Za-z_]{2,40}')
Change = Callable[[bytearray, random.Random, Sequence[bytes]], None]


def _flip(data: bytearray, chance: random.Random, _others: Sequence[bytes]) -> None:
    for _ in range(chance.choice((1, 1, 2, 8))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _byte(data: bytearray, chance: random.Random, _others: Sequence[bytes]) -> None:
    data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))


def _integer(data: bytearray, chance: random.Random, _others: Sequence[bytes]) -> None:
    form = chance.choice(("<B", "<H", "<I", "<Q", ">H", ">I", ">Q"))
    size = struct.calcsize(form)
    value = chance.choice(INTEGERS) % (1 << 8 * size)
    at = chance.randrange(len(data))
    data[at : at + size] = struct.pack(form, value)[: max(1, len(data) - at)]


def _remove(data: bytearray, chance: random.Random, _others: Sequence[bytes]) -> None:
    at = chance.randrange(len(data))
    del data[at : at + chance.choice((1, 2, 8, 64, 1024))]


def _cut(data: bytearray, chance: random.Random, _others: Sequence[bytes]) -> None:
    del data[chance.randrange(len(data)) :]


def _repeat(data: bytearray, chance: random.Random, _others: Sequence[bytes]) -> None:
    at, size = chance.randrange(len(data)), chance.choice((1, 8, 64, 512))
    data[at:at] = data[at : at + size] * chance.choice((1, 1, 2, 20))


def _insert(data: bytearray, chance: random.Random, _others: Sequence[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    data[at:at] = chance.choice(
        (chance.choice(WORDS), chance.choice(NUMBERS), chance.randbytes(chance.choice((1, 4, 16))))
    )


def _number(data: bytearray, chance: random.Random, _others: Sequence[bytes]) -> None:
    _replaced(data, _NUMBER, chance, NUMBERS)


def _word(data: bytearray, chance: random.Random, _others: Sequence[bytes]) -> None:
    _replaced(data, _PIECE, chance, (*WORDS, *NUMBERS))


def _replaced(data: bytearray, what: re.Pattern[bytes], chance: random.Random, by: Sequence[bytes]) -> None:
    places = [found.span() for found in what.finditer(data)]
    if not places:
        return _byte(data, chance, ())
    first, stop = chance.choice(places)
    data[first:stop] = chance.choice(by)
    return None


def _exchange(data: bytearray, chance: random.Random, _others: Sequence[bytes]) -> None:
    """One piece of text in the place of another: a key under which another value stands."""
    places = [found.span() for found in _PIECE.finditer(data)]
    if len(places) < 2:
        return _repeat(data, chance, ())
    (a, b), (c, d) = chance.choice(places), chance.choice(places)
    data[a:b] = bytes(data[c:d])
    return None


def _splice(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    other = chance.choice(others) if others else b""
    if other:
        at, first = chance.randrange(len(data)), chance.randrange(len(other))
        size = chance.choice((4, 32, 256, len(other)))
        data[at : at + chance.choice((0, size))] = other[first : first + size]


CHANGES: tuple[Change, ...] = (
    _flip, _byte, _integer, _remove, _cut, _repeat, _insert, _number, _number, _word, _exchange, _splice,
)  # fmt: skip


def mutant(data: bytes, chance: random.Random, others: Sequence[bytes], most: int) -> bytes:
    """One to four changes, at most `most` bytes."""
    changed = bytearray(data or b"\0")
    for _ in range(chance.choice((1, 1, 2, 4))):
        chance.choice(CHANGES)(changed, chance, others)
        changed = changed or bytearray(b"\0")
    return bytes(changed[:most])
