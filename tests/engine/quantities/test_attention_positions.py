"""Encodings of positions, scores by distance and rotary frequencies against loops in float64, however they are made."""

from __future__ import annotations

import math

import attended_models as models
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as attend

from inspector.engine.model.subject import Batch

pytestmark = pytest.mark.usefixtures("one_thread")
STEPS, WIDTH, HEADS, V = 7, 12, 2, 11


def given() -> Batch:
    ids = torch.randint(0, V, (2, STEPS), generator=torch.Generator().manual_seed(3))
    return Batch(ids, torch.tensor([STEPS, STEPS - 2]))


def sines(count: int, width: int) -> Tensor:
    """By a loop."""
    out = torch.zeros(count, width)
    for i in range(count):
        for j in range(0, width, 2):
            rate = 10000 ** (-j / width)
            out[i, j], out[i, j + 1] = math.sin(i * rate), math.cos(i * rate)
    return out


class One(nn.Module):
    """One layer of causal attention over what `stream` makes of the tokens; queries and keys as `turned` makes them."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens = nn.Embedding(V, WIDTH)
        self.q, self.k, self.v = (nn.Linear(width, WIDTH) for _ in range(3))
        self.more()

    def more(self) -> None:
        """What a kind of positions needs."""

    def stream(self, ids: Tensor) -> Tensor:
        out: Tensor = self.tokens(ids)
        return out

    def turned(self, x: Tensor) -> Tensor:
        return x

    def bias(self, steps: int) -> Tensor | None:
        return None

    def forward(self, ids: Tensor) -> Tensor:
        x = self.stream(ids)
        q, k, v = (one(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in (self.q, self.k, self.v))
        bias = self.bias(ids.shape[1])
        out = attend(self.turned(q), self.turned(k), v, attn_mask=bias, is_causal=bias is None)
        return out.transpose(1, 2).flatten(2)


class Sinusoidal(One):
    def more(self) -> None:
        self.register_buffer("table", sines(20, WIDTH)[None])

    def stream(self, ids: Tensor) -> Tensor:
        out: Tensor = self.tokens(ids) * WIDTH**0.5
        return out + self.table[:, : ids.shape[1]]


class Shifted(One):
    """As OPT and RoBERTa: position 0 is row 2 of the table."""

    def more(self) -> None:
        self.places = nn.Embedding(20, WIDTH)

    def stream(self, ids: Tensor) -> Tensor:
        x: Tensor = self.tokens(ids)
        x += self.places(torch.arange(ids.shape[1]) + 2)
        return x


class WithSegments(One):
    """As BERT: what is the same at every step is added before the positions are."""

    def more(self) -> None:
        self.segments, self.places = nn.Embedding(2, WIDTH), nn.Embedding(20, WIDTH)

    def stream(self, ids: Tensor) -> Tensor:
        x: Tensor = self.tokens(ids) + self.segments(torch.zeros_like(ids))
        return torch.add(x, self.places.weight[: ids.shape[1]])


class Beside(One):
    def __init__(self) -> None:
        super().__init__(WIDTH + 6)

    def more(self) -> None:
        self.places = nn.Parameter(torch.randn(20, 6))

    def stream(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        return torch.cat([x, self.places[: ids.shape[1]].expand(len(ids), -1, -1)], dim=-1)


class OnTheFly(One):
    """A formula of its own in forward: no table."""

    def stream(self, ids: Tensor) -> Tensor:
        steps = torch.arange(ids.shape[1], dtype=torch.float32)
        made: Tensor = self.tokens(ids)
        return made + torch.outer(steps / 5, torch.linspace(-1, 1, WIDTH)).expand(len(ids), -1, -1)


class TimeMajor(One):
    def more(self) -> None:
        self.places = nn.Parameter(torch.randn(20, 1, WIDTH))

    def stream(self, ids: Tensor) -> Tensor:
        x: Tensor = self.tokens(ids.T) + self.places[: ids.shape[1]]
        return x.transpose(0, 1)


class Biased(One):
    """As ALiBi: −m·(i − j) by head."""

    def bias(self, steps: int) -> Tensor | None:
        away = torch.arange(steps)[:, None] - torch.arange(steps)
        slopes = torch.tensor([0.5, 0.125])[:, None, None]
        return torch.where(away < 0, -torch.inf, -slopes * away)


class Rotary(One):
    """Pairs of two halves of the first `part` components, as Llama and NeoX have them, or of neighbours."""

    part, neighbours = WIDTH // HEADS, False

    def turned(self, x: Tensor) -> Tensor:
        half = self.part // 2
        angles = torch.outer(torch.arange(x.shape[2]).float(), 100.0 ** (-torch.arange(half) / half))
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        own, rest = x[..., : self.part], x[..., self.part :]
        one, two = (own[..., 0::2], own[..., 1::2]) if self.neighbours else (own[..., :half], own[..., half:])
        a, b = one * cos - two * sin, one * sin + two * cos
        joined = torch.stack([a, b], -1).flatten(-2) if self.neighbours else torch.cat([a, b], -1)
        return torch.cat([joined, rest], -1)


class Neighbours(Rotary):
    neighbours = True


class Partial(Rotary):
    part = 4


class Explicit(Sinusoidal):
    """Computes its weights itself."""

    def forward(self, ids: Tensor) -> Tensor:
        x = self.stream(ids)
        q, k, v = (one(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in (self.q, self.k, self.v))
        later = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        weights = (q @ k.transpose(-1, -2) / (WIDTH / HEADS) ** 0.5).masked_fill(later, -torch.inf).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2)


def found(model: nn.Module) -> tuple[str, dict[str, np.ndarray], dict[str, str], dict[str, str]]:
    """(place of its encoding, arrays by signal, methods by signal, refusals by signal)."""
    sink = models.run(model, "positions", given=given())
    arrays = {name.partition(":")[2]: sink.array(name) for name in sink.names()}
    methods = {name.partition(":")[2]: sink.channel(name).method for name in sink.names()}
    refused = {name.partition(":")[2]: why for name, why in sink.refusals().items()}
    place = next((name.partition(":")[0] for name in sink.names() if "encoding" in name), "")
    return place, arrays, methods, refused


@pytest.mark.parametrize(
    ("kind", "table", "said"),
    [
        (Sinusoidal, lambda m: m.table[0], "buffer 'table', added; sinusoidal, sine and cosine in turns"),
        (Shifted, lambda m: m.places.weight, "parameter 'places', added; step 0 has row 2; no usual formula"),
        (WithSegments, lambda m: m.places.weight, "parameter 'places', added; no usual formula"),
        (Beside, lambda m: m.places, "parameter 'places', put beside; no usual formula"),
        (TimeMajor, lambda m: m.places[:, 0], "parameter 'places', added; no usual formula"),
        (OnTheFly, lambda m: torch.outer(torch.arange(STEPS) / 5, torch.linspace(-1, 1, WIDTH)), "computed in the run"),
    ],
)
def test_the_table_of_positions_is_found_however_it_is_added(kind: type[One], table: object, said: str) -> None:
    model = kind()
    _, arrays, methods, _ = found(model)
    want = table(model).detach().double().numpy()  # type: ignore[operator]
    np.testing.assert_allclose(arrays["positions/encoding"], want, atol=1e-6)
    assert methods["positions/encoding"].startswith(said)
    assert "positions/encoding_1" not in arrays


def test_similarity_is_the_mean_cosine_of_all_pairs_at_a_distance() -> None:
    model = Shifted()
    _, arrays, _, _ = found(model)
    rows = model.places.weight.detach().double().tolist()

    def alike(a: list[float], b: list[float]) -> float:
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))

    for distance in range(20):
        pairs = [alike(rows[i], rows[i - distance]) for i in range(distance, 20)]
        want = [sum(pairs) / len(pairs), min(pairs), max(pairs)]
        np.testing.assert_allclose(arrays["positions/similarity"][:, distance], want, atol=1e-6)
    np.testing.assert_allclose(arrays["positions/cosine"][3, 9], alike(rows[3], rows[9]), atol=1e-6)


@pytest.mark.parametrize("kind", [Sinusoidal, Explicit, Rotary])
def test_scores_by_distance_are_those_of_the_model_on_one_token(kind: type[One]) -> None:
    model = kind()
    _, arrays, _, _ = found(model)
    ids = given().inputs[0]
    token = int(next(v for v in _from_the_middle(ids.tolist()) if v != int(ids[STEPS // 2])))
    with torch.no_grad():
        x = model.stream(torch.full((1, STEPS), token))
        q, k = (
            model.turned(one(x).unflatten(-1, (HEADS, -1)).transpose(1, 2))[0].double() for one in (model.q, model.k)
        )
    for head in range(HEADS):
        for distance in range(STEPS):
            above = []
            for i in range(distance, STEPS):
                own = float(q[head, i] @ k[head, i])
                above.append((float(q[head, i] @ k[head, i - distance]) - own) / (WIDTH / HEADS) ** 0.5)
            mean = sum(above) / len(above)
            spread = math.sqrt(sum((one - mean) ** 2 for one in above) / len(above))
            np.testing.assert_allclose(arrays["positions/scores"][head, distance], mean, atol=2e-5)
            np.testing.assert_allclose(arrays["positions/scores_spread"][head, distance], spread, atol=2e-3)


def _from_the_middle(ids: list[int]) -> list[int]:
    return [ids[at] for at in sorted(range(len(ids)), key=lambda step: abs(step - len(ids) // 2))]


def test_a_bias_by_distance_is_read_off_the_scores_and_has_no_spread() -> None:
    _, arrays, _, refused = found(Biased())
    distances = np.arange(STEPS)
    np.testing.assert_allclose(arrays["positions/scores"], [-0.5 * distances, -0.125 * distances], atol=1e-5)
    np.testing.assert_allclose(arrays["positions/scores_spread"], 0.0, atol=1e-3)
    assert "has no positions, has them in its scores alone" in refused["positions/encoding"]
    assert "not turned" in refused["positions/frequency"]


@pytest.mark.parametrize(
    ("kind", "pairs"), [(Rotary, "two halves"), (Neighbours, "neighbours"), (Partial, "two halves")]
)
def test_rotary_frequencies_and_which_components_are_pairs(kind: type[Rotary], pairs: str) -> None:
    _, arrays, methods, _ = found(kind())
    want = [100.0 ** (-j / (kind.part // 2)) for j in range(kind.part // 2)]
    np.testing.assert_allclose(arrays["positions/frequency"], [want] * HEADS, atol=1e-4)
    assert pairs in methods["positions/frequency"]
    np.testing.assert_allclose(arrays["positions/scores_spread"], 0.0, atol=2e-3)


def test_a_model_without_positions_says_so_and_its_scores_are_all_alike() -> None:
    _, arrays, _, refused = found(One())
    assert set(refused) == {"positions/encoding", "positions/frequency"}
    np.testing.assert_allclose(arrays["positions/scores"], 0.0, atol=1e-5)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_rotary_frequencies_in_half_precision(kind: torch.dtype) -> None:
    _, arrays, _, _ = found(Rotary().to(kind))
    np.testing.assert_allclose(
        arrays["positions/frequency"], [[1.0, 100 ** (-1 / 3), 100 ** (-2 / 3)]] * HEADS, atol=0.01
    )


def test_small_encodings_that_are_added_are_not_taken_for_slow_turns() -> None:
    model = Shifted()
    model.places.weight.data *= 1e-3
    assert "positions/frequency" in found(model)[3]


def test_absolute_positions_are_not_taken_for_rotation() -> None:
    assert "positions/frequency" in found(Sinusoidal())[3]
    assert "positions/frequency" in found(Shifted())[3]


def test_padding_is_no_position() -> None:
    batch = given()
    batch.look_at = 1
    sink = models.run(OnTheFly(), "positions", given=batch)
    (name,) = [one for one in sink.names() if one.endswith("encoding")]
    assert sink.array(name).shape == (STEPS - 2, WIDTH)


def test_too_few_steps_are_said_and_nothing_is_concluded_from_them() -> None:
    for steps, signal, said in (
        (2, "positions/frequency", "are 2, and whether"),
        (3, "positions/frequency", "are 3, and whether"),
    ):
        ids = torch.arange(steps)[None]
        sink = models.run(Rotary(), "positions", given=Batch(ids, torch.tensor([steps])))
        (reason,) = [why for name, why in sink.refusals().items() if name.endswith(signal)]
        assert said in reason
