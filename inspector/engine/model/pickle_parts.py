"""How many parts the tuples of a pickle have, counted by walking over its opcodes: a checkpoint of 20,000 tensors has
600,000 of them, for which `pickletools.genops` takes five times as long. What each opcode takes and leaves is
`pickletools`' own table.
"""

from __future__ import annotations

import pickletools

MAX_OPCODES = 2_000_000
MOST_PARTS = 1_000_000
"""Parts of a tuple, those of tuples in it counted as often as they are in it."""
_LENGTH_BYTES = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}
"""Bytes of the length that an argument begins with."""


PLAIN, SIZED, MARK, GET, PUT, DUP, TO_MARK, STOP = range(8)
"""What an opcode does: nothing but taking and leaving, or with an argument whose length is told, or one of these."""
Opcode = tuple[int, int, int, tuple[int, ...], int, int, bool]
"""(what it does, bytes of its argument, how many it takes, what it leaves, bytes of the length before its argument,
lines of it, whether what it leaves is a tuple of what it takes)."""


def _described(opcode: pickletools.OpcodeInfo) -> Opcode:
    name, before = opcode.name, opcode.stack_before
    size = 0 if opcode.arg is None else opcode.arg.n
    lines = (2 if name in ("GLOBAL", "INST") else 1) if size == pickletools.UP_TO_NEWLINE else 0
    length, is_tuple = _LENGTH_BYTES.get(size, 0), name.startswith(("TUPLE", "FROZENSET"))
    does = SIZED if length or lines or is_tuple else PLAIN
    if name in ("MARK", "DUP", "STOP"):
        does = {"MARK": MARK, "DUP": DUP, "STOP": STOP}[name]
    elif name in ("GET", "BINGET", "LONG_BINGET"):
        does = GET
    elif "PUT" in name or name == "MEMOIZE":
        does = PUT
    elif pickletools.markobject in before:
        does = TO_MARK
    takes = before.index(pickletools.markobject) if does == TO_MARK else len(before)
    return does, max(0, size), takes, (1,) * len(opcode.stack_after), length, lines, is_tuple


OPCODES: list[Opcode | None] = [None] * 256
for _one in pickletools.opcodes:
    OPCODES[ord(_one.code)] = _described(_one)
_MEMOIZE = ord(next(one.code for one in pickletools.opcodes if one.name == "MEMOIZE"))


def never_ends(pickled: bytes) -> bool:
    """Whether a tuple in one of the pickles in a row has more parts than could be counted: the same ones are in it
    again and again. False for what is no pickle, or uses what is not there: who reads it refuses it.

    Such a one takes a few hundred bytes. As the key of a dict it is hashed part by part: 30 levels of two take minutes.
    """
    at, left = 0, MAX_OPCODES
    try:
        while left > 0 and at < len(pickled):
            at, left, endless = _walked(pickled, at, left)
            if endless:
                return True
    except (IndexError, ValueError):
        return False
    return False


def _walked(data: bytes, at: int, left: int) -> tuple[int, int, bool]:
    """(where a pickle ends, opcodes that are left, whether a tuple in it has too many parts). Raises IndexError and
    ValueError where it is cut or takes what is not there."""
    stack: list[int | None] = []
    memo: dict[int, int | None] = {}
    for rest in range(left - 1, -1, -1):
        code = data[at]
        known = OPCODES[code]
        if known is None:
            raise ValueError(code)
        does, size, takes, leaves, length, lines, is_tuple = known
        begin = at = at + 1
        at += size
        if does in (PUT, GET):
            at = data.index(b"\n", at) + 1 if lines else at
            place = int(data[begin : at - 1]) if lines else int.from_bytes(data[begin:at], "little")
            if does == GET:
                stack.append(memo.get(place, 1))
            else:
                memo[len(memo) if code == _MEMOIZE else place] = stack[-1]
            continue
        if length:
            at += length + int.from_bytes(data[at : at + length], "little")
        for _ in range(lines):
            at = data.index(b"\n", at) + 1
        if does == MARK:
            stack.append(None)
        elif does == PLAIN and not takes:
            stack += leaves
        elif does == DUP:
            stack.append(stack[-1])
        elif does == STOP:
            return at, rest, False
        else:
            parts = _taken(stack, takes, to_mark=does == TO_MARK)
            stack += (1 + parts,) if is_tuple else leaves
            if is_tuple and parts >= MOST_PARTS:
                return at, rest, True
    return at, 0, False


def _taken(stack: list[int | None], count: int, *, to_mark: bool) -> int:
    """Take what an opcode takes, and what is above the last mark if `to_mark`; the sum of their parts."""
    parts = 0
    while to_mark and (top := stack.pop()) is not None:
        parts += top
    for _ in range(count):
        parts += stack.pop() or 1
    return parts
