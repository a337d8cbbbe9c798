"""Maps of several heads together, without the first key, masked; numbers of heads; alignments; strongest weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from panel_captures import channel, write_frames

from inspector.analysis.attention.alignment import alignment_of
from inspector.analysis.attention.arrangement import ConditionError, arranged
from inspector.analysis.attention.head_table import HeadTable, head_table
from inspector.analysis.attention.map_source import MapChoice, MapSource
from inspector.analysis.attention.strongest import apart, rank_in_row, strongest, strongest_of_each
from inspector.capture import Capture, open_capture

T = 9
CAUSAL = np.tril(np.ones((T, T), dtype=bool))


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.where(CAUSAL, np.exp(scores), 0.0)
    return weights / weights.sum(-1, keepdims=True)


WEIGHTS = softmax(np.random.default_rng(0).normal(size=(3, T, T)))
NAMES = ("previous", "first", "local")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Capture]:
    allowed = np.array([[0] * T, range(T)], np.int32)
    entropy = np.where(np.arange(T) == 4, np.nan, np.arange(3)[:, None] + np.zeros(T)).astype(np.float32)
    folder: Path = tmp_path_factory.mktemp("heads")
    maps = {"domains": {"query": "step", "key": "step"}, "limits": (0, 1)}
    statistic = "attention_statistic"
    path = write_frames(
        folder,
        channel("a:attention", "attention", ("head", "query", "key"), WEIGHTS.astype(np.float32), **maps),
        channel("b:attention", "attention", ("head", "query", "key"), WEIGHTS[:2, :5, :5].astype(np.float32), **maps),
        channel("a:attention/allowed", "attention", ("statistic", "query"), allowed),
        channel("a:attention/entropy", statistic, ("head", "query"), entropy, title="attention entropy"),
        channel("a:attention/importance", statistic, ("head",), np.array([0.5, np.nan, 2.0]), title="importance"),
        channel("a:attention/type", statistic, ("head", "type"), np.array([[1, 5, 2], [3, 0, 1], [np.nan] * 3]),
                title="head type", labels={"type": NAMES}),
    )  # fmt: skip
    with open_capture(path) as opened:
        yield opened


def rows(capture: Capture, *heads: tuple[str, int], **more: object) -> np.ndarray:
    source = MapSource(capture, MapChoice(heads, **more))  # type: ignore[arg-type]
    return source.rows(0, source.shape[0])


def test_masked_keys_are_no_zeros(capture: Capture) -> None:
    found = rows(capture, ("a:attention", 1))
    np.testing.assert_array_equal(np.isneginf(found), ~CAUSAL)
    np.testing.assert_allclose(found[CAUSAL], WEIGHTS[1][CAUSAL], rtol=1e-6)


def test_without_anything_said_of_masks_zeros_above_the_diagonal_are_a_mask(capture: Capture) -> None:
    np.testing.assert_array_equal(np.isneginf(rows(capture, ("b:attention", 0))), ~CAUSAL[:5, :5])


def test_heads_together(capture: Capture) -> None:
    heads = (("a:attention", 0), ("a:attention", 2))
    mean = rows(capture, *heads, together="mean")
    np.testing.assert_allclose(mean[CAUSAL], ((WEIGHTS[0] + WEIGHTS[2]) / 2)[CAUSAL], rtol=1e-6)
    largest = rows(capture, *heads, together="maximum")
    np.testing.assert_allclose(largest[CAUSAL], np.maximum(WEIGHTS[0], WEIGHTS[2])[CAUSAL], rtol=1e-6)
    assert np.isneginf(mean[~CAUSAL]).all()
    source = MapSource(capture, MapChoice((("a:attention", 0), ("b:attention", 0))))
    assert source.heads == (("a:attention", 0),), "of another size"


def test_without_the_first_key_rows_sum_to_one_again(capture: Capture) -> None:
    found = rows(capture, ("a:attention", 0), without_first=True)
    assert np.isneginf(found[:, 0]).all() and np.isneginf(found[0]).all(), "nothing is left of the first row"
    for query in range(1, T):
        kept = WEIGHTS[0, query, 1 : query + 1]
        np.testing.assert_allclose(found[query, 1 : query + 1], kept / kept.sum(), rtol=1e-5)


@pytest.fixture(scope="module")
def table(capture: Capture) -> HeadTable:
    return head_table(capture, -1, [("a", 3), ("b", 2)], list(capture.channels.values()))


def test_every_number_of_heads_is_a_key(table: HeadTable) -> None:
    assert dict(table.keys) == {
        "attention/entropy": "mean attention entropy",
        "attention/importance": "importance",
        **{f"attention/type/{name}": f"head type: {name}" for name in NAMES},
    }
    assert dict(table.words) == {"attention/type": "head type"}
    assert [head.numbers.get("attention/entropy") for head in table.heads] == [0.0, 1.0, 2.0, None, None]
    assert [head.words.get("attention/type") for head in table.heads] == ["first", "previous", "not known", None, None]


def names(groups: object) -> list[tuple[str, list[str]]]:
    return [(group.title, [f"{head.place}{head.head}" for head in group.heads]) for group in groups]  # type: ignore[attr-defined]


def test_heads_are_sorted_and_grouped(table: HeadTable) -> None:
    assert names(arranged(table)) == [("a", ["a0", "a1", "a2"]), ("b", ["b0", "b1"])]
    assert names(arranged(table, sort="attention/importance", group="")) == [("", ["a2", "a0", "a1", "b0", "b1"])]
    rising = arranged(table, sort="attention/importance", descending=False, group="")
    assert names(rising) == [("", ["a0", "a2", "a1", "b0", "b1"])]
    assert names(arranged(table, group="attention/type")) == [
        ("first", ["a0"]), ("not known", ["a2", "b0", "b1"]), ("previous", ["a1"]),
    ]  # fmt: skip
    quarters = names(arranged(table, group="attention/entropy"))
    assert quarters[0] == ("highest quarter of mean attention entropy", ["a2"]) and quarters[-1][1] == ["b0", "b1"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("entropy > 0.5", ["a1", "a2"]), ("Entropy ≥ 1, importance > 1", ["a2"]), ("layer = 1", ["b0", "b1"]),
        ("head < 1", ["a0", "b0"]), ("previous", ["a1"]), ("b", ["b0", "b1"]), ("type: previous >= 3", ["a1"]),
    ],
)  # fmt: skip
def test_heads_are_filtered_by_conditions(table: HeadTable, text: str, found: list[str]) -> None:
    assert [name for _, heads in names(arranged(table, text=text)) for name in heads] == found


@pytest.mark.parametrize(
    ("text", "said"),
    [("curl > 1", "There is no number 'curl'"), ("nonsense", "No head has"), ("entropy > 1.2.3", "not a number")],
)
def test_a_condition_that_cannot_be_read_says_what_there_is(table: HeadTable, text: str, said: str) -> None:
    with pytest.raises(ConditionError, match=said):
        arranged(table, text=text)


class Given:
    def __init__(self, weights: np.ndarray) -> None:
        self.weights, self.shape, self.narrow = weights, weights.shape, False

    def rows(self, first: int, stop: int) -> np.ndarray:
        return self.weights[first:stop]


def test_an_alignment_against_its_definition() -> None:
    random = np.random.default_rng(4)
    weights = random.dirichlet(np.ones(7), 5)
    weights[3] = np.nan
    weights[1, 2:] = -np.inf
    found = alignment_of(Given(weights))
    plain = np.where(np.isneginf(weights), 0.0, weights)
    read = [0, 1, 2, 4]
    np.testing.assert_allclose(found.coverage, [sum(plain[q, k] for q in read) for k in range(7)])
    np.testing.assert_allclose(found.largest, [max(row) if not math.isnan(row[0]) else math.nan for row in plain])
    assert found.path.tolist() == [int(plain[q].argmax()) if q != 3 else -1 for q in range(5)]
    assert found.focus == pytest.approx(sum(plain[q].max() for q in read) / 4)
    entropy = [-sum(w * math.log(w) for w in plain[q] if w > 0) for q in read]
    np.testing.assert_allclose(found.entropy[read], entropy)
    penalised = sum(plain[q, k] * (1 - math.exp(-((q / 5 - k / 7) ** 2) / 0.08)) for q in read for k in range(7))
    assert found.diagonality == pytest.approx(1 - penalised / sum(plain[q].sum() for q in read))
    assert found.coverage_penalty == pytest.approx(sum(math.log(min(c, 1.0)) for c in found.coverage))


def test_source_tokens_that_are_read_more_than_once_are_not_penalised_and_do_not_make_up_for_others() -> None:
    weights = np.array([[1.0, 0.0, 0.0], [0.8, 0.1, 0.1], [0.9, 0.0, 0.1], [0.4, 0.3, 0.3]])
    found = alignment_of(Given(weights))
    np.testing.assert_allclose(found.coverage, [3.1, 0.4, 0.5])
    assert found.coverage_penalty == pytest.approx(math.log(0.4) + math.log(0.5))
    assert found.unread == 1


def test_a_diagonal_is_diagonal_and_nothing_is_known_of_no_rows() -> None:
    assert alignment_of(Given(np.eye(12))).diagonality == 1.0
    assert alignment_of(Given(np.fliplr(np.eye(12)))).diagonality < 0.4
    empty = alignment_of(Given(np.full((3, 3), -np.inf)))
    assert math.isnan(empty.focus) and math.isnan(empty.diagonality) and empty.path.tolist() == [-1] * 3


def test_the_strongest_weights() -> None:
    weights = np.array([[0.5, 0.5, -np.inf], [0.1, np.nan, 0.2], [0.0, 0.9, 0.1]])
    links = strongest(weights, 3)
    assert sorted(zip(links.queries, links.keys, links.weights, strict=True)) == [(0, 0, 0.5), (0, 1, 0.5), (2, 1, 0.9)]
    assert links.weights[-1] == 0.9 and links.share == pytest.approx(1.9 / 2.3) and links.of == 6
    assert strongest(weights, 9, query=2).keys.tolist() == [2, 1]
    assert strongest(weights, 9, key=0).queries.tolist() == [1, 0]
    assert len(strongest(np.full((2, 2), np.nan), 5)) == 0
    rows = np.random.default_rng(3).dirichlet(np.ones(6), size=5)
    for chosen, own in (({"query": 2}, rows[2]), ({"key": 4}, rows[:, 4])):  # a share of its own weight, not of all
        assert strongest(rows, 3, **chosen).share == pytest.approx(sum(sorted(own)[-3:]) / sum(own))
        assert strongest(rows, 6, **chosen).share == pytest.approx(1.0)


def test_of_differences_those_farthest_from_zero_are_the_strongest() -> None:
    change = np.array([[0.2, -0.9, np.nan], [-0.4, 0.1, -np.inf]])
    links = strongest(change, 2)
    assert list(zip(links.queries, links.keys, links.weights, strict=True)) == [(1, 0, -0.4), (0, 1, -0.9)]
    assert links.share == pytest.approx(1.3 / 1.6) and links.of == 4
    each = strongest_of_each(change, 1)
    assert list(zip(each.queries, each.keys, each.weights, strict=True)) == [(1, 0, -0.4), (0, 1, -0.9)]
    assert each.share == pytest.approx(1.3 / 1.6)


def test_the_strongest_weights_of_each_query() -> None:
    weights = np.array([[1.0, -np.inf, -np.inf], [0.3, 0.7, -np.inf], [np.nan, 0.2, 0.1]])
    links = strongest_of_each(weights, 1)
    assert list(zip(links.queries, links.keys, strict=True)) == [(2, 1), (1, 1), (0, 0)]
    assert links.weights.tolist() == [0.2, 0.7, 1.0] and links.of == 5 and links.share == pytest.approx(1.9 / 2.3)
    assert len(strongest_of_each(weights, 9)) == 5 and len(strongest_of_each(np.zeros((0, 0)), 3)) == 0


def test_a_rank_counts_the_keys_that_may_be_attended_to() -> None:
    row = np.array([0.2, 0.5, 0.2, 0.1, -np.inf])
    assert [rank_in_row(row, key) for key in range(4)] == [(2, 4), (1, 4), (2, 4), (4, 4)]


def test_of_lines_that_run_together_the_strongest_is_drawn() -> None:
    rng = np.random.default_rng(0)
    starts, ends = rng.uniform(0, 60, 200), rng.uniform(0, 60, 200)
    for first in (np.zeros(200, bool), rng.uniform(size=200) < 0.2):
        drawn = apart(starts, ends, 4.0, first)
        order = [n for n in range(199, -1, -1) if first[n]] + [n for n in range(199, -1, -1) if not first[n]]
        kept: list[int] = []  # each beside all that are kept, in a plain loop
        for n in order:
            if all(abs(starts[n] - starts[k]) >= 4 or abs(ends[n] - ends[k]) >= 4 for k in kept):
                kept.append(n)
        assert np.flatnonzero(drawn).tolist() == sorted(kept) and 20 < len(kept) < 190
    assert not len(apart(np.zeros(0), np.zeros(0), 4.0, np.zeros(0, bool)))


def test_of_margins_the_least_counts_and_of_scores_the_largest(tmp_path: Path) -> None:
    """A mask leaks at one query, and one score is too large: the mean over all queries hides both."""
    margins = np.array([[9.0, -np.inf, 2.0, np.nan], [np.nan] * 4, [-1.0, 4.0, 4.0, 4.0]])
    largest = np.array([[1.0, 50.0, -3.0, np.nan], [-5.0, -7.0, -6.0, -9.0], [np.nan] * 4])
    kept = [
        channel(f"a:attention/{name}", "attention_statistic", ("head", "query"), numbers, title=name)
        for name, numbers in (("mask_margin", margins), ("largest_logit", largest))
    ]
    with open_capture(write_frames(tmp_path, *kept)) as opened:
        found = head_table(opened, -1, [("a", 3)], list(opened.channels.values()))
    assert dict(found.keys) == {"attention/mask_margin": "mask_margin", "attention/largest_logit": "largest_logit"}
    numbers = [[head.numbers[key] for key in found.keys] for head in found.heads]
    np.testing.assert_array_equal(numbers, [[2.0, 50.0], [np.nan, -5.0], [-1.0, np.nan]])
