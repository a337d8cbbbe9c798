"""The attention probe against explicit softmax in float64, and against the same model without it."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from attending import explicit, probed, reference_layer, weights_of
from hypothesis import given, settings
from hypothesis import strategies as st
from listed import Listed
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.utils.checkpoint import checkpoint

from inspector.engine.attention.recorder import AttentionRecorder
from inspector.engine.attention.rows import allowed
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.probes.attention import AttentionProbe
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Refusal

pytestmark = pytest.mark.usefixtures("one_thread")


class Sdpa(nn.Module):
    """A model that is one call of scaled_dot_product_attention on given tensors."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options
        self.inner = Sdpa.Inner(options)

    class Inner(nn.Module):
        def __init__(self, options: dict[str, Any]) -> None:
            super().__init__()
            self.options = options

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, **self.options)

    def forward(self, x: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        return self.inner(*x)


def sdpa(q: Tensor, k: Tensor, v: Tensor, look_at: int = 0, **options: Any) -> tuple[Tensor, Attention]:
    model = Sdpa(**options)
    x = torch.zeros(q.shape[0], q.shape[-2], 1)
    expected = F.scaled_dot_product_attention(q, k, v, **options)
    output, seen = probed(model, x, lambda _x: model((q, k, v)), look_at=look_at)
    assert torch.equal(output, expected)
    assert len(seen) == 1 and seen[0].place == "inner" and seen[0].module == "Inner"
    assert seen[0].check is not None and seen[0].check.passed
    return output, seen[0]


def tensors(b: int, a: int, q: int, k: int, d: int, groups: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    groups = groups or a
    shapes = ((b, a, q, d), (b, groups, k, d), (b, groups, k, d))
    made = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    return made[0], made[1], made[2]


@settings(deadline=None, max_examples=25)
@given(
    b=st.integers(1, 3), a=st.integers(1, 3), q=st.integers(1, 6), k=st.integers(1, 6), d=st.integers(1, 4),
    kind=st.sampled_from(["none", "causal", "bool", "additive", "per head", "padding"]), seed=st.integers(0, 1000),
)  # fmt: skip
def test_every_mask_and_shape_against_loops(b: int, a: int, q: int, k: int, d: int, kind: str, seed: int) -> None:
    torch.manual_seed(seed)
    query, key, value = tensors(b, a, q, k, d)
    look_at = b - 1
    options: dict[str, Any] = {}
    may: Tensor | None = None
    bias: Tensor | None = None
    if kind == "causal":
        options["is_causal"] = True
        may = torch.ones(q, k, dtype=torch.bool).tril()
    elif kind == "bool":
        may = torch.rand(q, k) > 0.4
        options["attn_mask"] = may
    elif kind == "additive":
        bias = torch.randn(q, k, dtype=torch.float64)
        options["attn_mask"] = bias
    elif kind == "per head":
        mask = torch.rand(b, a, q, k) > 0.4
        options["attn_mask"] = mask
        may = mask[look_at]
    elif kind == "padding":
        mask = torch.rand(b, 1, 1, k) > 0.3
        options["attn_mask"] = mask
        may = mask[look_at].expand(a, q, k)
    _, attention = sdpa(query, key, value, look_at=look_at, **options)
    expected = explicit(query[look_at], key[look_at], d**-0.5, may, bias)
    got = weights_of(attention, look_at)
    torch.testing.assert_close(got, expected, equal_nan=True, rtol=1e-12, atol=1e-13)
    grid = torch.ones(1, q, k, dtype=torch.bool) if may is None else may.expand(a, q, k)
    assert torch.equal(allowed(attention, look_at, 0, q).expand(a, q, k), grid.expand(a, q, k))
    assert attention.keys_from == ("step" if q == k else "source step")


def test_grouped_heads_are_repeated_and_scale_is_kept() -> None:
    query, key, value = tensors(2, 4, 5, 5, 3, groups=2)
    _, attention = sdpa(query, key, value, look_at=1, enable_gqa=True, scale=0.7, is_causal=True)
    repeated = key.repeat_interleave(2, dim=1)
    expected = explicit(query[1], repeated[1], 0.7, torch.ones(5, 5, dtype=torch.bool).tril())
    torch.testing.assert_close(weights_of(attention, 1), expected)


def test_a_call_without_heads_has_a_mask_for_each_sample() -> None:
    query, key, value = (torch.randn(3, n, 4, dtype=torch.float64) for n in (5, 6, 6))
    mask = torch.rand(3, 5, 6) > 0.4
    mask[:, :, 0] = True
    for look_at in range(3):
        _, attention = sdpa(query, key, value, look_at=look_at, attn_mask=mask)
        expected = explicit(query[look_at][None], key[look_at][None], 0.5, mask[look_at])
        torch.testing.assert_close(weights_of(attention, look_at), expected)


def test_causal_given_as_a_mask_is_recognised() -> None:
    query, key, value = tensors(1, 2, 6, 6, 3)
    triangle = torch.full((6, 6), -math.inf, dtype=torch.float64).triu(1)
    for mask in (triangle, triangle == 0, triangle.nan_to_num(neginf=-1e9)):
        _, attention = sdpa(query, key, value, attn_mask=mask)
        assert attention.causal and attention.mask is None


def test_a_finite_mask_that_does_not_reach_below_the_logits_is_shown_as_it_works() -> None:
    """−10⁴ is meant to forbid; beside logits of that size the model looks at the masked keys nevertheless."""
    query, key, value = tensors(1, 2, 4, 6, 3)
    mask = torch.where(torch.rand(4, 6) > 0.5, 0.0, -1e4).double()
    mask[:, 0] = 0.0
    for size, leaks in ((1e4, True), (1.0, False)):
        _, attention = sdpa(size * query, key, value, attn_mask=mask)
        got = weights_of(attention)
        torch.testing.assert_close(got, explicit(size * query[0], key[0], 3**-0.5, None, mask), atol=1e-9, rtol=1e-6)
        assert bool((got[:, mask < 0] > 0).any()) is leaks
    _, again = sdpa(query, key, value, attn_mask=mask)
    assert again.mask is not None and again.mask.dtype == torch.bool


def test_the_same_mask_at_small_and_at_large_logits_is_settled_for_each() -> None:
    mask = torch.tensor([[0.0, -1e4], [0.0, 0.0]]).double()

    class Layers(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            for size in (1.0, 1e4, 1.0):
                F.scaled_dot_product_attention(size * x, x, x, attn_mask=mask)
            return x

    x = torch.tensor([[[-1.0, 1.0], [-3.0, -3.0]]]).double()
    _, seen = probed(Layers(), x)
    assert [one.causal for one in seen] == [True, False, True]
    assert all(one.check is not None and one.check.passed for one in seen)


def test_half_precision_weights_are_widened_and_checked() -> None:
    query, key, value = (t.bfloat16() for t in tensors(1, 2, 40, 40, 16))
    _, attention = sdpa(query, key, value, is_causal=True)
    got = weights_of(attention)
    assert got.dtype == torch.float32
    expected = torch.softmax((query[0].double() @ key[0].double().mT / 4).masked_fill(
        torch.ones(40, 40, dtype=torch.bool).triu(1), -math.inf), -1)  # fmt: skip
    torch.testing.assert_close(got.double(), expected, atol=1e-6, rtol=1e-5)


def test_nan_inputs_give_nan_rows_and_do_not_raise() -> None:
    query, key, value = tensors(1, 1, 4, 4, 2)
    query[0, 0, 2] = math.nan
    _, attention = sdpa(query, key, value)
    got = weights_of(attention)
    assert got[0, 2].isnan().all() and not got[0, [0, 1, 3]].isnan().any()


def test_queries_and_keys_are_copies() -> None:
    class InPlace(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            q = x[:, None] * 1.0
            k = x[:, None] * 2.0
            y = F.scaled_dot_product_attention(q, k, q)
            q.zero_()
            k.zero_()
            return y

    x = torch.randn(1, 5, 4, dtype=torch.float64)
    _, seen = probed(InPlace(), x)
    torch.testing.assert_close(weights_of(seen[0]), explicit(x, 2 * x, 0.5, None))


def test_padding_of_a_shorter_sample_is_cut_off_where_nobody_looks_at_it() -> None:
    class Masked(nn.Module):
        def __init__(self, causal: bool, mask: Tensor | None) -> None:
            super().__init__()
            self.causal, self.mask = causal, mask

        def forward(self, x: Tensor) -> Tensor:
            q = x[:, None]
            return F.scaled_dot_product_attention(q, q, q, attn_mask=self.mask, is_causal=self.causal)

    x = torch.randn(2, 6, 4)
    padding = (torch.arange(6)[None] < torch.tensor([6, 4])[:, None])[:, None, None]
    for model, keys in ((Masked(True, None), 4), (Masked(False, padding), 4), (Masked(False, None), 6)):
        _, seen = probed(model, x, lengths=[6, 4], look_at=1)
        assert seen[0].query.shape[2] == 4 and seen[0].key.shape[2] == keys
        assert seen[0].kept == 1 and seen[0].queries_from == "step"


# --- nn.MultiheadAttention and the layers built of it


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("grad", [True, False])
def test_multihead_attention_every_way(need_weights: bool, average: bool, batch_first: bool, grad: bool) -> None:
    module = nn.MultiheadAttention(8, 2, batch_first=batch_first).double().eval()
    x = torch.randn(3, 5, 8, dtype=torch.float64)

    def call(x: Tensor) -> Any:
        y = x if batch_first else x.transpose(0, 1)
        return module(y, y, y, need_weights=need_weights, average_attn_weights=average)

    with torch.set_grad_enabled(grad):
        plain = call(x)
        output, seen = probed(module, x, call, look_at=2)
    assert torch.equal(output[0], plain[0])
    assert (output[1] is None) == (plain[1] is None)
    assert len(seen) == 1 and seen[0].place == "model" and seen[0].keys_from == "step"
    torch.testing.assert_close(weights_of(seen[0], 2), reference_layer(x[2], module), atol=1e-12, rtol=1e-10)
    assert seen[0].check is not None and seen[0].check.passed
    if need_weights:
        mean = weights_of(seen[0], 2).mean(0) if average else weights_of(seen[0], 2)
        torch.testing.assert_close(mean, plain[1][2].detach(), atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("separate", [True, False])
def test_projections_with_biases_and_without_any(bias: bool, separate: bool) -> None:
    widths = {"kdim": 6, "vdim": 6} if separate else {}
    module = nn.MultiheadAttention(8, 2, bias=bias, batch_first=True, **widths).double().train()
    if bias:
        nn.init.normal_(module.in_proj_bias)  # torch begins with zeros
    source = torch.randn(1, 7, 6 if separate else 8, dtype=torch.float64)

    def call(x: Tensor) -> Any:
        return module(x, source, source, average_attn_weights=False)

    output, seen = probed(module, torch.randn(1, 5, 8, dtype=torch.float64), call)
    assert seen[0].check is not None and seen[0].check.passed
    torch.testing.assert_close(weights_of(seen[0]), output[1][0].detach(), atol=1e-12, rtol=1e-10)


def test_attention_that_runs_again_in_the_backward_pass_is_seen_once() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Tensor) -> Any:
            return checkpoint(lambda y: self.inner(y, y, y, need_weights=False)[0], x, use_reentrant=False)

    model = Checkpointed()
    x = torch.randn(1, 5, 8, requires_grad=True)
    _, seen = probed(model, x, lambda given: model(given).sum().backward())
    assert x.grad is not None and [one.place for one in seen] == ["inner"]


def test_after_a_fault_nothing_more_is_recorded_and_the_first_reason_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def fail(self: AttentionRecorder, *_: Any) -> None:
        calls.append("asked")
        raise RuntimeError("first" if len(calls) == 1 else "second")

    monkeypatch.setattr(AttentionRecorder, "sdpa", fail)
    sink, x = Listed(), torch.randn(1, 2, 4, 3)
    _, seen = probed(Sdpa(), torch.zeros(1, 4, 1), lambda _: [Sdpa()((x, x, x)) for _ in range(3)], sink=sink)
    assert not seen and calls == ["asked"]
    assert [record.reason.count("first") for record in sink.of(Refusal)] == [1]


def test_multihead_attention_with_everything_unusual() -> None:
    module = nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True, kdim=6, vdim=4).double()
    source, values = torch.randn(7, 2, 6, dtype=torch.float64), torch.randn(7, 2, 4, dtype=torch.float64)
    mask = torch.randn(5, 7, dtype=torch.float64)
    padding = torch.zeros(2, 7, dtype=torch.float64)
    padding[1, 5:] = -math.inf

    def call(x: Tensor) -> Any:
        return module(
            x.transpose(0, 1), source, values, attn_mask=mask, key_padding_mask=padding, average_attn_weights=False
        )

    output, seen = probed(module, torch.randn(2, 5, 8, dtype=torch.float64), call, look_at=1)
    assert seen[0].keys_from == "source step" and seen[0].key.shape == (1, 2, 9, 4)
    torch.testing.assert_close(weights_of(seen[0], 1), output[1][1].detach(), atol=1e-12, rtol=1e-10)


def test_boolean_masks_of_multihead_attention_mean_the_opposite() -> None:
    module = nn.MultiheadAttention(8, 2, batch_first=True).double().train()
    mask = torch.rand(2 * 2, 5, 5) > 0.7
    mask[:, :, 0] = False

    def call(x: Tensor) -> Any:
        return module(x, x, x, attn_mask=mask, average_attn_weights=False)

    output, seen = probed(module, torch.randn(2, 5, 8, dtype=torch.float64), call, look_at=1)
    torch.testing.assert_close(weights_of(seen[0], 1), output[1][1].detach(), atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("way", ["function", "module"])
@pytest.mark.parametrize("extra", [False, True])
def test_two_boolean_masks_forbid_what_either_does_and_never_what_is_put_behind_the_keys(way: str, extra: bool) -> None:
    """Called by its function, which is given the masks as they are, or as a module in evaluation; against the softmax
    of the projections, with a learned key and a key of zeros behind them or without."""
    module = nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=extra, add_zero_attn=extra).double().eval()
    nn.init.normal_(module.in_proj_bias)
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1)
    padding = torch.tensor([[False] * 5, [False, True, False, True, False]])
    x = torch.randn(2, 5, 8, dtype=torch.float64)

    def call(x: Tensor) -> Any:
        if way == "module":
            return module(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)
        y = x.transpose(0, 1)
        return F.multi_head_attention_forward(
            y, y, y, 8, 2, module.in_proj_weight, module.in_proj_bias, module.bias_k, module.bias_v, extra, 0.0,
            module.out_proj.weight, module.out_proj.bias, training=False, attn_mask=mask, key_padding_mask=padding,
            need_weights=False,
        )  # fmt: skip

    with torch.no_grad():
        _, seen = probed(module, x, call, look_at=1)
    q, k, _ = (
        (x[1] @ module.in_proj_weight.T + module.in_proj_bias).detach().unflatten(-1, (3, 2, 4)).permute(1, 2, 0, 3)
    )
    may = ~(mask | padding[1])
    if extra:
        assert module.bias_k is not None
        learned = module.bias_k.detach().reshape(2, 1, 4)
        k, may = torch.cat([k, learned, torch.zeros_like(learned)], 1), F.pad(may, (0, 2), value=True)
    assert seen[0].check is not None and seen[0].check.passed
    torch.testing.assert_close(weights_of(seen[0], 1), explicit(q, k, 0.5, may), atol=1e-12, rtol=1e-10)
    assert torch.equal(allowed(seen[0], 1, 0, 5)[0], may)


def encoder(norm_first: bool = False, **options: Any) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=norm_first, **options)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("mode", ["eval", "eval without grad", "train"])
@pytest.mark.parametrize("masked", ["", "causal", "padding", "both"])
def test_encoder_layers(norm_first: bool, mode: str, masked: str) -> None:
    model = encoder(norm_first, dropout=0.3).train(mode == "train")
    x = torch.randn(2, 6, 16)
    options: dict[str, Any] = {}
    if masked in ("causal", "both"):
        options["mask"] = torch.ones(6, 6, dtype=torch.bool).triu(1)
    if masked in ("padding", "both"):
        options["src_key_padding_mask"] = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])

    def call(x: Tensor) -> Any:
        torch.manual_seed(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nested tensors are a prototype, says torch
            return model(x, **options), torch.rand(1)

    with torch.set_grad_enabled(mode != "eval without grad"):
        plain = call(x)
        output, seen = probed(model, x, call, lengths=[6, 4] if "src_key_padding_mask" in options else None, look_at=1)
    assert torch.equal(output[0], plain[0]) and torch.equal(output[1], plain[1])
    assert [attention.place for attention in seen] == ["layers.0.self_attn", "layers.1.self_attn"]
    length = 4 if "src_key_padding_mask" in options else 6
    y = model.layers[0].norm1(x) if norm_first else x
    first = explicit_of(model.layers[0].self_attn, y[1, :length], causal="mask" in options)
    torch.testing.assert_close(weights_of(seen[0], 1).double(), first, atol=1e-6, rtol=1e-4)
    for attention in seen:
        assert attention.query.shape == (1, 2, length, 8) and attention.keys_from == "step"
        assert ("without the dropout" in attention.note) == (mode == "train")
        assert (attention.check is None) == (mode == "train")
        assert attention.check is None or attention.check.passed


def explicit_of(module: nn.MultiheadAttention, x: Tensor, causal: bool) -> Tensor:
    e = x.shape[-1]
    weight, bias = module.in_proj_weight.detach().double(), module.in_proj_bias.detach().double()
    q, k = ((x.detach().double() @ weight[n * e : (n + 1) * e].T + bias[n * e : (n + 1) * e]) for n in (0, 1))
    q, k = (t.reshape(len(x), module.num_heads, -1).transpose(0, 1) for t in (q, k))
    may = torch.ones(len(x), len(x), dtype=torch.bool).tril() if causal else None
    return explicit(q, k, q.shape[-1] ** -0.5, may)


def test_the_fused_kernel_still_runs() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    called: set[str] = set()

    class Ops(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            called.add(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    model = encoder().eval()
    with torch.no_grad(), Ops():
        _, seen = probed(model, torch.randn(1, 4, 16))
    assert "_transformer_encoder_layer_fwd" in called and len(seen) == 2


@pytest.mark.parametrize("train", [False, True])
def test_encoder_and_decoder(train: bool) -> None:
    model = nn.Transformer(16, 2, 1, 2, 32, batch_first=True, dropout=0.0).train(train)
    mask = nn.Transformer.generate_square_subsequent_mask(6)

    def call(x: Tensor) -> Tensor:
        return model(torch.cat([x, x], 1), x, tgt_mask=mask, tgt_is_causal=True)

    plain = call(x := torch.randn(1, 6, 16))
    output, seen = probed(model, x, call)
    assert torch.equal(output, plain)
    by_place = {attention.place: attention for attention in seen}
    assert list(by_place) == [
        "encoder.layers.0.self_attn", "decoder.layers.0.self_attn", "decoder.layers.0.multihead_attn",
        "decoder.layers.1.self_attn", "decoder.layers.1.multihead_attn",
    ]  # fmt: skip
    assert by_place["encoder.layers.0.self_attn"].queries_from == "position"
    assert by_place["decoder.layers.0.self_attn"].causal
    cross = by_place["decoder.layers.0.multihead_attn"]
    assert cross.keys_from == "source step" and weights_of(cross).shape == (2, 6, 12)
    assert all(attention.check is not None and attention.check.passed for attention in seen)


# --- attention written by hand


class ByHand(nn.Module):
    """Attention as many write it; `way` says how softmax and product are spelled."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        scores = q @ q.mT / 2
        if self.way == "matmul":
            return self.drop(scores.softmax(-1)) @ q
        if self.way == "einsum":
            return torch.einsum("bhqk,bkhd->bqhd", F.softmax(scores, dim=-1), q.transpose(1, 2))
        if self.way == "bmm":
            return torch.bmm(nn.Softmax(dim=-1)(scores).view(-1, x.shape[1], x.shape[1]), q.flatten(0, 1))
        if self.way == "vocabulary":
            return torch.softmax(x, -1) @ torch.ones(8, 3)
        return torch.softmax(scores, -1).sum(2)


@pytest.mark.parametrize("way", ["matmul", "einsum", "bmm"])
def test_softmax_attention_in_user_code_is_recognised(way: str) -> None:
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    model = ByHand(way)
    torch.manual_seed(1)
    plain = model(x)
    torch.manual_seed(1)
    output, seen = probed(model, x, look_at=1)
    assert torch.equal(output, plain)
    q = x[1].unflatten(-1, (2, 4)).transpose(0, 1)
    torch.testing.assert_close(weights_of(seen[0], 1), explicit(q, q, 0.5, None))
    assert len(seen) == 1 and "by the model itself" in seen[0].note


@pytest.mark.parametrize("way", ["vocabulary", "no product"])
def test_a_softmax_that_is_not_attention_is_left_alone(way: str) -> None:
    assert probed(ByHand(way), torch.randn(2, 5, 8))[1] == []


def test_a_decoder_that_looks_at_its_source_once_a_step_is_one_map() -> None:
    class Decoder(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            out = []
            for t in range(4):
                weights = torch.softmax((x[:, t : t + 1] @ x.mT)[:, 0], -1)
                out.append(torch.bmm(weights.unsqueeze(1), x))
            return torch.cat(out, 1)

    x = torch.randn(2, 6, 3, dtype=torch.float64)
    _, seen = probed(Decoder(), x, look_at=1)
    assert len(seen) == 1
    torch.testing.assert_close(weights_of(seen[0], 1), explicit(x[1:, :4], x[1:], 1.0, None))


def test_a_growing_cache_of_keys_is_one_causal_map() -> None:
    class Cached(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x = x[:, None]
            return torch.cat([F.scaled_dot_product_attention(x[:, :, t : t + 1], x[:, :, : t + 1], x[:, :, : t + 1])
                              for t in range(x.shape[2])], 2)  # fmt: skip

    x = torch.randn(1, 5, 4, dtype=torch.float64)
    _, seen = probed(Cached(), x)
    assert len(seen) == 1 and seen[0].keys_from == "step"
    expected = explicit(x, x, 0.5, torch.ones(5, 5, dtype=torch.bool).tril())
    torch.testing.assert_close(weights_of(seen[0]), expected)
    assert torch.equal(allowed(seen[0], 0, 0, 5)[0], torch.ones(5, 5, dtype=torch.bool).tril())


def test_repeated_calls_are_numbered() -> None:
    class Twice(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(3):
                x = F.scaled_dot_product_attention(x, x, x)
            return x

    _, seen = probed(Twice(), torch.randn(1, 4, 4))
    assert [attention.place for attention in seen] == ["model", "model.1", "model.2"]


# --- the user's model must not notice


class Block(nn.Module):
    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.mha = nn.MultiheadAttention(8, 2, dropout=0.2, batch_first=True)
        self.norm = nn.BatchNorm1d(8)
        self.fails = fails

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.3 if self.training else 0.0)
        y = y + self.mha(y, y, y, need_weights=False)[0]
        if self.fails:
            raise ValueError("half-way")
        return self.norm(y.transpose(1, 2))


def hooks() -> tuple[int, ...]:
    before, after = torch_module._global_forward_pre_hooks, torch_module._global_forward_hooks
    return len(before), len(after), torch._C._len_torch_function_stack()


@pytest.mark.parametrize("train", [True, False])
def test_outputs_gradients_random_state_and_hooks_are_untouched(train: bool) -> None:
    before = hooks()

    def run(probe: bool) -> tuple[Tensor, ...]:
        torch.manual_seed(0)
        model = Block().train(train)
        x = torch.randn(3, 5, 8)
        output = probed(model, x)[0] if probe else model(x)
        output.square().sum().backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        return (output.detach(), *grads, *model.buffers(), torch.get_rng_state())

    plain, watched = run(False), run(True)
    assert len(plain) == len(watched) and all(map(torch.equal, plain, watched))
    assert hooks() == before


def test_a_model_that_raises_keeps_its_error_and_what_was_seen() -> None:
    before = hooks()
    model = Block(fails=True)
    trace = Trace(Subject(model), Batch(torch.randn(2, 5, 8), torch.tensor([5, 5])))
    probe, emit = AttentionProbe(), Emitter(Listed())
    probe.attach(model, trace, emit)
    with pytest.raises(ValueError, match="half-way"):
        model(trace.batch.inputs)
    probe.detach()
    probe.finish(trace, emit)
    assert hooks() == before and [attention.place for attention in trace.attentions] == ["model", "mha"]


def test_a_caught_error_inside_the_model_leaves_the_places_right() -> None:
    class Careful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.risky, self.safe = Block(fails=True), Sdpa.Inner({})

        def forward(self, x: Tensor) -> Tensor:
            try:
                self.risky(x)
            except ValueError:
                return self.safe(x, x, x)
            return x

    _, seen = probed(Careful(), torch.randn(2, 5, 8))
    assert [attention.place for attention in seen] == ["risky", "risky.mha", "safe"]


def test_a_fault_in_the_probe_stays_in_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.engine.attention.recorder.attend", lambda *_a, **_k: 1 / 0)
    sink = Listed()
    model = Block().eval()
    x = torch.randn(2, 5, 8)
    expected = model(x)
    output, _ = probed(model, x, sink=sink)
    assert torch.equal(output, expected)
    assert any(isinstance(record, Refusal) and "ZeroDivisionError" in record.reason for record in sink)


def test_checkpointed_layers_are_seen_once() -> None:
    from torch.utils.checkpoint import checkpoint

    model = Block().train()

    def call(x: Tensor) -> Tensor:
        out: Tensor = checkpoint(model, x, use_reentrant=False)
        out.sum().backward()
        return out

    _, seen = probed(model, torch.randn(2, 5, 8), call)
    assert [attention.place for attention in seen] == ["model", "mha"]


def test_torch_func_transforms_are_refused_not_broken() -> None:
    sink = Listed()
    model = Sdpa.Inner({})
    x = torch.randn(3, 1, 4, 2)
    expected = torch.func.vmap(model)(x, x, x)
    output, seen = probed(model, torch.zeros(3, 4, 1), lambda _x: torch.func.vmap(model)(x, x, x), sink=sink)
    assert torch.equal(output, expected) and seen == []
    assert "torch.func" in sink[0].reason


def test_a_compiled_model_is_refused_with_what_to_do() -> None:
    model = Block().eval()
    compiled = torch.compile(model, backend="eager")
    for whole, name in ((compiled, "model"), (nn.Sequential(nn.Identity(), compiled), "1")):
        sink = Listed()
        _, seen = probed(whole, torch.randn(1, 5, 8), lambda x: x, sink=sink)
        assert seen == [] and sink[0].channel == f"{name}:attention" and "_orig_mod" in sink[0].reason


def test_scripted_attention_is_named_in_the_log() -> None:
    sink = Listed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(Plain())
    _, seen = probed(scripted, torch.randn(1, 5, 8), sink=sink)
    assert seen == [] and "TorchScript" in sink[0].text


class Plain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x)


def test_a_map_that_does_not_reproduce_the_output_fails_its_check() -> None:
    module = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(1, 4, 8)

    def wrong_hint(x: Tensor) -> Any:  # torch drops the (empty) mask for the hint, and we cannot know
        return module(x, x + 0, x, attn_mask=torch.zeros(4, 4), is_causal=True, need_weights=False)

    with torch.no_grad():
        _, seen = probed(module, x, wrong_hint)
    assert seen[0].check is not None and not seen[0].check.passed


def test_one_step_and_no_heads_axis() -> None:
    _, seen = probed(Plain(), torch.randn(1, 1, 4))
    assert weights_of(seen[0]).tolist() == [[[1.0]]]


def test_nested_tensors_of_user_code() -> None:
    class Jagged(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            parts = torch.nested.nested_tensor([x[0, :3], x[1]], layout=torch.jagged)
            q = parts.unflatten(-1, (2, 4)).transpose(1, 2)
            return F.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(2).to_padded_tensor(0.0)

    sink = Listed()
    x = torch.randn(2, 5, 8)
    with torch.no_grad():
        expected = Jagged()(x)
        output, seen = probed(Jagged(), x, lengths=[3, 5], look_at=0, sink=sink)
    assert torch.equal(output, expected)
    assert weights_of(seen[0]).shape == (2, 3, 3) and not sink
