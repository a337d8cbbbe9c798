"""Cost of attention against torch's own counter of operations, and against the parameters by name."""

from __future__ import annotations

import attended_models as models
import numpy as np
import pytest
import torch
from attended_models import HEADS, STEPS, WAYS, WIDTH, made, place
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import inspector
from inspector.engine.analyses.attention.attention_cost import PARTS, Shape, foreseen, part_of, told
from inspector.engine.analyses.attention.attention_time import Rates, between, measured_rates
from inspector.records import Channel, Log

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("way", WAYS)
def test_operations_are_those_that_torch_counts(way: str) -> None:
    model = made(way)
    sink = models.run(model, "attention/cost")
    x = torch.randn(1, STEPS, WIDTH, dtype=torch.float64)
    module = model.blocks[0].attention  # type: ignore[union-attr]
    with FlopCounterMode(display=False) as counter, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        if isinstance(module, nn.MultiheadAttention):
            module(x, x, x, need_weights=True)
        else:
            module(x)
    flops = sink.array(f"{place(0)}:attention/flops")
    assert flops[:, 0].sum() == counter.get_total_flops()
    longer = np.array([256 / STEPS] * 4 + [(256 / STEPS) ** 2] * 2)
    np.testing.assert_allclose(flops[:, 1], flops[:, 0] * longer)
    rows, maps = sink.array(f"{place(0)}:attention/memory")[:, 0]
    groups = 1 if way == "grouped" else HEADS
    assert maps == HEADS * STEPS * STEPS * 8
    assert rows == (2 * STEPS * WIDTH + 2 * STEPS * groups * WIDTH // HEADS) * 8
    seconds = sink.array(f"{place(0)}:attention/seconds")
    assert (seconds > 0).all() and seconds[0, 0] == seconds[1, 0] and (seconds[0] <= seconds[1]).all()
    proportion = seconds[0, 0] * flops.sum(0) / flops[:, 0].sum()
    assert (seconds[0] <= proportion * (1 + 1e-12)).all() and (proportion <= seconds[1] * (1 + 1e-12)).all()


def test_time_at_other_lengths_is_between_calling_and_multiplying() -> None:
    shape = Shape(heads=4, groups=2, width=32, key=8, value=8, out=32)
    rates = Rates(projection=1e-9, fused=2e-9, written=5e-9)
    lengths = [(100, 100), (10, 10), (1000, 1000)]
    least, most = between(shape, 3e-3, lengths, rates).tolist()
    assert least[0] == most[0] == 3e-3
    # by hand, for T queries and keys: Q 2·32·32 T, K and V 2·32·16 T each, O 2·32·32 T; scores and sums 2·32 T² each
    own, square = 6144 * 100, 128 * 100**2
    for at, steps in ((1, 10), (2, 1000)):
        rows, pairs = 6144 * steps, 128 * steps**2
        known = (
            3e-3 * (rows + pairs) / (own + square),
            max(0.0, 3e-3 + (rows - own) * 1e-9 + (pairs - square) * 2e-9),
            max(0.0, 3e-3 + (rows - own) * 1e-9 + (pairs - square) * 5e-9),
        )
        assert least[at] == pytest.approx(min(known)) and most[at] == pytest.approx(max(known))


def test_products_are_measured_on_this_machine() -> None:
    rates = measured_rates(Shape(heads=2, groups=2, width=16, key=8, value=8, out=16), torch.ones(1))
    assert 0 < rates.projection < 1e-6 and 0 < rates.fused < 1e-6 and 0 < rates.written < 1e-6


@pytest.mark.parametrize("way", WAYS)
def test_parameters_by_part(way: str) -> None:
    model = made(way)
    found = dict(zip(PARTS, models.run(model, "attention/cost").array(f"{place(1)}:attention/parameters"), strict=True))
    own = WIDTH * WIDTH + WIDTH
    shared = own // HEADS if way == "grouped" else own
    assert [found[part] for part in PARTS] == [own, shared, shared, own, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "part"),
    [("q_proj.weight", "Q"), ("self.query.bias", "Q"), ("wk.weight", "K"), ("to_v.weight", "V"), ("c_proj.weight", "O"),
     ("to_out.0.weight", "O"), ("c_attn.weight", "Q, K and V together"), ("qkv.bias", "Q, K and V together"),
     ("rotary.scale", "other"), ("output.dense.weight", "O"), ("relative_attention_bias.weight", "other"),
     ("SelfAttention.q.weight", "Q"), ("q_proj_weight", "Q"), ("wkv.weight", "K and V together"), ("to_kv.bias", "K and V together"),
     ("attention.query_key_value.weight", "Q, K and V together")],
)  # fmt: skip
def test_parts_by_the_names_that_people_use(name: str, part: str) -> None:
    assert part_of(name) == part


@pytest.mark.parametrize("way", WAYS)
def test_what_is_told_before_the_run_is_what_is_counted_in_it(way: str) -> None:
    model = made(way)
    assert set(foreseen(model)) == {place(0), place(1)}
    sink = models.run(model, "attention/cost")
    logs = [record for record in sink if isinstance(record, Log)]
    said = next(record for record in logs if "Counted from the sizes" in record.text)
    assert sink.index(said) < min(sink.index(record) for record in sink.of(Channel)), "before the run"
    flops = sum(sink.array(f"{place(layer)}:attention/flops")[:, 0].sum() for layer in (0, 1))
    assert told(model, STEPS, 8) and f"{flops / 1e9:.3g} GFLOP" in said.text and "Attention of 2 modules" in said.text
    for layer in (0, 1):
        expected = [foreseen(model)[place(layer)].flops(n, n) for n in (STEPS, 256, 1024)]
        np.testing.assert_array_equal(sink.array(f"{place(layer)}:attention/flops")[:, :3].T, expected)


def test_a_model_without_attention_is_told_nothing() -> None:
    assert told(nn.Sequential(nn.Linear(4, 4), nn.GRU(4, 4)), 10) == ""


def test_a_cross_attention_has_queries_and_keys_of_two_lengths() -> None:
    shape = Shape(heads=2, groups=2, width=8, key=4, value=4, out=8)
    q, k, v, o, scores, sums = shape.flops(3, 10)
    assert (q, k, v, o) == (2 * 3 * 64, 2 * 10 * 64, 2 * 10 * 64, 2 * 3 * 64)
    assert scores == sums == 2 * 2 * 3 * 10 * 4


def test_values_may_be_wider_than_keys() -> None:
    """By hand: Q 3·12 → 4·5, K 10·12 → 2·5, V 10·12 → 2·7, O 3·28 → 9; 4 heads of 3 · 10 products over 5 and over 7."""
    shape = Shape(heads=4, groups=2, width=12, key=5, value=7, out=9)
    assert shape.flops(3, 10) == (
        2 * 3 * 12 * 20, 2 * 10 * 12 * 10, 2 * 10 * 12 * 14, 2 * 3 * 28 * 9, 2 * 4 * 30 * 5, 2 * 4 * 30 * 7,
    )  # fmt: skip
    assert shape.memory(3, 10, 4) == (4 * (3 * 20 + 10 * 10 + 10 * 14 + 3 * 28), 4 * 4 * 30)


class InOneLayer(nn.Module):
    """Four heads that share two groups of keys and values, which one layer makes, alone or with the queries."""

    num_heads, groups, wide = 4, 2, 6

    def __init__(self, together: bool) -> None:
        super().__init__()
        own, shared = self.num_heads * self.wide, self.groups * self.wide
        self.sizes = [own, shared, shared]
        if together:
            self.qkv = nn.Linear(own, own + 2 * shared)
        else:
            self.wq, self.wkv = nn.Linear(own, own), nn.Linear(own, 2 * shared)
        self.together, self.wo = together, nn.Linear(own, own)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = self.qkv(x) if self.together else torch.cat((self.wq(x), self.wkv(x)), -1)
        q, k, v = (one.unflatten(-1, (-1, self.wide)).transpose(1, 2) for one in made.split(self.sizes, -1))
        k, v = (one.repeat_interleave(self.num_heads // self.groups, 1) for one in (k, v))
        weights = (q @ k.mT / self.wide**0.5).softmax(-1)
        y: torch.Tensor = self.wo((weights @ v).transpose(1, 2).flatten(2))
        return y


@pytest.mark.parametrize("together", [False, True])
def test_groups_of_keys_that_one_layer_makes_are_counted(together: bool) -> None:
    model = nn.Sequential(InOneLayer(together))
    x = torch.randn(1, STEPS, 24)
    with FlopCounterMode(display=False) as counter:
        model(x)
    with inspector.run(model, x[0].numpy(), only=["attention/cost"]) as capture:
        flops = capture.array("0:attention/flops")
        parts = dict(zip(PARTS, capture.array("0:attention/parameters"), strict=True))
    assert flops[:, 0].sum() == counter.get_total_flops()
    np.testing.assert_array_equal(foreseen(model)["0"].flops(STEPS, STEPS), flops[:, 0])
    whole = {"Q, K and V together": 48 * 25} if together else {"Q": 24 * 25, "K and V together": 24 * 25}
    assert parts == {part: whole.get(part, 0) for part in PARTS} | {"O": 24 * 25}


class OneQuery(nn.Module):
    """Attention of one query (b, e) to a memory (b, k, e), with a product or an additive score."""

    def __init__(self, *, additive: bool) -> None:
        super().__init__()
        self.additive = additive
        if additive:
            self.matrix, self.vector = nn.Linear(16, 5), nn.Linear(5, 1, bias=False)

    def forward(self, query: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        if self.additive:
            pairs = torch.cat((query[:, None].expand_as(memory), memory), -1)
            scores = self.vector(torch.tanh(self.matrix(pairs)))[..., 0]
        else:
            scores = (memory @ query[..., None])[..., 0]
        y: torch.Tensor = (scores.softmax(-1)[:, None] @ memory)[:, 0]
        return y


class StepByStep(nn.Module):
    """A loop that attends once a step, as a recurrent decoder does."""

    def __init__(self, *, additive: bool) -> None:
        super().__init__()
        self.cell, self.attend = nn.GRUCell(8, 8), OneQuery(additive=additive)
        self.first = nn.Parameter(torch.randn(1, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        memory = torch.cat((x, x[:, :2]), 1)
        state, out = self.first.expand(len(x), -1), []
        for step in range(x.shape[1]):
            state = self.cell(self.attend(state, memory) + x[:, step], state)
            out.append(state)
        return torch.stack(out, 1)


def test_the_time_of_a_decoder_is_that_of_all_its_steps() -> None:
    x = torch.randn(STEPS, 8, generator=torch.Generator().manual_seed(1))
    with inspector.run(StepByStep(additive=False), x.numpy(), only=["attention/cost"]) as capture:
        assert capture.channel("attend:attention/seconds").method.endswith(f"times the {STEPS} calls of this run")
        flops = capture.array("attend:attention/flops")
    assert flops[4, 0] == flops[5, 0] == 2 * STEPS * (STEPS + 2) * 8


def test_multiplications_of_an_additive_score_are_not_counted_as_products() -> None:
    x = torch.randn(STEPS, 8, generator=torch.Generator().manual_seed(1))
    with inspector.run(StepByStep(additive=True), x.numpy(), only=["attention/cost"]) as capture:
        assert "attend:attention/flops" not in capture.channels
        assert capture.array("attend:attention/parameters")[-1] == 17 * 5 + 5
        (reason,) = [one.reason for one in capture.refusals if one.channel == "attend:attention/flops"]
    assert "not counted" in reason


@pytest.mark.parametrize(("additive", "title"), [(False, "q·k by dimension"), (True, "score by hidden unit")])
def test_a_decoder_with_an_additive_score_has_no_products_of_queries_and_keys(additive: bool, title: str) -> None:
    model = StepByStep(additive=additive)
    x = torch.randn(STEPS, 8, generator=torch.Generator().manual_seed(1))
    with inspector.run(model, x.numpy(), only=["attention/pair@query=1@key=3"]) as capture:
        channel, parts = capture.channel("attend:attention/pair"), capture.array("attend:attention/pair")[0]
    assert channel.title == title
    query, key = model(x[None])[0, 0].detach(), x[3]
    if additive:
        with torch.no_grad():
            units = torch.tanh(model.attend.matrix(torch.cat((query, key)))) * model.attend.vector.weight[0]
    else:
        units = query * key
    np.testing.assert_allclose(parts, units.numpy(), atol=1e-6)
