"""Whether pages that came one by one leave no gap."""

from __future__ import annotations

from inspector.capture.holes import Coverage
from inspector.capture.parsing import PageRow


def page(start: tuple[int, ...], shape: tuple[int, ...]) -> PageRow:
    return PageRow(1, 1, 0, 0, 0, 0, start, shape, 0)


def covered(*pages: tuple[tuple[int, ...], tuple[int, ...]]) -> bool:
    coverage, extent = Coverage(), (0,) * len(pages[0][0])
    for start, shape in pages:
        grown = tuple(max(n, a + b) for n, a, b in zip(extent, start, shape, strict=True))
        coverage.add(page(start, shape), extent, grown)
        extent = grown
    return coverage.is_whole(extent)


def test_whole_rows_in_any_order_cover_the_array() -> None:
    assert covered(((0, 0), (10, 4)), ((10, 0), (5, 4)))
    assert covered(((10, 0), (5, 4)), ((0, 0), (10, 4)))
    assert not covered(((0, 0), (10, 4)), ((11, 0), (5, 4)))


def test_an_array_that_was_widened_is_not_taken_for_whole() -> None:
    narrow, wide, rest = ((0, 0), (10, 4)), ((10, 0), (10, 6)), ((10, 0), (10, 6))
    assert not covered(narrow, wide, rest), "the last two columns of the first rows are missing"
    assert not covered(((0, 2), (10, 2)), ((0, 0), (10, 4))), "pages that are parts of rows are not followed"
