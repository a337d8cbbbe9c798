"""What a pickle would do, read from its opcodes without running them."""

from __future__ import annotations

import io
import pickletools
from collections.abc import Iterator
from dataclasses import dataclass

MAX_OPCODES = 2_000_000
MOST_PARTS = 1_000_000
"""Parts of a tuple, those of tuples in it counted as often as they are in it."""
ALLOCATES = b"bytearray"
"""The one callable that `weights_only` allows and that fills as much memory as a number in the pickle says."""


@dataclass(slots=True)
class Found:
    """Calls in a pickle, and the largest whole number in it."""

    calls: int = 0
    largest: int = 0


def opcodes(stream: io.BytesIO, most: int = MAX_OPCODES) -> Iterator[tuple[str, object]]:
    """(name, argument) of at most `most` opcodes of the pickles in a row; ends where something else begins."""
    left = most
    try:
        while left > 0:
            for opcode, argument, _ in pickletools.genops(stream):
                left -= 1
                yield opcode.name, argument
                if left <= 0:
                    return
    except Exception:  # noqa: BLE001 - after the pickles of torch's old format come numbers, which are not opcodes
        return


def could_allocate(pickled: bytes) -> int:
    """Bytes that a pickle might allocate beyond what it holds, at most: 0 for one that names no `bytearray`.

    Every call is counted with the largest number, since numbers may be stored once and used often. Counter-example:
    a dict with a bytearray and a large seed is counted too high.
    """
    if ALLOCATES not in pickled:
        return 0
    found = Found()
    for name, argument in opcodes(io.BytesIO(pickled)):
        if isinstance(argument, int) and name.startswith(("INT", "BININT", "LONG")):
            found.largest = max(found.largest, abs(int(argument)))
        found.calls += name in ("REDUCE", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX")
    return found.calls * found.largest


def takes_room(pickled: bytes) -> bool:
    """Whether Python's own unpickler would take far more memory than a pickle has bytes, or its opcodes are not whole.

    It makes as much room as the largest place that something is put at says (ten gigabytes for one of 627,610,706), and
    an array of bytes as long as it is said to be before it reads it.
    """
    try:
        for opcode, argument, _ in pickletools.genops(pickled):
            if opcode.name == "BYTEARRAY8" or ("PUT" in opcode.name and int(argument or 0) > len(pickled)):
                return True
    except Exception:  # noqa: BLE001 - broken opcodes raise many kinds
        return True
    return False


def never_ends(pickled: bytes) -> bool:
    """Whether a tuple in a pickle has more parts than could be counted: the same ones are in it again and again.

    Such a one takes a few hundred bytes. As the key of a dict it is hashed part by part: 30 levels of two take minutes.
    """
    stream = io.BytesIO(pickled)
    left = MAX_OPCODES
    try:
        while left > 0:
            parts = _Parts()
            for opcode, argument, _ in pickletools.genops(stream):
                left -= 1
                if parts.after(opcode, argument) > MOST_PARTS:
                    return True
                if left <= 0:
                    break
    except Exception:  # noqa: BLE001 - what is no pickle, or uses what is not there, is refused by who reads it
        return False
    return False


class _Parts:
    """A pickle's stack and memo, with how many parts each tuple in them has in place of the objects."""

    def __init__(self) -> None:
        self.stack: list[int | None] = []
        self.memo: dict[object, int | None] = {}

    def after(self, opcode: pickletools.OpcodeInfo, argument: object) -> int:
        """The parts of what lies on top after an opcode. Raises IndexError where there is too little to take."""
        name = opcode.name
        if name == "MARK":
            self.stack.append(None)
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self.stack.append(self.memo.get(argument, 1))
        elif "PUT" in name or name == "MEMOIZE":
            self.memo[len(self.memo) if name == "MEMOIZE" else argument] = self.stack[-1]
        elif name == "DUP":
            self.stack.append(self.stack[-1])
        else:
            taken = self._take(opcode)
            parts = 1 + sum(taken) if name.startswith("TUPLE") or name == "FROZENSET" else 1
            self.stack += [parts] * len(opcode.stack_after)
        return self.stack[-1] or 1 if self.stack else 1

    def _take(self, opcode: pickletools.OpcodeInfo) -> list[int]:
        before = opcode.stack_before
        if pickletools.markobject not in before:
            return [self.stack.pop() or 1 for _ in before]
        taken = []
        while (top := self.stack.pop()) is not None:
            taken.append(top)
        return taken + [self.stack.pop() or 1 for _ in range(before.index(pickletools.markobject))]
