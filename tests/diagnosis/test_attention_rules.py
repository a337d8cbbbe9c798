"""Rules of attention, on generated captures at both sides of their limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.records.catalogue import EQUIVALENT_MAP
from tests.support.generated_run import Measured, judged, of_rule, severities

PLACE = "layers.0.attn"
ENTROPY, LOGIT = f"{PLACE}:attention/entropy_normalised", f"{PLACE}:attention/largest_logit"
NAN = float("nan")


def rows(*heads: Any, queries: int = 12, first: float = NAN, of: int | None = None) -> Measured:
    """A number for each head, at every query but the first one; or a row of numbers. `of`: how many heads are there."""
    table = np.stack([np.broadcast_to(np.asarray(one, np.float32), queries) for one in heads]).copy()
    table[:, 0] = first
    return Measured("attention_statistic", ("head", "query"), table, rows=of)


def dip(value: float, at: float) -> list[float]:
    """Twelve queries at `value`, but for one."""
    return [value] * 7 + [at] + [value] * 4


@pytest.mark.parametrize(
    ("table", "rule", "found"),
    [
        (rows(1.0, 0.5), "uniform-attention", "head 0 of 2"),
        (rows(0.99, dip(0.995, 0.991)), "uniform-attention", "heads 0, 1 of 2"),
        (rows(dip(1.0, 0.985), 0.98), "uniform-attention", ""),
        (rows(1.0, 1.0, queries=9), "uniform-attention", "heads 0, 1 of 2"),
        (rows(1.0, 1.0, queries=8), "uniform-attention", ""),  # seven queries with two keys
        (rows(1.0, queries=1), "uniform-attention", ""),
        (rows(NAN, NAN), "uniform-attention", ""),
        (rows(1.0, 1.0, of=1), "uniform-attention", ""),  # an unfinished run
        (rows(0.0, 0.5), "attention-collapse", "head 0 of 2"),
        (rows(0.009, dip(0.0, 0.009)), "attention-collapse", "heads 0, 1 of 2"),
        (rows(0.011, dip(0.0, 0.02)), "attention-collapse", ""),
        (rows(NAN, NAN), "attention-collapse", ""),
        (rows(0.0, queries=9), "attention-collapse", "head 0 of 1"),
        (rows(0.0, queries=8), "attention-collapse", ""),
    ],
)
def test_heads_that_attend_evenly_or_to_one_key(tmp_path: Path, table: Measured, rule: str, found: str) -> None:
    said = of_rule(judged(tmp_path / "a.inspect", [{ENTROPY: table}], finished=False), rule)
    assert [one.severity for one in said] == (["info"] if found else [])
    assert all(found in one.message for one in said)


def test_even_heads_of_several_layers_are_one_finding(tmp_path: Path) -> None:
    layers = [f"layers.{n}.attn" for n in range(8)]
    frame = {f"{place}:attention/entropy_normalised": rows(1.0, 0.5) for place in layers}
    frame["other.attn:attention/entropy_normalised"] = rows(0.5, 0.5)
    (one,) = of_rule(judged(tmp_path / "a.inspect", [frame]), "uniform-attention")
    assert (one.place, list(one.places)) == ("", layers) and len(one.evidence) == 8
    assert "in 8 layers: layers.0.attn (head 0 of 2)" in one.message and one.message.count("head 0") == 6
    assert "and 2 more" in one.message
    (alone,) = of_rule(judged(tmp_path / "b.inspect", [{ENTROPY: rows(1.0, 0.5)}]), "uniform-attention")
    assert (alone.place, alone.places) == (PLACE, (PLACE,)) and "layers" not in alone.message


@pytest.mark.parametrize(
    ("rule", "signal", "table", "said"),
    [
        ("attention-collapse", "attention/entropy_normalised", rows(0.005, 0.5), "and 2 more; the entropy is at most 0.005 of"),
        ("attention-sink", "attention/sink_mass", rows(0.4, 0.1, queries=40), "up to 40 % of the weight in 8 layers: "),
        ("redundant-heads", "attention/redundancy", None, "; layers.7.attn, head 1 as head 0 (divergence 0.001 of"),
    ],
)  # fmt: skip
def test_the_same_of_several_layers_is_one_finding_with_the_list_of_places(
    tmp_path: Path, rule: str, signal: str, table: Measured | None, said: str
) -> None:
    layers = [f"layers.{n}.attn" for n in range(8)]

    def alike(divergence: float) -> Measured:
        return Measured("attention_statistic", ("head", "other"), np.array([[0.0, 0.3], [divergence, 0.0]]))

    frame = {f"{place}:{signal}": table or alike(0.008 - 0.001 * n) for n, place in enumerate(layers)}
    frame[f"other.attn:{signal}"] = alike(0.3) if table is None else rows(0.2, 0.2, queries=len(table.values[0]))
    (one,) = of_rule(judged(tmp_path / "a.inspect", [frame]), rule)
    assert (one.place, list(one.places)) == ("", layers)
    assert list(one.evidence) == [f"{place}:{signal}" for place in layers]
    assert "8 layers: layers.0.attn (head" in one.message and "layers.5.attn" in one.message
    assert "and 2 more" in one.message and said in one.message, one.message
    (alone,) = of_rule(judged(tmp_path / "b.inspect", [{f"{PLACE}:{signal}": table or alike(0.001)}]), rule)
    assert (alone.place, alone.places) == (PLACE, (PLACE,)) and "layers:" not in alone.message


@pytest.mark.parametrize(("title", "told"), [("attention", 1), (EQUIVALENT_MAP, 0)])
def test_the_map_that_a_scan_stands_for_has_no_heads_to_judge(tmp_path: Path, title: str, told: int) -> None:
    """A slow decay gives an even map, a fast one one key: neither is an illness of a softmax."""
    frame = {ENTROPY: rows(1.0, 0.0), f"{PLACE}:attention": alignment("step")}
    frame[f"{PLACE}:attention"].about["title"] = title
    found = judged(tmp_path / "a.inspect", [frame])
    assert len(of_rule(found, "uniform-attention")) == len(of_rule(found, "attention-collapse")) == told


def alignment(query: str) -> Measured:
    about = {"domains": {"query": query, "key": "step"}}
    return Measured("attention", ("head", "query", "key"), np.zeros((2, 12, 5), np.float16), about)


@pytest.mark.parametrize(
    ("table", "query", "found"),
    [
        (rows(0.96, 0.951, first=0.97), "answer step", ["no-alignment"]),
        (rows(1.0, 1.0, first=1.0), "answer step", ["no-alignment"]),  # and not as even attention, once more
        (rows(0.96, dip(0.96, 0.94), first=0.97), "answer step", []),
        (rows(0.96, 0.96, first=0.97), "step", []),
        (rows(0.96, 0.96), "answer step", []),
        (rows(1.0, 0.5, first=1.0), "answer step", ["uniform-attention"]),
        (rows(0.96, queries=4, first=0.97), "answer step", ["no-alignment"]),
        (rows(0.96, queries=3, first=0.97), "answer step", []),
    ],
)
def test_a_decoder_that_tells_no_source_token_from_another(
    tmp_path: Path, table: Measured, query: str, found: list[str]
) -> None:
    said = judged(tmp_path / "a.inspect", [{f"{PLACE}:attention": alignment(query), ENTROPY: table}]).findings
    assert [one.rule for one in said] == found and all(one.severity == "info" for one in said)


@pytest.mark.parametrize(
    ("early", "late", "queries", "found"),
    [
        (1.0, 0.29, 40, False),
        (0.0, 0.31, 40, True),
        (1.0, 0.31, 32, True),
        (1.0, 0.31, 31, False),
        (1.0, NAN, 40, False),
    ],
)
def test_a_sink_is_judged_over_the_later_queries(
    tmp_path: Path, early: float, late: float, queries: int, found: bool
) -> None:
    half = queries // 2
    table = rows([early] * half + [late] * (queries - half), queries=queries)
    said = judged(tmp_path / "a.inspect", [{f"{PLACE}:attention/sink_mass": table}])
    assert severities(said, "attention-sink") == (["info"] if found else [])


def test_heads_with_one_map_are_told_once(tmp_path: Path) -> None:
    table = np.array([[0.0, 0.009, 0.3], [0.009, 0.0, 0.011], [0.3, 0.011, 0.0]])
    measured = Measured("attention_statistic", ("head", "other"), table)
    (said,) = of_rule(judged(tmp_path / "a.inspect", [{f"{PLACE}:attention/redundancy": measured}]), "redundant-heads")
    assert "head 1 of 3: head 1 as head 0 (divergence 0.009" in said.message and said.severity == "info"
    apart = Measured("attention_statistic", ("head", "other"), np.full((3, 3), NAN))
    assert not judged(tmp_path / "b.inspect", [{f"{PLACE}:attention/redundancy": apart}]).findings


@pytest.mark.parametrize(
    ("margin", "found"),
    [(16.0, []), (15.8, ["info"]), (4.9, ["info"]), (4.8, ["warning"]), (-3.0, ["warning"]), (NAN, [])],
)
def test_a_mask_that_leaks(tmp_path: Path, margin: float, found: list[str]) -> None:
    table = Measured("attention_statistic", ("head", "query"), np.array([[NAN, 90.0, 80.0], [NAN, 70.0, margin]]))
    said = of_rule(judged(tmp_path / "a.inspect", [{f"{PLACE}:attention/mask_margin": table}]), "mask-leaks")
    assert [one.severity for one in said] == found
    assert all(one.steps == (2,) and f"up to {np.exp(-margin):.2g} times" in one.message for one in said)


def test_rows_without_a_key_are_counted_beside_all_rows(tmp_path: Path) -> None:
    channels = {f"{PLACE}:attention": alignment("step")}
    (said,) = judged(tmp_path / "a.inspect", [channels], {f"{PLACE}:attention/rows_without_keys": 4.0}).findings
    assert (said.id, said.severity, said.place) == ("IN119", "warning", PLACE)
    assert said.message == "4 of 24 rows (heads × queries) may attend to no key"
    (said,) = judged(tmp_path / "d.inspect", [channels], {f"{PLACE}:attention/rows_all_masked": 4.0}).findings
    assert said.message.startswith("4 of 24 rows (heads × queries) have every key masked by a finite number")
    assert "inverted" in said.remedy and said.severity == "warning"
    assert not judged(tmp_path / "b.inspect", [channels], {f"{PLACE}:attention/rows_not_finite": 4.0}).findings
    assert not judged(tmp_path / "c.inspect", [channels, channels]).findings


@pytest.mark.parametrize(
    ("rows", "severity"),
    [((0, 1), "info"), ((0,), "info"), ((1,), "warning"), ((0, 2), "warning"), ((0, 1, 2), "warning")],
)
def test_rows_of_masked_keys_in_front_are_those_of_padding(
    tmp_path: Path, rows: tuple[int, ...], severity: str
) -> None:
    margins = np.full((2, 3), 90.0)
    margins[:, list(rows)] = -np.inf
    table = Measured("attention_statistic", ("head", "query"), margins)
    channels = {f"{PLACE}:attention": alignment("step"), f"{PLACE}:attention/mask_margin": table}
    number = {f"{PLACE}:attention/rows_all_masked": 2.0 * len(rows)}
    (said,) = judged(tmp_path / "a.inspect", [channels], number).findings
    assert (said.rule, said.severity) == ("rows-without-keys", severity)


@pytest.mark.parametrize(
    ("before", "score", "entropy", "found"),
    [
        (None, 99.0, 0.0, []),
        (None, 100.0, 0.0, ["info"]),  # one frame does not say that it grew
        (20.0, 100.0, 0.04, ["warning"]),
        (20.0, 100.0, 0.06, ["info"]),  # a large offset, which a softmax does not see
        (26.0, 100.0, 0.04, ["info"]),
        (20.0, NAN, 0.04, []),
        (20.0, 100.0, NAN, ["info"]),
    ],
)
def test_scores_that_have_grown(
    tmp_path: Path, before: float | None, score: float, entropy: float, found: list[str]
) -> None:
    last = {LOGIT: rows(score, 3.0), ENTROPY: rows(entropy, 0.5)}
    frames = [last] if before is None else [{LOGIT: rows(before, 3.0), ENTROPY: rows(0.5, 0.5)}, last]
    said = of_rule(judged(tmp_path / "a.inspect", frames), "large-scores")
    assert [one.severity for one in said] == found
    assert all(one.frame == len(frames) - 1 and "head 0" in one.message for one in said)
    if found == ["warning"]:
        assert said[0].message.endswith("; head 0 gives one key nearly all the weight")
