"""What a pickle would do, read from its opcodes without running them."""

from __future__ import annotations

import io
import pickletools
from collections.abc import Iterator
from dataclasses import dataclass

from inspector.engine.model.pickle_parts import MAX_OPCODES

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
