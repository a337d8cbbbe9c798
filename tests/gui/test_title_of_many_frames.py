"""The title of one of many frames does not look at all of them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from inspector.gui.window.bars.frame_bar import DIFFERENCE
from inspector.gui.window.what_is_shown import title_of
from inspector.records import Frame


class Counting(tuple[Frame, ...]):
    """Frames that count how many are looked at."""

    looked = 0

    def __iter__(self) -> Iterator[Frame]:
        for one in super().__iter__():
            type(self).looked += 1
            yield one


def title(frames: Counting, frame: int, **meta: Any) -> str:
    start = SimpleNamespace(title="t", checkpoint="", meta=meta)
    return title_of(SimpleNamespace(frames=frames, start=start), frame)


def test_it_is_found_where_it_stands() -> None:
    frames = Counting(Frame(index=n, step=10 * n, label=f"l{n}") for n in range(1_000))
    for n in (0, 500, 999):
        assert title(frames, n) == f"t · iteration {10 * n:,} · frame {n} of 0–999 (l{n})"
    assert Counting.looked == 0


@pytest.mark.parametrize("order", [(7, 0, 3), (0, 3, 7), (3, 0, 7)])
def test_numbers_with_gaps_and_in_another_order_are_found_too(order: tuple[int, ...]) -> None:
    frames = Counting(Frame(index=n, step=10 * n) for n in order)
    for n in order:
        assert title(frames, n).endswith(f"iteration {10 * n} · frame {n} of 0–7")
    assert title(frames, -1) == title(frames, 99) == title(frames, order[-1])  # the newest


def test_the_largest_number_of_a_sweep_may_stand_between_others() -> None:
    frames = Counting(Frame(index=n, step=n) for n in (0, 5, 2))
    assert title(frames, 5, sweep=True).endswith("frame 5 of 0–5")


def test_a_difference_says_of_which_two_frames_it_is() -> None:
    """It said the newest of the two: as if that one were shown."""
    frames = Counting(Frame(index=n, step=10 * n, label="l") for n in (2, 5))
    assert title(frames, DIFFERENCE).endswith(" · frame 5 minus frame 2")
