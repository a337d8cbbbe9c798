"""Maps and statistics of attention against loops in float64, the capture they go into, and what is refused."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from listed import Listed
from torch import Tensor, nn

from inspector.capture import Writer, open_capture
from inspector.engine.attention.rows import FORBIDDEN, MASKED, Rows, allowed, forbidding, rows
from inspector.engine.cells.check import Check
from inspector.engine.errors import CancelledError, Unsupported
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.quantities.attention import attention_maps
from inspector.engine.quantities.attention.attention_maps import budget, size
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Channel, Frame, Log, Page, Refusal, RunStart, RunStop, Scalar

DEFAULT = (key for key, entry in QUANTITIES.items() if key.startswith("attention/") and entry.default)
KEYS = sorted(DEFAULT, key=lambda key: QUANTITIES[key].order)


pytestmark = pytest.mark.usefixtures("one_thread")


def attention(q: int, k: int, a: int = 2, d: int = 4, dtype: torch.dtype = torch.float64, **more: Any) -> Attention:
    query, key = torch.randn(1, a, q, d, dtype=dtype), torch.randn(1, a, k, d, dtype=dtype)
    settings_ = {"keys_from": "step" if q == k else "source step", "kept": 0, **more}
    return Attention("layer", "Self", query, key, d**-0.5, **settings_)


def run(*attentions: Attention, keys: list[str] = KEYS, sink: Any = None) -> Any:
    steps = rows_of(attentions[0]).queries
    trace = Trace(Subject(nn.Identity()), Batch(torch.zeros(1, steps, 1), torch.tensor([steps])))
    trace.attentions.extend(attentions)
    sink = Listed() if sink is None else sink
    for key in keys:
        QUANTITIES[key].run(trace, Emitter(sink))
    return sink


def rows_of(one: Attention) -> Rows:
    return Rows(one, 0)


def weights_by_loops(one: Attention, may: Tensor) -> Tensor:
    """(a, q, k) in float64, NaN where a row may look at nothing."""
    scores = (one.query[0].double() @ one.key[0].double().mT) * one.scale
    if one.mask is not None and one.mask.dtype != torch.bool:
        scores = scores + one.mask[0].double()
    return torch.softmax(scores.masked_fill(~may, -math.inf), -1)


def statistics_by_loops(weights: Tensor, may: Tensor) -> dict[str, Tensor]:
    a, q = weights.shape[:2]
    names = ("entropy", "entropy_normalised", "distance", "sink_mass", "sink_mass_4", "largest_weight")
    out = {name: torch.full((a, q), math.nan, dtype=torch.float64) for name in names}
    for h in range(a):
        for i in range(q):
            row = [float(w) for w in weights[h, i]]
            count = int(may[h, i].sum())
            if count == 0:
                continue
            entropy = -sum(w * math.log(w) for w in row if w > 0)
            out["entropy"][h, i] = entropy
            if count > 1:
                out["entropy_normalised"][h, i] = entropy / math.log(count)
            out["distance"][h, i] = sum(w * abs(i - j) for j, w in enumerate(row))
            out["sink_mass"][h, i] = row[0]
            out["sink_mass_4"][h, i] = sum(row[:4])
            out["largest_weight"][h, i] = max(row)
    return out


def test_weights_that_do_not_sum_to_one_are_shown_as_they_are() -> None:
    """Sigmoid attention, whose first four weights may sum to 2, and whose entropy may exceed that of an even spread."""
    given = torch.linspace(0.3, 0.7, 2 * 5 * 6, dtype=torch.float64).reshape(1, 2, 5, 6)
    sink = run(attention(5, 6, weights=given))
    for name, expected in statistics_by_loops(given[0], torch.ones(2, 5, 6, dtype=torch.bool)).items():
        if name != "distance":
            np.testing.assert_allclose(sink.array(f"layer:attention/{name}"), expected, rtol=1e-5, err_msg=name)
    assert sink.array("layer:attention/sink_mass_4").max() > 2
    assert sink.array("layer:attention/entropy_normalised").max() > 1


def test_the_entropy_of_weights_below_zero_is_not_known() -> None:
    """The difference of two maps: the first row has a weight below 0, the second none."""
    given = torch.tensor([[[[0.9, -0.2], [0.4, 0.3]]]], dtype=torch.float64)
    sink = run(attention(2, 2, a=1, weights=given))
    for name in ("entropy", "entropy_normalised"):
        (row,) = sink.array(f"layer:attention/{name}")
        assert np.isnan(row[0]) and row[1] > 0
    np.testing.assert_allclose(sink.array("layer:attention/sink_mass"), [[0.9, 0.4]], rtol=1e-6)


@settings(deadline=None, max_examples=30)
@given(
    q=st.integers(1, 9), k=st.integers(1, 9), a=st.integers(1, 3), seed=st.integers(0, 99),
    scale=st.sampled_from([1, 60]), kind=st.sampled_from(["none", "causal", "bool", "additive", "minus ten thousand"]),
)  # fmt: skip
def test_statistics_against_loops(q: int, k: int, a: int, seed: int, scale: float, kind: str) -> None:
    torch.manual_seed(seed)
    one = attention(q, k, a)
    one.query *= scale
    may = torch.ones(a, q, k, dtype=torch.bool)
    if kind == "causal":
        one.causal = True
        may = may.tril()
    elif kind == "bool":
        one.mask = torch.rand(1, a, q, k) > 0.4
        may = one.mask[0]
    elif kind == "additive":
        one.mask = torch.randn(1, 1, q, k, dtype=torch.float64)
    elif kind == "minus ten thousand":
        may = (torch.rand(1, q, k) > 0.3).expand(a, q, k)
        one.mask = torch.zeros(1, 1, q, k, dtype=torch.float64).masked_fill(~may[:1][None], -10_000.0)
    sink = run(one)
    weights = weights_by_loops(one, may)
    torch.testing.assert_close(rows(one, 0, 0, q), weights, equal_nan=True, atol=1e-12, rtol=1e-9)
    np.testing.assert_allclose(sink.array("layer:attention"), weights.half().numpy(), atol=1e-3)
    for name, expected in statistics_by_loops(weights, may).items():
        if name == "distance" and q != k:
            assert any("share no known positions" in record.reason for record in sink.of(Refusal))
            continue
        got = sink.array(f"layer:attention/{name}")
        np.testing.assert_allclose(got, expected.numpy(), atol=2e-6, rtol=1e-5, err_msg=name)
    first, last = sink.array("layer:attention/allowed")
    for i in range(q):
        open_ = may.any(0)[i].nonzero().flatten().tolist()
        assert (first[i], last[i]) == ((open_[0], open_[-1]) if open_ else (-1, -1))


def test_causal_entropy_of_even_attention_is_one_in_every_row_but_the_first() -> None:
    one = attention(6, 6, causal=True)
    one.query.zero_()
    got = run(one).array("layer:attention/entropy_normalised")
    assert np.isnan(got[:, 0]).all()
    np.testing.assert_allclose(got[:, 1:], 1.0, atol=1e-6)


def test_rows_without_keys_are_nan_and_counted() -> None:
    mask = torch.ones(1, 1, 5, 5, dtype=torch.bool)
    mask[..., 2, :] = False
    one = attention(5, 5, mask=mask)
    one.query[0, 1, 4] = math.nan
    sink = run(one)
    weights = sink.array("layer:attention")
    assert np.isnan(weights[:, 2]).all() and np.isnan(weights[1, 4]).all() and np.isnan(weights).sum() == 15
    counted = {scalar.name: scalar.value for scalar in sink.of(Scalar) if "/rows_" in scalar.name}
    assert counted == {"layer:attention/rows_without_keys": 2, "layer:attention/rows_not_finite": 1}
    assert sum("shown as NaN" in log.text for log in sink.of(Log)) == 2


def test_blocks_do_not_change_the_numbers() -> None:
    one = attention(300, 300, a=5, d=8, dtype=torch.float32, causal=True)
    walker = rows_of(one)
    seen = torch.zeros(5, 300)
    for block_bytes in (1 << 12, 1 << 16, 1 << 22):
        seen.zero_()
        for heads, q0, q1 in walker.blocks(block_bytes):
            block = walker.block(q0, q1, heads)
            seen[heads, q0:q1] += 1
            torch.testing.assert_close(block.full(), rows(one, 0, q0, q1, heads))
            assert block.weights.shape[-1] == q1  # the upper half is not computed
        assert bool((seen == 1).all())


def test_forbidden_score_has_no_weight_in_single_precision() -> None:
    assert float(torch.softmax(torch.tensor([FORBIDDEN, -300.0, 0.0]), 0)[0]) == 0.0


def test_weights_of_the_model_itself_are_used_as_they_are() -> None:
    weights = torch.rand(1, 2, 4, 6, dtype=torch.float64).softmax(-1)
    weights[..., 0] = 0
    weights /= weights.sum(-1, keepdim=True)
    nothing = torch.zeros(1, 2, 0, 0)
    one = Attention("layer", "Own", nothing, nothing, 1.0, weights=weights, kept=0, keys_from="source step")
    sink = run(one)
    np.testing.assert_allclose(sink.array("layer:attention"), weights[0].half().numpy())
    may = (weights != 0)[0]
    for name, expected in statistics_by_loops(weights[0], may).items():
        if name != "distance":
            np.testing.assert_allclose(sink.array(f"layer:attention/{name}"), expected.numpy(), atol=1e-6)


def test_another_sample_than_the_kept_one_is_refused() -> None:
    with pytest.raises(Unsupported, match="recorded for sequence 0"):
        rows(attention(3, 3), 1, 0, 3)


def test_a_failed_check_refuses_map_and_statistics() -> None:
    sink = run(attention(4, 4, check=Check(0.5, 1e-6)))
    assert not sink.of(Channel) and len(sink.of(Refusal)) == len(KEYS)
    assert all("differs from what the Self returned by 0.5" in record.reason for record in sink.of(Refusal))


def test_maps_over_the_budget_are_refused_with_their_size_and_statistics_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention_maps, "BUDGET_BYTES", 20_000)
    sink = run(attention(64, 64), attention(64, 64))
    reasons = [record.reason for record in sink.of(Refusal) if record.channel == "layer:attention"]
    assert reasons and "32.8 kB" in reasons[0] and "20 kB" in reasons[0] and "shorter sequence" in reasons[0]
    names = {channel.name for channel in sink.of(Channel)}
    assert "layer:attention" not in names and "layer:attention/entropy" in names


def test_the_size_is_told_before_the_first_page() -> None:
    sink = run(attention(64, 64))
    told = next(n for n, record in enumerate(sink) if isinstance(record, Log) and "16.4 kB" in record.text)
    assert told < next(n for n, record in enumerate(sink) if isinstance(record, Page))


def test_cancelling_stops_between_pages() -> None:
    one = attention(600, 600, dtype=torch.float32)
    trace = Trace(Subject(nn.Identity()), Batch(torch.zeros(1, 600, 1), torch.tensor([600])), attentions=[one])
    sink = Listed()
    with pytest.raises(CancelledError):
        QUANTITIES["attention/maps"].run(trace, Emitter(sink, cancelled=lambda: len(sink.of(Page)) >= 1))
    assert len(sink.of(Page)) == 1


def test_statistics_alone_and_maps_alone_agree() -> None:
    one = attention(20, 20, causal=True)
    together = run(one).array("layer:attention/entropy")
    alone = run(one, keys=["attention/entropy"])
    assert not any(record.name == "layer:attention" for record in alone.of(Channel))
    np.testing.assert_array_equal(alone.array("layer:attention/entropy"), together)


def test_the_capture_gives_the_map_back_with_zeros_above_the_diagonal(tmp_path: Path) -> None:
    one = attention(150, 150, a=12, d=8, dtype=torch.float32, causal=True)
    with Writer(tmp_path / "c.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        run(one, sink=writer)
        writer.write(RunStop("done"))
    capture = open_capture(tmp_path / "c.inspect")
    got = capture.array("layer:attention")
    assert got.shape == (12, 150, 150) and got.dtype == np.float16
    np.testing.assert_array_equal(got, rows(one, 0, 0, 150).half().numpy())
    assert capture.channels["layer:attention"].domain("key") == "step"
    capture.close()


# --- large logits, finite masks, and what half precision keeps


def scored(logits: Tensor, mask: Tensor | None = None, dtype: torch.dtype = torch.float32) -> Attention:
    """An Attention of one head whose logits are exactly these (q, k): each query is one hot at its own row of keys."""
    q, k = logits.shape
    query, key = torch.eye(q, dtype=dtype)[None, None], logits.T[None, None].to(dtype)
    return Attention("layer", "Self", query, key, 1.0, kept=0, mask=mask, keys_from="step" if q == k else "source step")


def entropy_in_double(scores: Tensor) -> Tensor:
    """−Σ_k A ln A of logits (q, k), those of forbidden keys −∞, in float64."""
    logs = scores.double().log_softmax(-1)
    return -torch.where(logs.exp() > 0, logs.exp() * logs, 0.0).sum(-1)


@pytest.mark.parametrize("size", [1.0, 63.0, 65.0, 1e4, -1e4, 1e6])
@pytest.mark.parametrize("masked", ["none", "boolean", "minus infinity", "-1e9", "smallest float", "slope"])
def test_entropy_in_single_precision_at_large_logits(size: float, masked: str) -> None:
    """Logits that lie close together and far from 0: their common part must not cost the digits of the entropy."""
    torch.manual_seed(1)
    logits = (size + torch.randn(6, 40)).float()
    may = torch.rand(6, 40) > 0.3
    may[:, 0] = True
    may |= torch.tensor(masked == "none")
    lowest = {"-1e9": -1e9, "smallest float": torch.finfo(torch.float32).min}.get(masked, -math.inf)
    slope = -0.25 * torch.arange(40.0).expand(6, 40) if masked == "slope" else torch.zeros(6, 40)
    bias = torch.where(may, slope, lowest)
    masks = {"none": None, "boolean": may[None, None]}
    one = scored(logits, masks.get(masked, bias[None, None]))
    expected = entropy_in_double((logits + slope).masked_fill(~may, -math.inf))
    np.testing.assert_allclose(rows_of(one).block(0, 6).entropy[0].double(), expected, atol=2e-6)
    normalised = run(one).array("layer:attention/entropy_normalised")[0]
    np.testing.assert_allclose(normalised, expected / may.sum(-1).double().log(), atol=2e-6)


def test_entropy_of_rows_that_are_nearly_or_wholly_on_one_key() -> None:
    for gap in (0.0, 1.0, 10.0, 15.0, 30.0, 1e4):
        logits = torch.full((1, 5), 1e4)
        logits[0, 0] += gap
        got = float(rows_of(scored(logits)).block(0, 1).entropy)
        assert got >= 0 and got == pytest.approx(float(entropy_in_double(logits)), abs=3e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_finite_mask_forbids_only_what_it_really_forbids(dtype: torch.dtype) -> None:
    """A mask of −10⁴ on a logit of 3·10⁴ leaves that key all the weight, in the model and here."""
    logits = torch.tensor([[3e4, 0.0, 1.0], [0.0, 1.0, 2.0]], dtype=dtype)
    mask = torch.tensor([[-1e4, 0.0, 0.0], [-1e4, 0.0, 0.0]], dtype=dtype)
    weights = rows(scored(logits, mask[None, None], dtype), 0, 0, 2)[0]
    torch.testing.assert_close(weights, torch.softmax(logits + mask, -1))
    assert weights[0].tolist() == [1.0, 0.0, 0.0]
    small = scored(logits / 1e4, mask[None, None], dtype)
    assert rows(small, 0, 0, 2)[0][:, 0].tolist() == [0.0, 0.0]
    assert rows_of(small).block(0, 2).count.tolist() == [[2, 2]]


def test_where_a_finite_mask_begins_to_forbid() -> None:
    query, key = torch.tensor([[[[3.0, 4.0]]]]), torch.tensor([[[[600.0, 800.0]]]])  # norms 5 and 1000
    assert forbidding(query, key, 0.1) == MASKED
    assert forbidding(query, key, 1.0) == -10_750.0 == forbidding(query, key, -1.0)
    assert forbidding(query * torch.nan, key, 1.0) == MASKED == forbidding(query[..., :0, :], key, 1.0)
    assert forbidding(query.half(), (60 * key).half(), 1.0) == pytest.approx(-600_750, rel=1e-3)


def test_half_precision_keeps_rows_that_sum_to_one_and_drops_what_is_tiny() -> None:
    """Rounding to float16 is relative (2⁻¹¹) down to 6·10⁻⁵, then absolute (3·10⁻⁸), and below that nothing is left."""
    torch.manual_seed(2)
    n = 500
    logits = torch.randn(n, n) * torch.linspace(0, 12, n)[:, None]
    sink = run(scored(logits))
    stored = sink.array("layer:attention")[0].astype(np.float64)
    exact = torch.softmax(logits.double(), -1).numpy()
    np.testing.assert_allclose(stored, exact, rtol=2**-11 + 1e-5, atol=2**-25 * 1.01)
    np.testing.assert_allclose(stored.sum(-1), 1.0, atol=2**-11 + n * 2**-25)
    assert ((exact < 2**-25 * 0.99) <= (stored == 0)).all() and (stored == 0).any()
    largest = sink.array("layer:attention/largest_weight")[0]
    np.testing.assert_allclose(stored.max(-1), largest, rtol=2**-11)
    told = next(record.method for record in sink.of(Channel) if record.name == "layer:attention")
    assert told == "exact, stored as float16: weights below 3e-8 become 0"


# --- what is told, what is counted, what is refused


def test_what_each_channel_says_of_itself() -> None:
    sink = run(attention(5, 5))
    channels = {record.name.removeprefix("layer:attention").removeprefix("/"): record for record in sink.of(Channel)}
    told = {name: (one.kind, one.unit, one.limits, one.dtype) for name, one in channels.items()}
    share = ("attention_statistic", "1", (0.0, 1.0), "float32")
    assert told == {
        "": ("attention", "1", (0.0, 1.0), "float16"),
        "allowed": ("attention", "1", None, "int32"),
        "entropy": ("attention_statistic", "nat", None, "float32"),
        "entropy_normalised": share,
        "distance": ("attention_statistic", "step", None, "float32"),
        "sink_mass": share,
        "sink_mass_4": share,
        "largest_weight": share,
        "largest_logit": ("attention_statistic", "1", None, "float32"),
    }
    assert channels[""].fill == 0.0 and channels[""].dims == ("head", "query", "key")
    assert channels["allowed"].labels == {"statistic": ("first", "last")}
    assert channels["allowed"].value_domain == "step" == channels[""].domain("query")
    for name in ("entropy", "entropy_normalised", "distance", "sink_mass", "sink_mass_4", "largest_weight"):
        assert channels[name].dims == ("head", "query") and channels[name].module == "Self"


def test_statistics_of_cross_attention_name_both_sequences() -> None:
    sink = run(attention(3, 6, queries_from="position"))
    maps = next(record for record in sink.of(Channel) if record.name == "layer:attention")
    entropy = next(record for record in sink.of(Channel) if record.name == "layer:attention/entropy")
    assert dict(maps.domains) == {"query": "position", "key": "source step"}
    assert dict(entropy.domains) == {"query": "position"}


def test_rows_without_keys_are_counted_head_by_head() -> None:
    mask = torch.ones(1, 2, 5, 5, dtype=torch.bool)
    mask[0, 1, 2:4] = False
    sink = run(attention(5, 5, mask=mask))
    counted = {scalar.name: scalar.value for scalar in sink.of(Scalar) if "/rows_" in scalar.name}
    assert counted == {"layer:attention/rows_without_keys": 2}
    assert any("2 of 10 attention rows may attend to no key" in log.text for log in sink.of(Log))


def test_rows_without_keys_and_rows_that_are_not_finite_are_counted_apart() -> None:
    mask = torch.ones(1, 1, 5, 5, dtype=torch.bool)  # the same for both heads
    mask[0, 0, 2:4] = False
    mask[0, 0, 1, 1:] = False  # one key is not none
    one = attention(5, 5, mask=mask)
    one.query[0, 1, 4] = math.nan
    sink = run(one)
    assert {scalar.name: scalar.value for scalar in sink.of(Scalar) if "/rows_" in scalar.name} == {
        "layer:attention/rows_without_keys": 4,
        "layer:attention/rows_not_finite": 1,
    }


def test_maps_take_half_of_the_free_disk_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Listed()
    sink.path = tmp_path / "not" / "there" / "yet.inspect"  # type: ignore[attr-defined]
    asked: list[Path] = []

    def usage(path: Path) -> Any:
        asked.append(path)
        return shutil._ntuple_diskusage(10_000, 9_000, 1_000)  # type: ignore[attr-defined]

    monkeypatch.setattr(shutil, "disk_usage", usage)
    assert budget(Emitter(sink)) == 500 and asked == [tmp_path]
    assert budget(Emitter(Listed())) == 8 << 30, "no folder, no disk"
    monkeypatch.setattr(attention_maps, "BUDGET_BYTES", 300)
    assert budget(Emitter(sink)) == 300


def test_a_size_in_words() -> None:
    words = {999: "999 bytes", 1000: "1 kB", 302_000_000: "302 MB", 10**9: "1 GB", 2_500_000_000_000: "2.5 TB"}
    assert {count: size(count) for count in words} == words
    assert size(10**6 - 1) == size(10**6) == "1 MB" and size(10**12) == "1 TB" and size(999_400) == "999 kB"


def test_an_attention_that_holds_the_whole_batch_gives_each_sample_its_rows() -> None:
    """kept=None: tensors of all samples; a mask of one entry is everybody's, one of b entries each sample's own."""
    torch.manual_seed(3)
    query, key = torch.randn(3, 2, 4, 5), torch.randn(3, 2, 6, 5)
    common, own = torch.rand(1, 1, 4, 6) > 0.4, torch.rand(3, 2, 4, 6) > 0.4
    common[..., 0], own[..., 0] = True, True
    for mask in (None, common, own, common[0, 0]):
        one = Attention("layer", "Self", query, key, 0.5, mask=mask)
        for sample in range(3):
            may = torch.ones(3, 2, 4, 6, dtype=torch.bool) if mask is None else mask.expand(3, 2, 4, 6)
            scores = (query[sample] @ key[sample].mT * 0.5).masked_fill(~may[sample], -math.inf)
            torch.testing.assert_close(rows(one, sample, 0, 4), torch.softmax(scores, -1))
            torch.testing.assert_close(rows(one, sample, 1, 3, slice(1, 2)), torch.softmax(scores, -1)[1:2, 1:3])
            assert torch.equal(allowed(one, sample, 0, 4).expand(2, 4, 6), may[sample])


@pytest.mark.parametrize(
    ("q", "k", "a", "size"), [(100, 100, 4, 40_000), (40, 1000, 5, 128_000), (300, 20, 3, 1 << 22)]
)
def test_the_walk_covers_every_row_of_every_head_once_in_blocks_of_a_size(q: int, k: int, a: int, size: int) -> None:
    seen = np.zeros((a, q), int)
    last = 0
    for heads, q0, q1 in rows_of(attention(q, k, a=a, dtype=torch.float32)).blocks(size):
        seen[heads, q0:q1] += 1
        assert (heads.stop - heads.start) * (q1 - q0) * k * 4 <= size and q1 - q0 <= max(128, size // (4 * k * a))
        assert q0 >= last, "all heads grow at the same pace"
        last = q0
    assert (seen == 1).all()


def test_however_long_a_row_is_sixteen_are_taken_together() -> None:
    assert list(rows_of(attention(3, 7, a=2)).blocks(1)) == [(slice(0, 1), 0, 3), (slice(1, 2), 0, 3)]
