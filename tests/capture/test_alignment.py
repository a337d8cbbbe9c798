"""Steps aligned by their tokens: against a slow definition of the longest common subsequence, and against numpy."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from captures import channel
from compared import NORM, STATE, capture_of, frame_of, norms, states

from inspector.capture import CaptureError, align, aligned, compare, open_capture
from inspector.capture.comparable import Reference
from inspector.capture.comparing import alignment


def longest(one: str, other: str) -> int:
    """The length by the recurrence itself."""

    @cache
    def length(n: int, m: int) -> int:
        if not (n and m):
            return 0
        if one[n - 1] == other[m - 1]:
            return length(n - 1, m - 1) + 1
        return max(length(n - 1, m), length(n, m - 1))

    return length(len(one), len(other))


@pytest.mark.parametrize("seed", range(40))
def test_it_is_a_longest_common_subsequence_in_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    one, other = ("".join(random.choice(list("abc"), size=random.integers(0, 14))) for _ in range(2))
    found = align(one, other)
    assert found.common == longest(one, other)
    for side, text in ((found.first, one), (found.second, other)):
        assert side[side >= 0].tolist() == list(range(len(text)))  # every position once, in order
    for a, b, name in zip(found.first, found.second, found.names, strict=True):
        assert (a >= 0 or b >= 0) and (a < 0 or b < 0 or one[a] == other[b] == name)
        assert name == (f"− {one[a]}" if b < 0 else f"+ {other[b]}" if a < 0 else one[a])


def test_what_has_no_partner_is_named_with_its_side() -> None:
    found = align(["the", "cat", "sat"], ["the", "dog", "sat", "down"])
    assert found.names == ("the", "− cat", "+ dog", "sat", "+ down")
    assert found.first.tolist() == [0, 1, -1, 2, -1] and found.second.tolist() == [0, -1, 1, 2, 3]
    assert found.sentence == ("steps aligned by tokens: 2 in common, 1 only in the first, 2 only in the second")


def test_sequences_that_are_too_long_are_refused_with_their_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "MOST_CELLS", 11)
    assert align("xabcz", "xdefz").common == 2  # 9 pairs are left between the equal ends
    with pytest.raises(CaptureError, match="too long to be aligned: 3 and 4 steps that differ"):
        align("xabcz", "xdefgz")


FIRST, SECOND = "abcdef", "abxcdfgg"
PAIRS = ((0, 0), (1, 1), (2, 3), (3, 4), (5, 5))
"""Of the two above, by hand; e is only in the first, x and both g only in the second."""


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return (
        capture_of(tmp_path / "a.inspect", frame_of(1, 6), tokens=FIRST),
        capture_of(tmp_path / "b.inspect", frame_of(2, 8), tokens=SECOND),
    )


def test_differences_and_ratios_are_those_of_common_tokens(pair: tuple[Path, Path]) -> None:
    with compare(*pair) as both:
        difference, ratio = both.array(STATE.name), both.array(NORM.name)
        names = both.labels("step")
        assert names == ("a", "b", "+ x", "c", "d", "− e", "f", "+ g", "+ g")
        assert difference.shape == both.extent(STATE.name) == (9, 3)
        places = [n for n, name in enumerate(names) if len(name) == 1]
        a, b = ([one for one, _ in PAIRS], [other for _, other in PAIRS])
        np.testing.assert_array_equal(difference[places], states(2, 8)[b] - states(1, 6)[a])
        np.testing.assert_array_equal(ratio[places], norms(2, 8)[b] / norms(1, 6)[a])
        gaps = [n for n in range(9) if n not in places]
        assert np.isnan(difference[gaps]).all() and np.isnan(ratio[gaps]).all()
        known = both.known(STATE.name)
        assert known[places].all() and not known[gaps].any()
        assert "steps aligned by tokens: 5 in common, 1 only in the first, 3 only in the second" in (
            both.channel(STATE.name).method
        )
        assert both.refused == {} and both.axis("step").name == "step"


def test_gaps_are_holes_and_every_region_reads_as_the_whole(pair: tuple[Path, Path]) -> None:
    with compare(*pair) as both:
        whole, known = both.array(STATE.name), both.known(STATE.name)
        marked = np.ones(whole.shape, np.bool_)
        for box in both.holes(STATE.name).missing:
            marked[tuple(slice(*side) for side in box)] = False
        np.testing.assert_array_equal(marked, known)
        for first in range(9):
            for stop in range(first, 10):
                cut = (slice(first, stop), slice(1, 3))
                np.testing.assert_array_equal(both.block(STATE.name, -1, cut), whole[cut])
        low, high = both.overview(STATE.name, size=(3, 3))
        for got, reduced in ((low, np.min), (high, np.max)):
            expected = np.stack([reduced(whole[n : n + 3], axis=0) for n in (0, 3, 6)])
            np.testing.assert_array_equal(got, expected)


def test_without_alignment_they_are_refused_and_equal_tokens_are_left_as_they_are(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    with compare(*pair, align=False) as both:
        assert both.refused[STATE.name] == "Their tokens differ from step 2 on: 'c' and 'x'."
    same = capture_of(tmp_path / "c.inspect", frame_of(3, 6), tokens=FIRST)
    with compare(pair[0], same) as both:
        assert both.alignments == {} and both.channel(STATE.name).method == "exact"
    other = capture_of(tmp_path / "d.inspect", frame_of(3, 6), tokens="uvwxyz")
    with compare(pair[0], other) as both:
        assert both.alignments == {}
        assert both.refused[STATE.name] == "Their tokens differ from step 0 on: 'a' and 'u'."


def test_queries_and_keys_are_aligned_lags_and_units_are_not(tmp_path: Path) -> None:
    attention = channel("a:attention", dims=("head", "query", "key"), shape=(1, None, None), kind="attention")
    lag = channel("rnn.l0:lag", dims=("lag",), shape=(None,), kind="lag")
    arrays = [
        {
            attention.name: np.random.default_rng(n).random((1, n, n), np.float32),
            lag.name: np.arange(n, dtype=np.float32),
        }
        for n in (3, 4)
    ]
    paths = [
        capture_of(tmp_path / f"{n}.inspect", one, tokens=tokens, channels=(attention, lag))
        for n, (one, tokens) in enumerate(zip(arrays, ("abc", "abxc"), strict=True))
    ]
    with compare(*paths) as both:
        maps = both.array(attention.name)
        kept = [0, 1, 3]
        np.testing.assert_array_equal(
            maps[0][np.ix_(kept, kept)], arrays[1][attention.name][0][np.ix_(kept, kept)] - arrays[0][attention.name][0]
        )
        assert np.isnan(maps[0, 2]).all() and np.isnan(maps[0, :, 2]).all()
        assert both.extent(lag.name) == (3,) and "the first 3 along lag" in both.channel(lag.name).method


def test_damage_stays_damage_at_its_aligned_steps(tmp_path: Path) -> None:
    from captures import flip

    first = capture_of(tmp_path / "a.inspect", frame_of(1, 6), tokens=FIRST)
    second = capture_of(tmp_path / "b.inspect", frame_of(2, 8), tokens=SECOND)
    flip(first, 1)
    with open_capture(first) as one, open_capture(second) as other:
        one.verify()
        before, after, found = aligned(Reference(one, 0, "a"), Reference(other, 0, "b"))
        assert list(found) == ["step"] and after.view.labels("step", 0) == before.view.labels("step", 0)
        held = before.view.holes(STATE.name, 0)
        assert {box[0] for box in held.damaged} == {(0, 2), (3, 7)}
        assert {box[0] for box in held.missing} == {(2, 3), (7, 9)}


def test_whole_numbers_are_masked_in_a_gap(tmp_path: Path) -> None:
    counted = replace(channel("input:token", "int64", dims=("step",), shape=(None,), kind="input"))
    paths = [
        capture_of(tmp_path / f"{text}.inspect", {counted.name: np.arange(len(text))}, tokens=text, channels=[counted])
        for text in ("ab", "axb")
    ]
    with compare(*paths) as both:
        values = both.before.view.array(counted.name, 0)
        assert np.ma.getmaskarray(values).tolist() == [False, True, False] and values[2] == 1
