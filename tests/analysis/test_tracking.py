"""Matches in a text, and what tracks them: against numpy's own correlation, one pair of series at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.analysis.text_matches import PATTERN, STEPS, TEXT, marked, matches
from inspector.analysis.tracking import by_chance, chance, correlations, track
from inspector.capture import Writer, open_capture
from inspector.records import Channel, Frame, Page, RunStart, RunStop

TALE = list('she said "no" and\nleft "it all" here')


def test_text_is_found_where_it_stands_and_line_breaks_can_be_typed() -> None:
    text = "".join(TALE)
    assert matches(TALE, len(TALE), TEXT, "e") == tuple((n, n) for n, c in enumerate(text) if c == "e")
    assert matches(TALE, len(TALE), TEXT, r"d\nl") == ((text.index("\n") - 1, text.index("\n") + 1),)
    quoted = matches(TALE, len(TALE), PATTERN, '"[^"]*"')
    assert [text[first : last + 1] for first, last in quoted] == ['"no"', '"it all"']
    assert matches(TALE, len(TALE), PATTERN, "x*") == (), "a match of nothing marks nothing"


def test_words_are_searched_as_the_text_that_they_make() -> None:
    assert matches(["the", "cat", "sat", "the", "cats"], 5, TEXT, "the cat") == ((0, 1), (3, 4))
    assert matches(["the", " cat", " sat"], 3, TEXT, "t s") == ((1, 2),)


def test_ranges_are_typed_as_steps() -> None:
    assert matches((), 50, STEPS, "40, 12-20") == ((12, 20), (40, 40))
    assert np.flatnonzero(marked(((1, 2), (4, 4)), 6)).tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    ("kind", "asked", "said"),
    [(PATTERN, "(", "no regular expression"), (STEPS, "9-4", "0 to 38"), (STEPS, "3-90", "0 to 38"), (STEPS, "a", "'a'")],
)  # fmt: skip
def test_what_cannot_be_searched_for_says_why(kind: str, asked: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        matches(TALE + ["!"] * (39 - len(TALE)), 39, kind, asked)


def test_an_expression_that_never_ends_is_given_up() -> None:
    with pytest.raises(ValueError, match=r"longer than 0\.4 s"):
        matches(["a"] * 60 + ["b"], 61, PATTERN, "(a+)+$", seconds=0.4)


def test_correlations_are_those_of_each_series_alone() -> None:
    random = np.random.default_rng(0)
    mark, values = random.random(70) < 0.3, random.normal(size=(70, 3)) + 50
    values[5, 1], values[:, 2] = np.nan, 4.0
    found = correlations(values, mark, 6)
    for delay in range(7):
        for unit in range(2):
            pairs = [(float(m), x) for m, x in zip(mark[: 70 - delay], values[delay:, unit], strict=True) if x == x]
            expected = np.corrcoef(np.array(pairs).T)[0, 1]
            assert found[delay, unit] == pytest.approx(expected, abs=1e-10)
    assert np.isnan(found[:, 2]).all(), "what does not vary has no correlation"


def test_a_delayed_unit_and_a_head_that_attends_are_found_first(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    steps, mark = 160, np.zeros(160, bool)
    mark[random.choice(150, 25, replace=False)] = True
    state = random.normal(size=(steps, 70)).astype(np.float32) * 0.3
    state[4:, 66] -= mark[:-4]
    weights = np.tril(random.random((2, steps, steps))).astype(np.float32)
    for key in np.flatnonzero(mark[: steps - 2]):
        weights[1, key + 2, key] += 2
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for name, kind, dims, array in (("l:h", "state", ("step", "unit"), state),
                                        ("l:attention", "attention", ("head", "query", "key"), weights)):  # fmt: skip
            writer.write(Channel(name=name, kind=kind, dims=dims, shape=array.shape, title=name))
            writer.write(Page(name, 0, (0,) * array.ndim, array))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        unit, head = (track(capture, capture.channels[name], 0, mark, 8) for name in ("l:h", "l:attention"))
    first = unit.tracks[0]
    assert (first.number, first.delay) == (66, 4) and first.r == pytest.approx(
        np.corrcoef(mark[:-4], state[4:, 66])[0, 1], abs=1e-6
    )
    assert unit.tracks[0].r < -unit.chance and abs(unit.tracks[1].r) < 1.3 * unit.chance
    given = [weights[1, key + 2, key] for key in range(steps - 2)]
    best = head.tracks[0]
    assert (best.number, best.delay) == (1, 2) and best.r == pytest.approx(
        np.corrcoef(mark[:-2], given)[0, 1], abs=1e-6
    )


def test_chance_is_told_by_shifting_the_mark_around() -> None:
    random = np.random.default_rng(2)
    values, mark = random.normal(size=(120, 4)), random.random(120) < 0.4
    bests = []
    for start in range(6, 120 - 6, 3):
        shifted = [np.corrcoef(np.roll(mark, shift), values[:, unit])[0, 1]
                   for shift in range(start, start + 3) for unit in range(4)]  # fmt: skip
        bests.append(np.abs(shifted).max())
    assert chance(by_chance(values, mark, 2)) == pytest.approx(np.percentile(bests, 95), abs=1e-9)
    assert np.isnan(chance(by_chance(values[:10], mark[:10], 2))), "too short to say"
