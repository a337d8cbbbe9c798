"""The offset of a call in the bytecode, the same however often the call has been made."""

from __future__ import annotations

import dis
import functools
from collections.abc import Mapping
from itertools import pairwise
from types import CodeType


@functools.lru_cache(maxsize=1024)
def moved(code: CodeType) -> Mapping[int, int]:
    """Offsets at which Python makes a call early → the offset of the call itself.

    Python 3.11 has an instruction before each call that prepares it. After some calls of `tuple(…)`, `sum(…)` and the
    like it replaces that instruction by one that makes the call, so what runs in it seems to be called from elsewhere.
    Later versions have one instruction for both, and the result is empty.
    """
    instructions = dis.get_instructions(code)
    return {one.offset: after.offset for one, after in pairwise(instructions) if one.opname == "PRECALL"}
