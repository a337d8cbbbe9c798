"""q·k by dimension of the query and key at the cursor, and the map that is computed from them, in Attention."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import Written, channel
from panel_captures import shown as shown_panel

from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.attention.strip import AGAINST as COMPARED
from inspector.gui.panel.attention.strip import PAIR
from inspector.gui.widgets.theme import LIGHT
from inspector.records import Frame, Labels, Page, Refusal, RunStart, RunStop

T, HEADS, WIDTH = 12, 4, 6
RANDOM = np.random.default_rng(0)
QUERIES = RANDOM.normal(size=(HEADS, T, WIDTH)).astype(np.float32)
KEYS = RANDOM.normal(size=(2, T, WIDTH)).astype(np.float32)
BIAS = RANDOM.normal(size=(HEADS, 2 * T - 1)).astype(np.float32)
"""By key − query, from −(T − 1) on."""
WORDS = tuple(f"w{n}" for n in range(T))
KEYED = {"query": "step", "key": "step"}


def scores() -> np.ndarray:
    """(head, query, key) in float64; two heads share keys."""
    shared = np.repeat(KEYS, 2, axis=0).astype(np.float64)
    at = np.arange(T)[None, :] - np.arange(T)[:, None] + T - 1
    return QUERIES.astype(np.float64) @ shared.transpose(0, 2, 1) + BIAS[:, at]


def causal_map() -> np.ndarray:
    allowed = np.where(np.tril(np.ones((T, T), dtype=bool)), np.exp(scores()), 0.0)
    return (allowed / allowed.sum(-1, keepdims=True)).astype(np.float16)


def parts(*, kept: bool = True) -> list[Any]:
    found: list[Written] = [
        channel("a:attention", "attention", ("head", "query", "key"), causal_map(), title="attention", domains=KEYED,
                limits=(0, 1), fill=0.0, computed="queries and keys" if kept else ""),
        channel("a:attention/allowed", "attention", ("statistic", "query"), np.array([[0] * T, range(T)], np.int32)),
        channel("a:attention/entropy", "attention_statistic", ("head", "query"), np.ones((HEADS, T), np.float32)),
    ]  # fmt: skip
    if kept:
        found += [
            channel("a:attention/queries", "attention_pair", ("head", "query", "component"), QUERIES),
            channel("a:attention/keys", "attention_pair", ("group", "key", "component"), KEYS),
            channel("a:attention/bias_by_distance", "attention", ("mask", "distance"), BIAS),
        ]
    return [Labels("step", WORDS, -1), *found]


AGAINST = "attention/against_gradient"


@pytest.fixture
def stage(tmp_path: Path, qtbot: Any) -> Iterator[tuple[Any, Any]]:
    with shown_panel(tmp_path, "attention", *parts(), place="a") as made:
        panel = made[1]
        panel.which.setCurrentIndex(panel.which.findData(PAIR))
        yield made


@pytest.mark.parametrize(("head", "query", "key"), [(0, 7, 3), (1, 7, 3), (2, 11, 0), (3, 5, 5)])
def test_the_bars_are_the_products_and_the_line_above_their_sum(
    stage: tuple[Any, Any], head: int, query: int, key: int
) -> None:
    stage[0].cursor.move(place="a", head=head, step=query, key=key)
    page, said = stage[1].page, stage[1].page.pair.titleLabel.lines[0]
    assert page.pair.isVisible() and not page.strip.isVisible()
    expected = QUERIES[head, query].astype(np.float64) * KEYS[head // 2, key]
    np.testing.assert_allclose(page.pair.bars.opts["height"], expected, rtol=1e-6)
    bias = BIAS[head, key - query + T - 1]
    assert f"head {head}, w{query} [{query}] → w{key} [{key}]" in said and "masked" not in said
    numbers = [float(part.replace("−", "-")) for part in (said.split("Σ ")[1].split(" ")[0], said.rsplit("= ")[1])]
    np.testing.assert_allclose(numbers, [expected.sum(), scores()[head, query, key]], rtol=5e-3)  # three digits
    assert scores()[head, query, key] == pytest.approx(expected.sum() + bias)
    assert any(np.allclose(values, expected) for name, values in stage[1].data().items() if "q·k of head" in name)


def test_a_masked_pair_says_so(stage: tuple[Any, Any]) -> None:
    stage[0].cursor.move(place="a", head=0, step=3, key=9)
    assert stage[1].page.pair.titleLabel.lines[0].endswith("(masked)")


def test_the_heading_says_from_what_a_map_is_computed(stage: tuple[Any, Any]) -> None:
    stage[0].cursor.move(place="a", head=0, step=3, key=2)
    assert stage[1].row.heading.startswith("a, head 0, computed from kept Q and K   ")


def test_without_a_cursor_it_is_the_last_query_and_its_largest_score(tmp_path: Path, qtbot: Any) -> None:
    with shown_panel(tmp_path, "attention", *parts(), place="a") as (_, panel):
        panel.which.setCurrentIndex(panel.which.findData(PAIR))
        most = int(scores()[0, -1].argmax())
        assert f"w11 [11] → w{most} [{most}]" in panel.page.pair.titleLabel.lines[0]


@pytest.mark.parametrize("reason", ["", "Queries and keys of a are not kept: the model computes its weights itself."])
def test_where_they_were_not_kept_it_says_what_to_do(tmp_path: Path, qtbot: Any, reason: str) -> None:
    refused = [Refusal("a:attention/queries", reason)] if reason else []
    with shown_panel(tmp_path, "attention", *parts(kept=False), *refused, place="a") as (_, panel):
        panel.which.setCurrentIndex(panel.which.findData(PAIR))
        said = " ".join(panel.page.pair.titleLabel.lines)
        assert said == (
            reason or "Queries and keys were not kept Choose q·k by dimension in Strip, above, to compute them"
        )
        assert not len(panel.page.pair.products) and "computed" not in panel.row.heading


@pytest.mark.parametrize("refused", [False, True])
def test_choosing_it_asks_for_them_once_they_can_be_kept(tmp_path: Path, qtbot: Any, refused: bool) -> None:
    why = [Refusal("a:attention/queries", "No product of queries and keys was seen.")] if refused else []
    with shown_panel(tmp_path, "attention", *parts(kept=False), *why, place="a") as (_, panel):
        asked: list[tuple[str, ...]] = []
        panel.wanted.connect(asked.append)
        panel.which.setCurrentIndex(panel.which.findData(PAIR))
        assert not asked  # a choice that a session brings back computes nothing
        panel.which.activated.emit(panel.which.currentIndex())
        assert asked == ([] if refused else [("attention/queries_and_keys",)])


def test_what_is_beside_a_map_is_listed_before_it_is_computed(tmp_path: Path, qtbot: Any) -> None:
    with shown_panel(tmp_path, "attention", *parts(), place="a") as (_, panel):
        asked: list[tuple[str, ...]] = []
        panel.wanted.connect(asked.append)
        for signal, key in {"attention/times_gradient": "attention/gradient", "sensitivity": AGAINST}.items():
            panel.options.option("beside", signal).trigger()
            assert asked.pop() == (key,) and panel.options.chosen("beside") == signal
        panel.options.option("beside", "").trigger()
        assert not asked and panel.page.count == 1


def test_why_a_map_cannot_be_beside_weights_is_said_when_it_is_chosen(tmp_path: Path, qtbot: Any) -> None:
    reasons = [
        Refusal("a:attention/distance", "There is no distance."), Refusal("layers:attention/rollout", "No layers."),
    ]  # fmt: skip
    with shown_panel(tmp_path, "attention", *parts(), *reasons, place="a") as (_, panel):
        asked: list[tuple[str, ...]] = []
        panel.wanted.connect(asked.append)
        action = panel.options.option("beside", "attention/rollout")
        assert action.text() == "rollout: not of this run"
        action.trigger()
        assert not asked and panel.page.count == 1
        assert panel._missing.text().startswith("Not shown: layers:attention/rollout: No layers.")


def test_of_two_runs_it_says_that_it_is_of_one(tmp_path: Path, qtbot: Any) -> None:
    twice = [part for part in parts() for _ in range(2) if not isinstance(part, Labels)]
    with shown_panel(tmp_path, "attention", *twice, place="a", difference=True) as (_, panel):
        panel.which.setCurrentIndex(panel.which.findData(PAIR))
        assert "not of the difference" in panel.page.pair.titleLabel.lines[0]


def test_weights_are_compared_with_what_is_beside_them(tmp_path: Path, qtbot: Any) -> None:
    """ρ from ranks counted pair by pair; masked keys have no point."""
    random = np.random.default_rng(1)
    weights = np.where(np.tri(T, dtype=bool), random.uniform(size=(2, T, T)), -np.inf).astype(np.float32)
    gradient = random.normal(size=(2, T, T)).astype(np.float32)
    gradient[:, 4:6] = np.nan
    dims, fields = ("head", "query", "key"), {"domains": KEYED}
    maps = [
        channel("a:attention", "attention", dims, weights, **fields),
        channel("a:attention/gradient", "attention_map", dims, gradient, scale="diverging", title="slope", **fields),
    ]
    with shown_panel(tmp_path, "attention", *maps, Labels("step", WORDS), place="a") as (stage, panel):
        assert panel.which.findData(COMPARED) < 0
        panel.options.option("beside", "attention/gradient").trigger()
        panel.which.setCurrentIndex(panel.which.findData(COMPARED))
        stage.cursor.move(place="a", head=1, step=8, key=3)
        points, said = panel.page.pair.points.getData(), panel.page.pair.titleLabel.lines[0]
        np.testing.assert_allclose(points, [weights[1, 8, :9], gradient[1, 8, :9]], rtol=1e-6)
        one, other = ([sum(b <= a for b in row) for a in row] for row in (points[0], abs(points[1])))
        rho = 1 - 6 * sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / (9 * (81 - 1))
        assert f"w8 [8], 9 keys: ρ = {rho:.2f}".replace("-", "−") in said and "size of slope" in said
        ticks = panel.page.pair.step_axis.tickValues(0.0, 0.14, 400)[0][1]
        assert len(ticks) > 1 and panel.page.pair.step_axis.tickStrings(ticks[:2], 1.0, 0.0)[1] == f"{ticks[1]:.4g}"
        stage.cursor.move(step=1)
        assert "no rank correlation" in panel.page.pair.titleLabel.lines[0]
        stage.cursor.move(step=4)
        assert panel.page.pair.titleLabel.lines == (
            "w4 [4]: slope is not known here", f"of {T - 2} queries it is; the nearest is w3 [3]",
        )  # fmt: skip
        panel.options.option("beside", "").trigger()
        assert panel.which.findData(COMPARED) < 0 and not panel.page.as_pair


def test_queries_that_were_not_written_are_not_known(tmp_path: Path, qtbot: Any) -> None:
    """Gradients of two queries of twelve: the nearest of them is named, and not one without numbers."""
    weights = np.full((1, T, T), 1 / T, np.float32)
    written = {2: np.linspace(1, 2, T), T - 1: np.linspace(3, 1, T)}
    dims, fields = ("head", "query", "key"), {"domains": KEYED}
    path = tmp_path / "a.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, label=""))
        described, values = channel("a:attention", "attention", dims, weights, **fields)
        writer.write(described)
        writer.write(Page(described.name, 0, (0, 0, 0), values))
        described, _ = channel("a:attention/gradient", "attention_map", dims, weights, scale="diverging", title="slope",
                               **fields)  # fmt: skip
        writer.write(described)
        for query, row in written.items():
            writer.write(Page(described.name, 0, (0, query, 0), row.astype(np.float32)[None, None]))
        writer.write(Labels("step", WORDS, -1))
        writer.write(RunStop("done"))
    with open_capture(path) as capture, closing(Stage(capture, (1200, 800), LIGHT)) as stage:
        panel: Any = stage.panel("attention", place="a")
        panel.options.option("beside", "attention/gradient").trigger()
        panel.which.setCurrentIndex(panel.which.findData(COMPARED))
        stage.cursor.move(place="a", head=0, step=5, key=3)
        assert panel.page.pair.titleLabel.lines == (
            "w5 [5]: slope is not known here", "of 2 queries it is; the nearest is w2 [2]",
        )  # fmt: skip
        stage.cursor.move(step=T - 1)
        np.testing.assert_allclose(panel.page.pair.points.getData()[1], written[T - 1], rtol=1e-6)
