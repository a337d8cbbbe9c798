"""Greedy decoding, sampling and beam search against every sequence that a tiny vocabulary has."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from inspector.engine.decoding.sampling import drawn_from
from inspector.engine.decoding.search import search
from inspector.records import Decode, DecodedTree
from inspector.records.decoding import BEGINNING

V, END, LONGEST = 4, 0, 4
Ask = Callable[[Sequence[tuple[int, ...]]], Tensor]


def table(seed: int, sharpness: float = 2.0) -> Ask:
    """ln p of four tokens after every beginning, random, and the same for the same beginning."""

    def ask(beginnings: Sequence[tuple[int, ...]]) -> Tensor:
        rows = []
        for beginning in beginnings:
            number = sum((token + 1) * (V + 1) ** i for i, token in enumerate(beginning))
            logits = torch.randn(V, generator=torch.Generator().manual_seed(1000 * seed + number), dtype=torch.float64)
            rows.append(torch.log_softmax(sharpness * logits, dim=-1))
        return torch.stack(rows)

    return ask


def every_answer(ask: Ask) -> dict[tuple[int, ...], float]:
    """ln p of every answer: up to LONGEST tokens, ended by END or by the longest length."""
    found = {}
    for length in range(1, LONGEST + 1):
        for ids in itertools.product(range(V), repeat=length):
            if END in ids[:-1] or (ids[-1] != END and length < LONGEST):
                continue
            found[ids] = sum(float(ask([ids[:i]])[0, ids[i]]) for i in range(length))
    return found


def finished(found: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    return {ids: value for ids, value in found.items() if ids[-1] == END}


def penalised(ids: tuple[int, ...], total: float, alpha: float) -> float:
    return total / ((5 + len(ids)) / 6) ** alpha


def answers(tree: DecodedTree) -> list[tuple[int, ...]]:
    return [tree.ids(end) for end in tree.ranked]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alpha", [0.0, 0.7, 2.0, -1.0])
def test_a_beam_as_wide_as_everything_finds_the_best_of_all(seed: int, alpha: float) -> None:
    ask = table(seed)
    decode = Decode(how="beam", width=V**LONGEST, longest=LONGEST, length_penalty=alpha)
    tree = search(ask, decode, end=END)
    known = every_answer(ask)
    wanted = sorted(finished(known), key=lambda ids: -penalised(ids, known[ids], alpha))
    found = [ids for ids in answers(tree) if ids[-1] == END]
    assert found == wanted
    assert set(answers(tree)) == set(known)
    for end in tree.ranked:
        assert tree.tokens[end].total == pytest.approx(known[tree.ids(end)])
        assert tree.tokens[end].score == pytest.approx(penalised(tree.ids(end), known[tree.ids(end)], alpha))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_beam_that_stops_early_has_lost_nothing(seed: int, width: int, alpha: float) -> None:
    """Against the same beam that goes on to the longest length: its best `width` answers are the same."""
    ask = table(seed, sharpness=1.0)
    early = search(ask, Decode(how="beam", width=width, longest=6, length_penalty=alpha), end=END)
    wanted = plain_beam(ask, width, 6, alpha)
    found = [ids for ids in answers(early) if ids[-1] == END][:width]
    assert found == wanted[: len(found)] and len(found) == min(width, len(wanted))


def plain_beam(ask: Ask, width: int, longest: int, alpha: float) -> list[tuple[int, ...]]:
    """The definition without stopping: what ends among the best `width` candidates, the best `width` others go on."""
    alive, done = {(): 0.0}, {}
    for _ in range(longest):
        candidates = {
            (*ids, token): total + float(ask([ids])[0, token]) for ids, total in alive.items() for token in range(V)
        }
        order = sorted(candidates, key=lambda ids: -candidates[ids])
        done |= {ids: candidates[ids] for ids in order[:width] if ids[-1] == END}
        alive = {ids: candidates[ids] for ids in [ids for ids in order if ids[-1] != END][:width]}
    return sorted(done, key=lambda ids: -penalised(ids, done[ids], alpha))


def listed(chances: dict[tuple[int, ...], list[float]]) -> Ask:
    """ln p of the tokens after some beginnings; after any other the end is certain."""

    def ask(beginnings: Sequence[tuple[int, ...]]) -> Tensor:
        rows = [chances.get(ids, [1.0, 0, 0, 0]) for ids in beginnings]
        return torch.tensor(rows, dtype=torch.float64).log()

    return ask


@pytest.mark.parametrize(
    ("chances", "width", "alpha", "best"),
    [
        # ln 0.6 against ln 0.4: at two tokens still less, at four, divided by (9/6)², more
        ({(): [0.6, 0.4, 0, 0], (1,): [0, 1, 0, 0], (1, 1): [0, 1, 0, 0]}, 1, 2.0, (1, 1, 1, 0)),
        # two have ended; ln 0.48 ends as the best at three tokens, and could not at the longest length
        ({(): [0.15, 0.8, 0.05, 0], (1,): [0.3, 0.6, 0.1, 0]}, 2, -2.0, (1, 1, 0)),
    ],
    ids=["long answers gain", "long answers lose"],
)
def test_a_beam_goes_on_while_an_answer_of_any_length_can_still_win(
    chances: dict[tuple[int, ...], list[float]], width: int, alpha: float, best: tuple[int, ...]
) -> None:
    ask = listed(chances)
    tree = search(ask, Decode(how="beam", width=width, longest=6, length_penalty=alpha), end=END)
    assert answers(tree)[0] == best == plain_beam(ask, width, 6, alpha)[0]
    likelier = (0,)
    total = sum(float(ask([best[:i]])[0, token]) for i, token in enumerate(best))
    assert penalised(best, total, alpha) > penalised(likelier, math.log(chances[()][0]), alpha)
    assert tree.tokens[tree.ranked[0]].score == pytest.approx(penalised(best, total, alpha))


@pytest.mark.parametrize("seed", range(6))
def test_greedy_takes_the_likeliest_token_and_notes_the_next_ones(seed: int) -> None:
    ask = table(seed)
    tree = search(ask, Decode(how="greedy", width=3, longest=LONGEST), end=END)
    said: tuple[int, ...] = ()
    while len(said) < LONGEST and END not in said:
        row = ask([said])[0]
        parent = next((p for p in range(len(tree.tokens)) if tree.ids(p) == said), BEGINNING)
        noted = [tree.tokens[child] for child in tree.children(parent)]
        assert [one.token for one in noted] == row.argsort(descending=True)[:3].tolist()
        assert [one.log_probability for one in noted] == pytest.approx(sorted(row.tolist(), reverse=True)[:3])
        assert all(one.fate == "pruned" for one in noted[1:])
        said = (*said, int(row.argmax()))
    assert answers(tree) == [said]
    assert tree.tokens[tree.ranked[0]].fate == ("finished" if said[-1] == END else "unfinished")


def test_a_beam_finds_what_greedy_decoding_misses() -> None:
    """0.6 · 1/3 after the likeliest beginning against 0.4 after the other."""
    ask = listed({(): [0, 0.6, 0.4, 0], (1,): [1 / 3, 0, 1 / 3, 1 / 3]})
    greedy = search(ask, Decode(longest=LONGEST), end=END)
    beam = search(ask, Decode(how="beam", width=2, longest=LONGEST), end=END)
    assert answers(greedy) == [(1, 0)] and answers(beam)[0] == (2, 0)
    assert math.exp(beam.tokens[beam.ranked[0]].total) == pytest.approx(0.4)
    for tree in (greedy, beam):
        assert all(one.total > -math.inf for one in tree.tokens), "what cannot be said is not tried"


def test_the_tree_of_a_beam_says_what_became_of_every_token() -> None:
    tree = search(table(3, 1.0), Decode(how="beam", width=2, longest=LONGEST), end=END)
    followed = {one.parent for one in tree.tokens}
    for position, one in enumerate(tree.tokens):
        assert one.parent < position
        assert one.fate != "continued" or position in followed
        assert one.fate != "finished" or (one.token == END and position not in followed)
        below = [tree.tokens[child] for child in tree.children(position)]
        assert one.fate != "pruned" or all(child.fate == "pruned" for child in below)
    assert {one.fate for one in tree.tokens} >= {"continued", "pruned", "finished"}
    by_length: dict[int, int] = {}
    for position, one in enumerate(tree.tokens):
        if one.fate == "continued":
            by_length[len(tree.ids(position))] = by_length.get(len(tree.ids(position)), 0) + 1
    assert max(by_length.values()) <= 2


def test_without_an_end_token_every_answer_has_the_longest_length() -> None:
    for how in ("greedy", "beam", "sample"):
        tree = search(table(5), Decode(how=how, width=3, longest=3))  # type: ignore[arg-type]
        assert tree.ranked and all(len(tree.ids(end)) == 3 for end in tree.ranked)
        assert {tree.tokens[end].fate for end in tree.ranked} == {"unfinished"}


def test_samples_have_the_probabilities_of_the_model() -> None:
    ask = table(2, 1.0)
    tree = search(ask, Decode(how="sample", width=1000, longest=LONGEST), end=END, seed=1)
    known = every_answer(ask)
    counts = {tree.ids(end): tree.tokens[end].times for end in tree.ranked}
    assert sum(counts.values()) == 1000 and set(counts) <= set(known)
    for ids, total in known.items():
        spread = math.sqrt(1000 * math.exp(total) * (1 - math.exp(total)))
        assert abs(counts.get(ids, 0) - 1000 * math.exp(total)) < 5 * spread + 1, ids
    for end in tree.ranked:
        assert tree.tokens[end].total == pytest.approx(known[tree.ids(end)])


def test_the_same_seed_draws_the_same_answers() -> None:
    ask, decode = table(2, 1.0), Decode(how="sample", width=6, longest=LONGEST)
    one, same, other = (search(ask, decode, end=END, seed=seed) for seed in (4, 4, 5))
    assert one == same and one != other


def nucleus(row: list[float], temperature: float, top_k: int, top_p: float) -> list[float]:
    """The definition, in plain Python: temperature, the k likeliest, the fewest whose probabilities reach p."""
    weights = [math.exp(value / temperature) for value in row]
    order = sorted(range(len(row)), key=lambda i: -weights[i])
    kept = order[:top_k] if top_k else order
    whole = sum(weights[i] for i in kept)
    chosen, reached = [], 0.0
    for i in kept:
        chosen.append(i)
        reached += weights[i] / whole
        if reached >= top_p:
            break
    rest = sum(weights[i] for i in chosen)
    return [weights[i] / rest if i in chosen else 0.0 for i in range(len(row))]


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("top_k", [0, 1, 3, 9])
@pytest.mark.parametrize("top_p", [0.05, 0.5, 0.9, 1.0])
def test_what_is_drawn_from(temperature: float, top_k: int, top_p: float) -> None:
    rows = torch.log_softmax(torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64), -1)
    decode = Decode(how="sample", temperature=temperature, top_k=top_k, top_p=top_p)
    wanted = [nucleus(row, temperature, top_k, top_p) for row in rows.tolist()]
    torch.testing.assert_close(drawn_from(rows, decode), torch.tensor(wanted, dtype=torch.float64))


def test_a_token_that_cannot_be_said_is_never_drawn() -> None:
    row = torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64).log()
    for decode in (Decode(how="sample", temperature=50.0), Decode(how="sample", top_k=3)):
        assert float(drawn_from(row, decode)[0, 2]) == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"how": "widest"}, "how is 'widest'; expected greedy, sample, beam"), ({"width": 0}, "width is 0"),
        ({"longest": 0}, "longest is 0"), ({"length_penalty": math.nan}, "length_penalty is nan"),
        ({"how": "sample", "temperature": 0.0}, "temperature is 0.0"), ({"how": "sample", "top_p": 1.5}, "top_p is 1.5"),
        ({"how": "sample", "top_k": -1}, "top_k is -1"), ({"how": "beam", "temperature": 0.5}, "of how='sample'"),
        ({"shown": -1}, "shown is -1"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_by_is_said(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Decode(**given)  # type: ignore[arg-type]
