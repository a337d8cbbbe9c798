"""Maps that do not fit are computed from kept queries and keys, against the softmax written out in float64."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import Tensor, nn
from torch.nn import functional as F

import inspector
from inspector import cli
from inspector.capture import Capture, compare, open_capture
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.quantities.attention import attention_maps

pytestmark = pytest.mark.usefixtures("one_thread")
STEPS, HEADS, WIDTH = 90, 4, 8
"""Long enough for queries and keys to be smaller than the map."""
POSITIONS = torch.arange(STEPS)
DISTANCE = POSITIONS[None, :] - POSITIONS[:, None]
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
Score = Callable[[Tensor, Tensor], Tensor]
Runs = tuple[Capture, dict[str, tuple[Tensor, Tensor, Tensor]]]


def causal(scores: Tensor) -> Tensor:
    return scores.masked_fill(DISTANCE > 0, -math.inf)


def rotated(x: Tensor) -> Tensor:
    """(…, t, d) with pairs of components turned by the position."""
    angle = POSITIONS[:, None].to(x.dtype) * 0.3 ** torch.arange(WIDTH // 2, dtype=x.dtype)
    even, odd, cos, sin = x[..., 0::2], x[..., 1::2], angle.cos(), angle.sin()
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def scattered() -> Tensor:
    """Which keys each query may attend to: no span, and other ones in each head."""
    found = (POSITIONS[None, None] * 7 + POSITIONS[None, :, None] * 3 + torch.arange(HEADS)[:, None, None]) % 5 < 3
    found[:, :, 0] = True
    return found


def learned() -> Tensor:
    """(head, distance bucket), as relative positions are learned."""
    return torch.sin(torch.arange(HEADS * (2 * STEPS - 1)).float()).view(HEADS, -1)


def dense() -> Tensor:
    """A bias that depends on query and key."""
    return torch.cos(torch.arange(STEPS * STEPS).float() * 1.7).view(STEPS, STEPS)


WAYS: dict[str, Score] = {
    "plain": lambda s, _: s,
    "causal": lambda s, _: causal(s),
    "window": lambda s, _: causal(s).masked_fill(DISTANCE < -9, -math.inf),
    "scattered": lambda s, _: s.masked_fill(~scattered(), -math.inf),
    "padding": lambda s, _: s.masked_fill(POSITIONS >= 70, -math.inf),
    "finite": lambda s, _: s.masked_fill(DISTANCE > 0, -math.inf),
    "slopes": lambda s, _: causal(s + SLOPES[:, None, None] * DISTANCE),
    "relative": lambda s, _: s + learned()[:, DISTANCE + STEPS - 1].to(s.dtype),
    "dense": lambda s, _: causal(s + dense().to(s.dtype)),
    "of_keys": lambda s, _: s + dense()[0].to(s.dtype),
    "grouped": lambda s, _: causal(s),
    "shared": lambda s, _: causal(s),
    "rotary": lambda s, _: causal(s),
    "scaled": lambda s, _: s,
    "large": lambda s, _: causal(s),
}  # fmt: skip
"""Scores of the way → those after its masks and biases, in float64."""


class Way(nn.Module):
    """One layer whose attention is computed by a kernel, in one way."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.groups = {"grouped": 2, "shared": 1}.get(way, HEADS)
        self.query = nn.Linear(6, HEADS * WIDTH)
        self.key, self.value = (nn.Linear(6, self.groups * WIDTH) for _ in range(2))
        self.out = nn.Linear(HEADS * WIDTH, 6)

    @property
    def scale(self) -> float:
        return {"scaled": 0.9, "large": 9.0}.get(self.way, WIDTH**-0.5)

    def heads(self, x: Tensor) -> tuple[Tensor, ...]:
        found = tuple(one(x).unflatten(-1, (-1, WIDTH)).transpose(1, 2) for one in (self.query, self.key, self.value))
        return (rotated(found[0]), rotated(found[1]), found[2]) if self.way == "rotary" else found

    def mask(self) -> Tensor | None:
        later = torch.zeros(STEPS, STEPS).masked_fill(DISTANCE > 0, -math.inf)
        return {
            "window": (DISTANCE <= 0) & (DISTANCE >= -9), "scattered": scattered()[None],
            "padding": (POSITIONS < 70)[None, None, None].expand(1, 1, STEPS, STEPS),
            "finite": torch.zeros(STEPS, STEPS).masked_fill(DISTANCE > 0, -1e9),
            "slopes": (SLOPES[:, None, None] * DISTANCE + later)[None],
            "relative": learned()[:, DISTANCE + STEPS - 1][None], "dense": dense() + later,
            "of_keys": dense()[:1],
        }.get(self.way)  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.heads(x)
        mask, causal = self.mask(), self.way in ("causal", "grouped", "shared", "rotary", "large")
        z = F.scaled_dot_product_attention(
            query, key, value, mask, is_causal=causal, scale=self.scale, enable_gqa=self.groups != HEADS
        )
        return x + self.out(z.transpose(1, 2).flatten(2))


class Ways(nn.Module):
    """A layer for each way."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({way: Way(way) for way in WAYS})

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers.values():
            x = layer(x)
        return x


def expected(model: Ways, x: Tensor) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
    """Way → (scaled queries, keys of each head, map), in float64."""
    double = Ways().double()
    double.load_state_dict({name: value.double() for name, value in model.state_dict().items()})
    found, x = {}, x.double()
    for way, one in double.layers.items():
        assert isinstance(one, Way)
        query, key, value = (part[0] for part in one.heads(x))
        query, key, value = query * one.scale, *(p.repeat_interleave(HEADS // len(p), 0) for p in (key, value))
        weights = WAYS[way](query @ key.mT, query).softmax(-1)
        found[way] = (query.detach(), key.detach(), weights.detach())
        x = x + one.out((weights @ value).transpose(0, 1).flatten(1)[None])
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept") / "c.inspect"


@pytest.fixture(scope="module")
def run(path: Path) -> Iterator[Runs]:
    torch.manual_seed(0)
    model, x = Ways(), torch.randn(1, STEPS, 6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention_maps, "BUDGET_BYTES", 700_000)
        capture = inspector.run(model, x[0].numpy(), only=("attention/maps",), out=path)
    with capture:
        yield capture, expected(model, x)


@pytest.mark.parametrize("way", WAYS)
def test_a_map_is_what_the_softmax_gives(run: Runs, way: str) -> None:
    capture, known = run
    name = f"layers.{way}:attention"
    channel = capture.channels[name]
    assert channel.computed == "queries and keys" and "computed from kept queries and keys" in channel.method
    got = capture.array(name)
    np.testing.assert_allclose(got, known[way][2].numpy(), rtol=2e-3, atol=2e-6)
    assert got.shape == (HEADS, STEPS, STEPS) and not capture.holes(name) and capture.known(name).all()
    part = (slice(1, 3), slice(40, 61), slice(3, 50))
    np.testing.assert_array_equal(capture.block(name, region=part), got[part])
    assert not capture.damage


def test_a_bias_by_distance_is_kept_as_one_and_heads_share_keys(run: Runs) -> None:
    capture, _ = run
    kept = {
        way: {n.split("/", 1)[1] for n in capture.channels if n.startswith(f"layers.{way}:attention/")} for way in WAYS
    }
    basic = {"queries", "keys", "allowed"}
    assert kept["causal"] == kept["rotary"] == kept["window"] == kept["padding"] == kept["finite"] == basic
    assert kept["slopes"] == kept["relative"] == basic | {"bias_by_distance"}
    assert kept["dense"] == kept["of_keys"] == basic | {"bias"}
    assert kept["scattered"] == basic | {"mask"}
    shapes = {way: capture.extent(f"layers.{way}:attention/keys") for way in ("plain", "grouped", "shared")}
    assert shapes == {"plain": (4, STEPS, WIDTH), "grouped": (2, STEPS, WIDTH), "shared": (1, STEPS, WIDTH)}
    assert capture.extent("layers.of_keys:attention/bias") == (1, 1, STEPS)


def test_sizes_are_told(run: Runs) -> None:
    told = next(log.text for log in run[0].logs if "attention maps" in log.text)
    assert "972 kB" in told and "at most 700 kB may be written" in told
    assert f"queries and keys of {len(WAYS)} calls are kept instead" in told


def test_a_map_that_is_not_what_the_run_had_is_not_shown(
    run: Runs, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here every key is moved by one when it is read."""
    shutil.copytree(path, tmp_path / "d.inspect")
    with open_capture(tmp_path / "d.inspect") as capture:
        block = Capture.block

        def moved(self: Capture, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> np.ndarray:
            found = block(self, name, frame, region)
            return np.roll(found, 1, axis=1) if name.endswith("plain:attention/keys") else found

        monkeypatch.setattr(Capture, "block", moved)
        name = "layers.plain:attention"
        got, checked = capture.array(name), [0, 30, 59, 89]
        assert np.isnan(np.delete(got, checked, axis=1)).all() and np.isfinite(got[:, checked]).all()
        assert capture.holes(name) and not capture.known(name).all()
        assert [one for one in capture.damaged if "differs from what the run had" in one and "plain" in one]
        assert np.isfinite(capture.array("layers.causal:attention")).all()


def test_a_computed_map_is_the_stored_one_to_the_last_digit(run: Runs) -> None:
    """And the comparison of the two runs is of nothing but that digit."""
    torch.manual_seed(0)
    model, x = Ways(), torch.randn(1, STEPS, 6)
    with inspector.run(model, x[0].numpy(), only=("attention/maps",)) as stored:
        compared = compare(stored, run[0])
        for way in WAYS:
            name = f"layers.{way}:attention"
            assert stored.channels[name].computed == ""
            least = 2.0**-10 * stored.array(name).astype(np.float64) + 6e-8
            difference = run[0].array(name).astype(np.float64) - stored.array(name)
            assert (np.abs(difference) <= least).all()
            np.testing.assert_allclose(compared.array(name), difference, atol=1e-7)


class Crossing(nn.Module):
    """Attention to another sequence, whose first query may attend to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.Parameter(torch.randn(1, 2, 130, 3))

    def mask(self) -> Tensor:
        return POSITIONS[:, None] * 2 > torch.arange(130)

    def forward(self, x: Tensor) -> Tensor:
        h = x.unflatten(-1, (2, 3)).transpose(1, 2)
        return F.scaled_dot_product_attention(h, self.memory, self.memory, self.mask()).transpose(1, 2).flatten(2)


def test_a_map_of_another_sequence_with_a_query_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_maps, "BUDGET_BYTES", 20_000)
    torch.manual_seed(2)
    model, x = Crossing(), torch.randn(1, STEPS, 6)
    with inspector.run(model, x[0].numpy(), only=("attention/maps",)) as capture:
        got, channel = capture.array("model:attention"), capture.channels["model:attention"]
        assert not capture.damage and channel.domain("key") == "source step"
    query = x[0].double().unflatten(-1, (2, 3)).transpose(0, 1)
    scores = query @ model.memory[0].detach().double().mT / math.sqrt(3)
    expected_map = scores.masked_fill(~model.mask(), -math.inf).softmax(-1)
    assert np.isnan(got[:, 0]).all() and channel.computed
    np.testing.assert_allclose(got[:, 1:], expected_map[:, 1:], rtol=2e-3, atol=2e-6)


class Looking(nn.Module):
    """Causal self-attention of one head, one number of which is given."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        at = torch.zeros_like(x, dtype=torch.bool)
        at[:, 50, 2] = True
        h = x.masked_fill(at, self.value)[:, None]
        return F.scaled_dot_product_attention(h, h, h, is_causal=True)[:, 0]


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e20])
def test_numbers_that_are_not_finite_are_those_of_the_stored_map(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(STEPS, 6)).astype(np.float32)
    maps = []
    for budget in (10_000, 1 << 30):
        monkeypatch.setattr(attention_maps, "BUDGET_BYTES", budget)
        with inspector.run(Looking(value), x, only=("attention/maps",)) as capture:
            maps.append(capture.array("model:attention"))
            assert bool(capture.channels["model:attention"].computed) is (budget == 10_000)
    rows, keys = np.tril_indices(STEPS)  # of a row that is NaN, masked keys are NaN or 0
    np.testing.assert_allclose(*(one[0, rows, keys] for one in maps), rtol=2e-3, atol=1e-6)
    assert np.isnan(maps[0][0, 50, :51]).all() and np.isfinite(maps[0][0, :50]).all()


class Named(nn.Module):
    """Self-attention of two heads whose layers are called by what they are."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads = 2
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(6, 6) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        parts = (one(x).unflatten(-1, (2, 3)).transpose(1, 2) for one in (self.q_proj, self.k_proj, self.v_proj))
        return self.o_proj(F.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("fits", [True, False])
def test_before_the_run_sizes_are_told_where_maps_will_not_fit(fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_maps, "BUDGET_BYTES", 32_400 if fits else 32_399)
    subject = Subject(Named(), kind="vectors", width=6)
    said = attention_maps.told(subject, Batch(torch.zeros(1, STEPS, 6), torch.tensor([STEPS])))
    assert bool(said) is not fits
    if not fits:
        assert "2 heads over 90 steps would take about 32.4 kB" in said and "about 4.32 kB" in said
        with inspector.run(subject, np.zeros((STEPS, 6), np.float32), only=("attention/maps",)) as capture:
            texts = [log.text for log in capture.logs]
        assert said in texts, "told by a run too"


class Dropping(nn.Module):
    """Self-attention in training mode."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        h = x[:, None]
        return F.scaled_dot_product_attention(h, h, h, dropout_p=self.dropout)[:, 0]


class Written(nn.Module):
    """Attention that the model computes itself."""

    def forward(self, x: Tensor) -> Tensor:
        return (x @ x.mT).softmax(-1) @ x


@pytest.mark.parametrize(("model", "reason"), [
    (Dropping(0.5), "dropout was applied to its weights"), (Written(), "the model computes its weights itself"),
])  # fmt: skip
def test_what_cannot_be_computed_again_is_refused_with_the_reason(
    model: nn.Module, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_maps, "BUDGET_BYTES", 10_000)
    with inspector.run(model, torch.randn(STEPS, 6).numpy(), only=("attention/maps",)) as capture:
        said = {one.channel: one.reason for one in capture.refusals}
    refused = next(text for name, text in said.items() if name.endswith(":attention"))
    assert "would take 16.2 kB and at most 10 kB" in refused and reason in refused
    assert not [name for name in capture.channels if name.endswith(":attention")]


class Biased(nn.Module):
    """One head with a bias for each pair."""

    def forward(self, x: Tensor) -> Tensor:
        h = x[:, None]
        return F.scaled_dot_product_attention(h, h, h, dense()[None, None])[:, 0]


def test_a_bias_that_is_as_large_as_the_map_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_maps, "BUDGET_BYTES", 10_000)
    with inspector.run(Biased(), torch.randn(STEPS, 6).numpy(), only=("attention/maps",)) as capture:
        reasons = [one.reason for one in capture.refusals]
    assert any("a bias of 1 × 90 × 90 numbers, 32.4 kB, that does not depend on key − query" in one for one in reasons)


def test_beside_maps_that_fit_queries_and_keys_are_kept_on_request() -> None:
    torch.manual_seed(1)
    model, x = Way("rotary"), torch.randn(1, STEPS, 6)
    with inspector.run(model, x[0].numpy(), only=("attention/maps", "attention/queries_and_keys")) as capture:
        query, key, _ = (part[0].detach() for part in model.heads(x))
        assert capture.channels["model:attention"].computed == ""
        np.testing.assert_allclose(capture.array("model:attention/queries"), query * WIDTH**-0.5, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(capture.array("model:attention/keys"), key, rtol=1e-5, atol=1e-6)


def test_the_command_line_exports_a_computed_map(run: Runs, path: Path, tmp_path: Path) -> None:
    target = tmp_path / "map.npy"
    result = CliRunner().invoke(
        cli.cli, ["export", str(path), "--channel", "layers.plain:attention", "--to", str(target)]
    )
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(np.load(target), run[0].array("layers.plain:attention"))


def test_queries_that_are_damaged_leave_the_map_unknown(run: Runs, path: Path, tmp_path: Path) -> None:
    """One byte of the queries has changed."""
    whole = run[0].array("layers.plain:attention/queries")[0].tobytes()
    damaged = tmp_path / "e.inspect"
    shutil.copytree(path, damaged)
    pages = damaged / "pages-0000.bin"
    content = bytearray(pages.read_bytes())
    content[content.index(whole) + 5] ^= 64
    pages.write_bytes(content)
    with open_capture(damaged) as capture:
        capture.verify()
        assert capture.holes("layers.plain:attention")
        assert np.isnan(capture.block("layers.plain:attention", region=(slice(0, 1), slice(5, 6)))).all()
        assert any("that were kept of layers.plain:attention are damaged" in one for one in capture.damaged)
        assert np.isfinite(capture.array("layers.scaled:attention")).all()
