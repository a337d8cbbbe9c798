"""Arrays as pages of bounded size: a reader checks one page at a time, however much was written at once."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.capture.layout import PAGE_BYTES
from inspector.records import Page


def split(page: Page) -> Iterator[Page]:
    """The page itself, or pages of at most PAGE_BYTES with the same numbers, in order."""
    if page.array.nbytes <= PAGE_BYTES:
        yield page
        return
    axis = next(axis for axis, n in enumerate(page.array.shape) if n > 1)
    length = page.array.shape[axis]
    rows = max(1, PAGE_BYTES * length // page.array.nbytes)
    for first in range(0, length, rows):
        part = page.array[(slice(None),) * axis + (slice(first, first + rows),)]
        offset = (*page.offset[:axis], page.offset[axis] + first, *page.offset[axis + 1 :])
        yield from split(Page(page.channel, page.frame, offset, part))
