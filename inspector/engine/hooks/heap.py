"""Free memory that the C library's heap holds in pieces, given back while a model runs under hooks.

A model allocates and frees large tensors; the small things that hooks keep come to lie between them. glibc then cannot
use the gaps again (its aligned allocation asks for more than a gap of the same size has) and gives back none but the
last: GPT-2 small over 1,024 tokens left 330 MB of gaps behind. `malloc_trim` returns the pages of gaps wherever they
are. Elsewhere than with glibc nothing is done.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from time import monotonic

GAPS = 48 << 20
"""Bytes of new gaps before they are returned. Using returned pages again costs a page fault each, so not at once."""
LARGE = 64 << 20
"""Bytes of a tensor that lies beside the gaps rather than in them. Scores of long sequences have the size again at
every layer: gaps are returned before a tensor that is larger than all before it."""
PATIENCE = 20.0
"""How many times as long as a look took nothing is looked at: glibc counts every gap, 100,000 small ones in 50 ms, and
a decoder attends at every step."""


class _Usage(ctypes.Structure):
    """struct mallinfo2 of glibc ≥ 2.33, see mallinfo(3)."""

    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


@cache
def _library() -> tuple[Callable[[], _Usage], Callable[[int], int]] | None:
    """mallinfo2 and malloc_trim, None where the C library has none."""
    try:
        library = ctypes.CDLL(None)
        usage, trim = library.mallinfo2, library.malloc_trim
    except (OSError, TypeError, AttributeError):
        return None
    usage.restype = _Usage
    return usage, trim


def free_in_heap() -> int:
    """Bytes that are free in the heap and were not returned to the system; 0 where that is not known."""
    library = _library()
    return int(library[0]().fordblks) if library else 0


@dataclass(slots=True)
class Heap:
    """Returns gaps whenever GAPS bytes of them are new since it last did."""

    known: int = field(default_factory=free_in_heap)
    _next: float = 0.0
    _largest: int = LARGE

    def before(self, size: int) -> None:
        """A tensor of `size` bytes is about to be made."""
        if size > self._largest:
            self._largest = size
            self.tidy(GAPS // 8)

    def tidy(self, least: int = GAPS) -> None:
        """Return gaps if there are more than `least` bytes of new ones; too soon after a slow look nothing is done."""
        library, began = _library(), monotonic()
        if library is None or began < self._next:
            return
        free, ended = free_in_heap(), monotonic()
        self._next = ended + PATIENCE * (ended - began)
        if free - self.known > least:
            library[1](0)
            self.known = free_in_heap()
        self.known = min(self.known, free)
