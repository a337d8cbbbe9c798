"""The map from token to token that a scan stands for, its factors, and long convolutions: against loops and autograd."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
import torch.nn.functional as F
import written_scans as w
from listed import Listed
from torch import Tensor

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline.options import RunOptions
from inspector.engine.pipeline.own_run import perform
from inspector.engine.scans import equivalent
from inspector.engine.trace.trace import Trace
from inspector.records import Log

pytestmark = pytest.mark.usefixtures("one_thread")
EXACT = {"rtol": 1e-9, "atol": 1e-11}
STORED = {"rtol": 1e-6, "atol": 1e-7}
SHOWN = ("states", "gates", "scans", "gradients", "attention/maps", "attention/distance", "attention/entropy")


@cache
def ran(function: Callable[[Tensor], Tensor]) -> tuple[Trace, Listed]:
    sink = Listed()
    subject = Subject(model=w.Scanned(function), kind="vectors", width=w.D, loss=lambda out, _: out.square().sum(-1))
    batch = Batch(w.given(), torch.full((w.B,), w.T), look_at=w.SAMPLE)
    return perform(subject, batch, sink, RunOptions(only=SHOWN)), sink


def shown(function: Callable[[Tensor], Tensor], name: str) -> Tensor:
    return torch.from_numpy(ran(function)[1].array(f"inner:{name}")).double()


def selective_map() -> Tensor:
    """(d, t, s) C_t exp(Σ Δ A) Δ_s B_s by loops over everything."""
    delta, a, b, c = (one[w.SAMPLE] if one.dim() == 3 else one for one in w.selective(w.given()))
    out = torch.zeros(w.D, w.T, w.T, dtype=torch.float64)
    for d in range(w.D):
        for t in range(w.T):
            for s in range(t + 1):
                left = torch.exp(delta[s + 1 : t + 1, d].sum() * a[d])
                out[d, t, s] = (c[t] * left * delta[s, d] * b[s]).sum()
    return out


@pytest.mark.parametrize(
    "way",
    [w.mamba_by_sums, w.mamba_by_doubling, w.mamba_in_place, w.mamba_step_by_step, w.mamba_channels_first],
    ids=lambda way: way.__name__,
)
def test_a_selective_scan_is_the_map_of_its_factors(way: Callable[[Tensor], Tensor]) -> None:
    expected = selective_map()
    torch.testing.assert_close(shown(way, "attention"), expected, **STORED)
    channel = ran(way)[1].channel("inner:attention")
    assert (channel.scale, channel.title, channel.limits) == ("diverging", "equivalent map", None)
    assert "Π" in channel.formula
    delta, _, b, c = w.selective(w.given())
    for name, values in {"delta": delta, "b": b, "c": c, "x": w.given()}.items():
        torch.testing.assert_close(shown(way, f"scan/{name}"), values[w.SAMPLE], **EXACT)
    steady = -1 / (delta[w.SAMPLE, ..., None] * w.selective(w.given())[1])
    torch.testing.assert_close(shown(way, "scan/time_constant"), -steady.flatten(1).abs() * -1, **EXACT)


def test_gradients_at_the_states_are_those_of_autograd_whatever_computed_them() -> None:
    delta, a, b, c = w.selective(w.given()[w.SAMPLE])
    zeros = torch.zeros(w.T, w.D, w.N, dtype=torch.float64, requires_grad=True)
    x, h, out = w.given()[w.SAMPLE], torch.zeros(w.D, w.N, dtype=torch.float64), []
    for t in range(w.T):
        h = torch.exp(delta[t, :, None] * a) * h + delta[t, :, None] * b[t] * x[t, :, None] + zeros[t]
        out.append((h * c[t]).sum(-1) + x[t] * w.constants(w.D, seed=8))
    (expected,) = torch.autograd.grad(torch.stack(out).square().sum(), zeros)
    for way in (w.mamba_by_sums, w.mamba_by_doubling, w.mamba_in_place, w.mamba_step_by_step, w.mamba_channels_first):
        (found,) = ran(way)[0].recurrences
        assert found.delta is not None, way.__name__
        torch.testing.assert_close(found.delta[:, w.SAMPLE], expected.flatten(1), **EXACT)


def test_the_map_is_what_autograd_says_of_the_scan_with_its_factors_held() -> None:
    delta, a, b, c = (one.detach() for one in w.selective(w.given()))

    def scan(x: Tensor) -> Tensor:
        h = torch.zeros(w.D, w.N, dtype=torch.float64)
        out = []
        for t in range(w.T):
            h = torch.exp(delta[w.SAMPLE, t, :, None] * a) * h
            h = h + delta[w.SAMPLE, t, :, None] * b[w.SAMPLE, t] * x[t, :, None]
            out.append((h * c[w.SAMPLE, t]).sum(-1))
        return torch.stack(out)

    jacobian = torch.autograd.functional.jacobian(scan, w.given()[w.SAMPLE])  # (t, d, s, e)
    own = torch.diagonal(jacobian, dim1=1, dim2=3).permute(2, 0, 1)
    torch.testing.assert_close(shown(w.mamba_by_sums, "attention"), own, **STORED)


def test_statistics_of_signed_weights_are_those_of_their_shares() -> None:
    shares = selective_map().abs()
    shares = shares / shares.sum(-1, keepdim=True)
    entropy = torch.special.entr(shares).sum(-1)
    torch.testing.assert_close(shown(w.mamba_by_sums, "attention/entropy"), entropy, rtol=1e-5, atol=1e-6)
    t = torch.arange(w.T, dtype=torch.float64)
    distance = (shares * (t[:, None] - t)).sum(-1)
    torch.testing.assert_close(shown(w.mamba_by_sums, "attention/distance"), distance, rtol=1e-5, atol=1e-5)
    assert "|M|" in ran(w.mamba_by_sums)[1].channel("inner:attention/entropy").method


def test_a_gated_recurrence_has_a_map_for_each_unit() -> None:
    a, b = (one[w.SAMPLE] for one in w.gated(w.given()))
    z = 1 - a
    expected = torch.zeros(w.D, w.T, w.T, dtype=torch.float64)
    for t in range(w.T):
        for s in range(t + 1):
            expected[:, t, s] = a[s + 1 : t + 1].prod(0) * z[s]
    torch.testing.assert_close(shown(w.by_doubling, "attention"), expected, **STORED)
    torch.testing.assert_close(shown(w.by_doubling, "scan/z"), z, **EXACT)
    torch.testing.assert_close(shown(w.by_doubling, "scan/candidate"), b / z, **EXACT)


def test_linear_attention_without_a_normaliser_has_one_map_a_head() -> None:
    q, k, v = (one[w.SAMPLE] for one in w.heads(w.given()))
    expected = (q @ k.mT).tril()
    torch.testing.assert_close(shown(w.linear_attention_by_sums, "attention"), expected, **STORED)
    state = torch.einsum("atd,ate->tade", k, v).cumsum(0).flatten(1)
    torch.testing.assert_close(shown(w.linear_attention_by_sums, "h"), state, **EXACT)


def test_retention_in_one_product_is_a_recurrence_with_the_map_of_its_weights() -> None:
    trace, sink = ran(w.retention_parallel)
    torch.testing.assert_close(shown(w.retention_parallel, "attention"), w.retention_map(w.given()), **STORED)
    _, k, v = (one[w.SAMPLE] for one in w.heads(w.given()))
    q = w.heads(w.given())[0][w.SAMPLE]
    decay = torch.tensor(w.DECAYS, dtype=torch.float64)[:, None, None]
    zeros = torch.zeros(w.T, 2, 2, 2, dtype=torch.float64, requires_grad=True)
    state, states, out = torch.zeros(2, 2, 2, dtype=torch.float64), [], []
    for t in range(w.T):
        state = decay * state + k[:, t, :, None] * v[:, t, None] + zeros[t]
        states.append(state.detach().flatten())
        out.append((q[:, t, :, None] * state).sum(1))
    torch.testing.assert_close(shown(w.retention_parallel, "h"), torch.stack(states), **EXACT)
    (expected,) = torch.autograd.grad(torch.stack(out).square().sum(), zeros)
    (found,) = trace.recurrences
    assert found.delta is not None
    torch.testing.assert_close(found.delta[:, w.SAMPLE], expected.flatten(1), **EXACT)
    decays = torch.from_numpy(sink.array("inner:gate/decay"))
    torch.testing.assert_close(decays, decay.expand(2, 2, 2).flatten().expand(w.T, 8), **EXACT)


def test_decays_of_each_step_in_one_product_are_those_of_the_recurrence() -> None:
    """The first one, into which nothing is carried, is not known from the product, and is that of the second."""
    q, k, v = (one[w.SAMPLE] for one in w.heads(w.given()))  # (a, t, d)
    gain = w.chunk_decays(w.given())[w.SAMPLE].exp()
    state, states, expected = torch.zeros(2, 2, 2, dtype=torch.float64), [], torch.zeros(2, w.T, w.T).double()
    for t in range(w.T):
        state = gain[t, :, None, None] * state + k[:, t, :, None] * v[:, t, None]
        states.append(state.flatten())
        for s in range(t + 1):
            expected[:, t, s] = (q[:, t] * k[:, s]).sum(1) * gain[s + 1 : t + 1].prod(0)
    torch.testing.assert_close(shown(w.gated_retention_parallel, "attention"), expected, **STORED)
    torch.testing.assert_close(shown(w.gated_retention_parallel, "h"), torch.stack(states), **EXACT)
    decays = shown(w.gated_retention_parallel, "gate/decay")[:, ::4]
    torch.testing.assert_close(decays, torch.cat([gain[1:2], gain[1:]]), **EXACT)


def test_what_the_first_state_adds_is_no_part_of_the_map() -> None:
    """The map is that of a scan that begins with 0, and is shown: it gives the output but for what the state adds."""
    torch.testing.assert_close(shown(w.mamba_from_a_state, "attention"), selective_map(), **STORED)
    delta, a, _, c = (one[w.SAMPLE] if one.dim() == 3 else one for one in w.selective(w.given()))
    added = torch.stack([
        (c[t] * torch.exp(delta[: t + 1].sum(0)[:, None] * a) * w.first_state()).sum(-1) for t in range(w.T)
    ])  # fmt: skip
    x = w.given()[w.SAMPLE]
    whole = torch.einsum("dts,sd->td", selective_map(), x) + added + x * w.constants(w.D, seed=8)
    torch.testing.assert_close(w.mamba_from_a_state(w.given())[w.SAMPLE], whole, **EXACT)


def test_chunks_are_one_recurrence_over_all_steps() -> None:
    trace, _ = ran(w.chunked)
    q, k, v = (one[w.SAMPLE] for one in w.heads(w.given()))  # (a, t, d)
    gain = w.chunk_decays(w.given())[w.SAMPLE].exp()
    zeros = torch.zeros(w.T, 2, 2, 2, dtype=torch.float64, requires_grad=True)
    state, states, out = torch.zeros(2, 2, 2, dtype=torch.float64), [], []
    expected = torch.zeros(2, w.T, w.T, dtype=torch.float64)
    for t in range(w.T):
        state = gain[t, :, None, None] * state + k[:, t, :, None] * v[:, t, None] + zeros[t]
        states.append(state.detach().flatten())
        out.append((q[:, t, :, None] * state).sum(1))
        for s in range(t + 1):
            expected[:, t, s] = (q[:, t] * k[:, s]).sum(1) * gain[s + 1 : t + 1].prod(0)
    torch.testing.assert_close(shown(w.chunked, "attention"), expected, **STORED)
    torch.testing.assert_close(shown(w.chunked, "h"), torch.stack(states), **EXACT)
    torch.testing.assert_close(shown(w.chunked, "scan/key"), k.movedim(1, 0).flatten(1), **EXACT)
    torch.testing.assert_close(shown(w.chunked, "gate/decay")[:, ::4], gain, **EXACT)
    (delta,) = torch.autograd.grad(torch.stack(out).square().sum(), zeros)
    found = next(one for one in trace.recurrences if one.place == "inner")
    assert found.delta is not None
    torch.testing.assert_close(found.delta[:, w.SAMPLE], delta.flatten(1), **EXACT)


def test_a_causal_product_without_decay_is_no_scan() -> None:
    def masked(x: Tensor) -> Tensor:
        q, k, v = w.heads(x)
        return ((q @ k.mT).tril() @ v).transpose(1, 2).flatten(2)

    assert not ran(masked)[0].recurrences


def test_a_convolution_is_its_kernel() -> None:
    kernel = w.constants(w.D, w.T, seed=18) * torch.exp(-0.2 * torch.arange(w.T))
    expected = torch.zeros(w.D, w.T, w.T, dtype=torch.float64)
    for t in range(w.T):
        for s in range(t + 1):
            expected[:, t, s] = kernel[:, t - s]
    torch.testing.assert_close(shown(w.free_kernel_by_fft, "attention"), expected, **STORED)
    torch.testing.assert_close(shown(w.free_kernel_by_fft, "scan/kernel_map"), kernel, **EXACT)
    table = shown(w.free_kernel_by_fft, "scan/kernel")
    torch.testing.assert_close(table[0], kernel.abs().quantile(0.5, 0), **EXACT)
    torch.testing.assert_close(table[3], kernel.abs().mean(0), **EXACT)
    assert not ran(w.free_kernel_by_fft)[0].recurrences


def test_a_kernel_of_powers_is_a_recurrence() -> None:
    """S4D by Fourier transforms: h_t = λ h_{t−1} + u_t, and y = 2 Re Σ C h."""
    kernel, decay, c = w.s4d_kernel(w.T)
    u = w.given()[w.SAMPLE]
    state, states = torch.zeros(w.D, w.N, dtype=torch.complex128), []
    for t in range(w.T):
        state = decay * state + u[t, :, None]
        states.append(state.flatten())
    expected = torch.stack(states)
    torch.testing.assert_close(shown(w.s4d_by_fft, "h.real"), expected.real, **EXACT)
    torch.testing.assert_close(shown(w.s4d_by_fft, "h.imaginary"), expected.imag, **EXACT)
    torch.testing.assert_close(shown(w.s4d_by_fft, "scan/kernel_map"), kernel, **EXACT)
    read = 2 * (expected.unflatten(1, (w.D, w.N)) * c).sum(-1).real
    made = torch.stack([(kernel[:, : t + 1].flip(1) * u[: t + 1].T).sum(1) for t in range(w.T)])
    torch.testing.assert_close(read, made, **EXACT)  # the loop and the kernel are one function
    (found,) = ran(w.s4d_by_fft)[0].recurrences
    assert found.check is not None and found.check.passed and found.delta is not None
    _gradients_are_those_of(found.delta[:, w.SAMPLE], decay, c, u)


def _gradients_are_those_of(delta: Tensor, decay: Tensor, c: Tensor, u: Tensor) -> None:
    zeros = torch.zeros(w.T, 2, w.D, w.N, dtype=torch.float64, requires_grad=True)
    state, out = torch.zeros(w.D, w.N, dtype=torch.complex128), []
    for t in range(w.T):
        state = decay * state + u[t, :, None] + torch.complex(zeros[t, 0], zeros[t, 1])
        out.append(2 * (state * c).sum(-1).real + u[t] * w.constants(w.D, seed=8))
    (expected,) = torch.autograd.grad(torch.stack(out).square().sum(), zeros)
    torch.testing.assert_close(delta, expected.flatten(1), **EXACT)


@pytest.mark.parametrize("way", [w.lru_by_doubling, w.lru_step_by_step], ids=lambda way: way.__name__)
def test_states_between_two_matrices_have_one_map_of_norms(way: Callable[[Tensor], Tensor]) -> None:
    decay, b, c = w.lru_matrices()
    expected = torch.zeros(w.T, w.T, dtype=torch.float64)
    for t in range(w.T):
        for s in range(t + 1):
            expected[t, s] = (c @ torch.diag(decay ** (t - s)) @ b).real.norm()
    torch.testing.assert_close(shown(way, "attention"), expected[None], **STORED)
    assert "norm" in ran(way)[1].channel("inner:attention").formula


def test_fast_decays_in_single_precision_are_one_recurrence_with_its_readout() -> None:
    """What the first rounds of the scan made differs from the states by rounding alone."""

    def fast(x: Tensor) -> Tensor:
        x = x.float()
        decay = torch.sigmoid(x)[..., None] * torch.linspace(0.001, 0.02, w.N)
        c = x[..., : w.N].cos()
        h, shift = x[..., None] * c[:, :, None].square(), 1
        while shift < w.T:
            h = torch.cat([h[:, :shift], h[:, shift:] + decay[:, shift:] * h[:, :-shift]], 1)
            decay = torch.cat([decay[:, :shift], decay[:, shift:] * decay[:, :-shift]], 1)
            shift *= 2
        return (h * c[:, :, None]).sum(-1)

    trace, sink = ran(fast)
    assert [one.place for one in trace.recurrences] == ["inner"]
    assert sink.array("inner:attention").shape == (w.D, w.T, w.T) and "C_t" in sink.channel("inner:attention").formula


def both_directions(x: Tensor) -> Tensor:
    """Two layers, each a scan forwards and one over the steps turned around."""
    for _ in range(2):
        x = w.by_doubling(x) + w.by_doubling(x.flip(1)).flip(1)
    return x


def test_a_scan_over_turned_steps_is_numbered_as_the_sequence() -> None:
    trace, _ = ran(both_directions)
    assert [one.place for one in trace.recurrences] == ["inner", "inner#2.reverse", "inner#3", "inner#4.reverse"]
    x = w.given()
    for place, given in (("inner", x), ("inner#2.reverse", x.flip(1))):
        a, b = w.gated(given)
        h, states = torch.zeros(w.D, dtype=torch.float64), []
        weights = torch.zeros(w.D, w.T, w.T, dtype=torch.float64)
        for t in range(w.T):
            h = a[w.SAMPLE, t] * h + b[w.SAMPLE, t]
            states.append(h)
            for s in range(t + 1):
                weights[:, t, s] = a[w.SAMPLE, s + 1 : t + 1].prod(0) * (1 - a[w.SAMPLE, s])
        expected, gain = torch.stack(states), a[w.SAMPLE]
        if place.endswith("reverse"):
            expected, gain, weights = expected.flip(0), gain.flip(0), weights.flip(1, 2)
        sink = ran(both_directions)[1]
        for name, wanted, rounded in (
            ("h", expected, EXACT),
            ("gate/decay", gain, EXACT),
            ("attention", weights, STORED),
        ):
            shown_ = torch.from_numpy(sink.array(f"{place}:{name}")).double()
            torch.testing.assert_close(shown_, wanted, **rounded)
        torch.testing.assert_close(torch.from_numpy(sink.array(f"{place}:scan/z")), 1 - gain, **EXACT)
        last = torch.arange(w.T) if place == "inner" else torch.full((w.T,), w.T - 1)
        assert sink.array(f"{place}:attention/allowed")[1].tolist() == last.tolist()


def test_what_is_no_causal_convolution_is_listed() -> None:
    def circular(x: Tensor) -> Tensor:
        return torch.fft.irfft(torch.fft.rfft(x, dim=1) * torch.fft.rfft(x.flip(0), dim=1), n=w.T, dim=1)

    trace, sink = ran(circular)
    assert not trace.recurrences and not trace.attentions
    (line,) = [one.text for one in sink.of(Log) if "Fourier" in one.text]
    code = circular.__code__
    assert line.startswith(
        f"A product of Fourier transforms over 13 steps in circular(), line {code.co_firstlineno + 1}, is not"
    )


def test_differences_of_neighbours_and_counts_are_not_listed() -> None:
    def neighbours(x: Tensor) -> Tensor:
        moved = F.pad(x[:, 1:] - x[:, :-1], (0, 0, 0, 1)) + F.pad(x[:, 2:] - x[:, :-2], (0, 0, 0, 2))
        return moved / (1 + x.square().cumsum(1))

    trace, sink = ran(neighbours)
    assert not trace.recurrences and not sink.of(Log)


def with_sink(x: Tensor, *, by_row: bool) -> Tensor:
    """Causal attention whose learned sink takes a share of every row and has no value, as in gpt-oss."""
    sink = torch.full((1,), 0.3, dtype=x.dtype)
    mask = torch.full((w.T, w.T), -torch.inf, dtype=x.dtype).triu(1)
    scores = torch.stack([x @ x.mT, 0.5 * x @ x.mT], 1) + mask
    if by_row:
        rows = [torch.cat([row, sink.expand(w.B, 2, 1)], -1).softmax(-1)[..., :-1] for row in scores.unbind(2)]
        weights = torch.stack(rows, 2)
    else:
        spread = torch.stack([sink] * w.T, 0).expand(w.B, 2, -1, -1)
        weights = torch.cat([scores, spread], -1).softmax(-1)[..., :-1]
    return (weights @ x[:, None]).mean(1)


@pytest.mark.parametrize("by_row", [False, True])
def test_a_sink_that_is_spread_over_the_steps_is_no_recurrence(by_row: bool) -> None:
    trace, _ = ran(lambda x: with_sink(with_sink(x, by_row=by_row), by_row=by_row))
    assert not trace.recurrences and not any(one.equivalent for one in trace.attentions)


def test_a_map_that_is_too_large_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalent, "MOST_NUMBERS", w.T**2 - 1)
    _, sink = ran(lambda x: w.by_doubling(x))
    assert "13 × 13 entries" in sink.refusals()["inner:attention"]
    assert "inner:h" in sink.names()
