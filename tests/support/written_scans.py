"""Linear recurrences, each written in one way that people write it, and plain loops in float64 for each of them.

Every model is a function of x (b, t, d) → (b, t, d) with constants drawn from a seed; a loop gives a, b, h as
(t, …) of one sequence and the map that the whole stands for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

B, T, D, N, SAMPLE = 2, 13, 4, 3, 1


def constants(*shape: int, seed: int = 3) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def given(seed: int = 0) -> Tensor:
    return torch.randn(B, T, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# --- decays between 0 and 1 that depend on the step (minGRU, gated linear recurrences) ---


def gated(x: Tensor) -> tuple[Tensor, Tensor]:
    """(a, b), (…, t, d): a minGRU's 1 − z and z h̃ (h̃ > 0, so that logarithms exist)."""
    z = torch.sigmoid(x @ constants(D, D))
    candidate = F.softplus(x @ constants(D, D, seed=4))
    return 1 - z, z * candidate


def by_running_sums(x: Tensor) -> Tensor:
    a, b = gated(x)
    decay = torch.exp(torch.cumsum(a.log(), 1))
    return decay * torch.cumsum(b / decay, 1)


def by_running_products(x: Tensor) -> Tensor:
    a, b = gated(x)
    decay = torch.cumprod(a, dim=1)
    return decay * torch.cumsum(b / decay, dim=1)


def by_logcumsumexp(x: Tensor) -> Tensor:
    """Heinsen 2023, as minGRU's authors write it: with an initial state, in logarithms."""
    k = x @ constants(D, D)
    log_a = -F.softplus(k)
    log_b = -F.softplus(-k) + F.softplus(x @ constants(D, D, seed=4)).log()
    first = torch.full((len(x), 1, D), 0.5, dtype=x.dtype).log()
    values = torch.cat([first, log_b], dim=1)
    total = F.pad(torch.cumsum(log_a, dim=1), (0, 0, 1, 0))
    log_h = total + torch.logcumsumexp(values - total, dim=1)
    return torch.exp(log_h)[:, 1:]


def by_doubling(x: Tensor) -> Tensor:
    a, b = gated(x)
    shift = 1
    while shift < a.shape[1]:
        before_a = F.pad(a[:, :-shift], (0, 0, shift, 0), value=1.0)
        before_b = F.pad(b[:, :-shift], (0, 0, shift, 0))
        b = a * before_b + b
        a = a * before_a
        shift *= 2
    return b


def by_doubling_in_place(x: Tensor) -> Tensor:
    a, b = (one.clone() for one in gated(x))
    for n in range(math.ceil(math.log2(a.shape[1]))):
        shift = 1 << n
        b[:, shift:] = b[:, shift:] + a[:, shift:] * b[:, :-shift].clone()
        a[:, shift:] = a[:, shift:] * a[:, :-shift].clone()
    return b


def combine(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return first[0] * second[0], second[0] * first[1] + second[1]


def tree(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Blelloch's scan by halves: pairs are joined, scanned, and spread again."""
    if a.shape[1] < 2:
        return a, b
    even, odd = (a[:, :-1:2], b[:, :-1:2]), (a[:, 1::2], b[:, 1::2])
    left = tree(*combine(even, odd))
    right = combine((left[0][:, : a[:, 2::2].shape[1]], left[1][:, : a[:, 2::2].shape[1]]), (a[:, 2::2], b[:, 2::2]))
    out = []
    for first, one, two in zip((a[:, :1], b[:, :1]), left, right, strict=True):
        whole = torch.empty_like(a)
        whole[:, :1], whole[:, 1::2], whole[:, 2::2] = first, one, two
        out.append(whole)
    return out[0], out[1]


def by_tree(x: Tensor) -> Tensor:
    return tree(*gated(x))[1]


def by_associative_scan(x: Tensor) -> Tensor:
    from torch._higher_order_ops.associative_scan import associative_scan

    found: Tensor = associative_scan(combine, gated(x), dim=1, combine_mode="generic")[1]
    return found


def step_by_step(x: Tensor) -> Tensor:
    a, b = gated(x)
    h = torch.zeros_like(b[:, 0])
    out = []
    for t in range(a.shape[1]):
        h = a[:, t] * h + b[:, t]
        out.append(h)
    return torch.stack(out, 1)


WAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "running sums": by_running_sums,
    "running products": by_running_products,
    "logcumsumexp": by_logcumsumexp,
    "doubling": by_doubling,
    "doubling in place": by_doubling_in_place,
    "tree": by_tree,
    "associative_scan": by_associative_scan,
}


# --- selective scan (Mamba): Δ, A, B, C, D ---


def selective(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Δ (…, t, d), A (d, n), B and C (…, t, n)."""
    delta = F.softplus(x @ constants(D, D))
    return delta, -torch.exp(constants(D, N, seed=5)), x @ constants(D, N, seed=6), x @ constants(D, N, seed=7)


def mamba_by_sums(x: Tensor) -> Tensor:
    delta, a, b, c = selective(x)
    logs = torch.einsum("btd,dn->btdn", delta, a)
    inputs = torch.einsum("btd,btn,btd->btdn", delta, b, x)
    total = logs.cumsum(1).exp()
    h = total * (inputs / total).cumsum(1)
    return torch.einsum("btdn,btn->btd", h, c) + x * constants(D, seed=8)


def mamba_by_doubling(x: Tensor) -> Tensor:
    delta, a, b, c = selective(x)
    decay = torch.exp(delta.unsqueeze(-1) * a)
    h = (delta.unsqueeze(-1) * b.unsqueeze(2)) * x.unsqueeze(-1)
    shift = 1
    while shift < x.shape[1]:
        h = torch.cat([h[:, :shift], h[:, shift:] + decay[:, shift:] * h[:, :-shift]], 1)
        decay = torch.cat([decay[:, :shift], decay[:, shift:] * decay[:, :-shift]], 1)
        shift *= 2
    y = (h @ c.unsqueeze(-1)).squeeze(-1)
    return y + constants(D, seed=8) * x


def mamba_step_by_step(x: Tensor) -> Tensor:
    delta, a, b, c = selective(x)
    decay = torch.exp(delta.unsqueeze(-1) * a)
    inputs = delta.unsqueeze(-1) * b.unsqueeze(2) * x.unsqueeze(-1)
    h = torch.zeros_like(inputs[:, 0])
    out = []
    for t in range(x.shape[1]):
        h = decay[:, t] * h + inputs[:, t]
        out.append((h * c[:, t].unsqueeze(1)).sum(-1))
    return torch.stack(out, 1) + x * constants(D, seed=8)


def first_state() -> Tensor:
    """(d, n) before the first step."""
    return constants(D, N, seed=22)


def mamba_from_a_state(x: Tensor) -> Tensor:
    """Step by step, and the state before the first step is not 0."""
    delta, a, b, c = selective(x)
    decay = torch.exp(delta.unsqueeze(-1) * a)
    inputs = delta.unsqueeze(-1) * b.unsqueeze(2) * x.unsqueeze(-1)
    h, out = first_state().expand(len(x), D, N), []
    for t in range(x.shape[1]):
        h = decay[:, t] * h + inputs[:, t]
        out.append((h * c[:, t].unsqueeze(1)).sum(-1))
    return torch.stack(out, 1) + x * constants(D, seed=8)


def mamba_channels_first(x: Tensor) -> Tensor:
    """States (b, d, t, n), stepped along their third axis."""
    delta, a, b, c = selective(x)
    steps, u = delta.transpose(1, 2), x.transpose(1, 2)
    decay = torch.exp(a[None, :, None, :] * steps[..., None])
    inputs = steps[..., None] * b[:, None] * u[..., None]
    h = x.new_zeros(len(x), D, N)
    out = []
    for t in range(x.shape[1]):
        h = decay[:, :, t] * h + inputs[:, :, t]
        out.append(torch.matmul(h, c[:, t].unsqueeze(-1))[:, :, 0])
    return (torch.stack(out, -1) + u * constants(D, seed=8)[:, None]).transpose(1, 2)


class InPlace(torch.autograd.Function):
    """A scan by halves that writes into its operands, padded to a power of two, as a custom function of autograd."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        length = 1 << (a.shape[1] - 1).bit_length()
        whole_a, whole_b = (F.pad(one, (0, 0, 0, 0, 0, length - one.shape[1])).clone() for one in (a, b))
        stride = 1
        while stride < length:  # up: the last of each group holds the whole group
            last_a, last_b = whole_a[:, 2 * stride - 1 :: 2 * stride], whole_b[:, 2 * stride - 1 :: 2 * stride]
            last_b.add_(last_a * whole_b[:, stride - 1 :: 2 * stride])
            last_a.mul_(whole_a[:, stride - 1 :: 2 * stride])
            stride *= 2
        stride //= 4
        while stride:  # down: the middle of each group gets what came before it
            middle_a, middle_b = whole_a[:, 3 * stride - 1 :: 2 * stride], whole_b[:, 3 * stride - 1 :: 2 * stride]
            before = slice(2 * stride - 1, length - stride, 2 * stride)
            middle_b.add_(middle_a * whole_b[:, before])
            middle_a.mul_(whole_a[:, before])
            stride //= 2
        return whole_b[:, : a.shape[1]]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        (out,) = gradients
        h, carried = torch.zeros_like(b[:, 0]), torch.zeros_like(b[:, 0])
        states = []
        for t in range(a.shape[1]):
            states.append(h)
            h = a[:, t] * h + b[:, t]
        to_a, to_b = torch.zeros_like(a), torch.zeros_like(b)
        for t in reversed(range(a.shape[1])):
            carried = carried + out[:, t]
            to_a[:, t], to_b[:, t] = carried * states[t], carried
            carried = carried * a[:, t]
        return to_a, to_b


def mamba_in_place(x: Tensor) -> Tensor:
    delta, a, b, c = selective(x)
    decay = torch.exp(delta.unsqueeze(-1) * a)
    h = InPlace.apply(decay, delta.unsqueeze(-1) * b.unsqueeze(2) * x.unsqueeze(-1))
    return (h @ c.unsqueeze(-1)).squeeze(-1) + constants(D, seed=8) * x


# --- constant complex decays (LRU, S4D) ---


def eigenvalues(*shape: int) -> Tensor:
    size, angle = torch.sigmoid(constants(*shape, seed=9)), constants(*shape, seed=10)
    return torch.polar(size, angle)


def lru_matrices() -> tuple[Tensor, Tensor, Tensor]:
    """λ (n,), B (n, d), C (d, n)."""
    b = torch.complex(constants(N, D, seed=11), constants(N, D, seed=12))
    c = torch.complex(constants(D, N, seed=13), constants(D, N, seed=14))
    return eigenvalues(N), b, c


def lru_by_doubling(x: Tensor) -> Tensor:
    decay, b, c = lru_matrices()
    h = x.to(b.dtype) @ b.T
    decay = decay.expand(h.shape)
    shift = 1
    while shift < x.shape[1]:
        h = torch.cat([h[:, :shift], h[:, shift:] + decay[:, shift:] * h[:, :-shift]], 1)
        decay = torch.cat([decay[:, :shift], decay[:, shift:] * decay[:, :-shift]], 1)
        shift *= 2
    return (h @ c.T).real + x * constants(D, seed=8)


def lru_step_by_step(x: Tensor) -> Tensor:
    decay, b, c = lru_matrices()
    h = torch.zeros(len(x), N, dtype=b.dtype)
    out = []
    for t in range(x.shape[1]):
        h = decay * h + x[:, t].to(b.dtype) @ b.T
        out.append((h @ c.T).real + x[:, t] * constants(D, seed=8))
    return torch.stack(out, 1)


def s4d_kernel(length: int) -> tuple[Tensor, Tensor, Tensor]:
    """(kernel (d, l), e^{ΔA} (d, n), C (d, n)): S4D-Lin by its Vandermonde matrix, as its authors write it."""
    a = torch.complex(-torch.full((D, N), 0.5, dtype=torch.float64), math.pi * torch.arange(N).double().expand(D, N))
    step = torch.exp(constants(D, seed=15) * 0.3 - 1)
    c = torch.complex(constants(D, N, seed=16), constants(D, N, seed=17))
    scaled = a * step[:, None]
    c = c * (torch.exp(scaled) - 1) / a
    powers = torch.exp(scaled.unsqueeze(-1) * torch.arange(length))
    return 2 * torch.einsum("hn,hnl->hl", c, powers).real, torch.exp(scaled), c


def s4d_by_fft(x: Tensor) -> Tensor:
    length = x.shape[1]
    kernel, _, _ = s4d_kernel(length)
    u = x.transpose(1, 2)
    y = torch.fft.irfft(torch.fft.rfft(u, n=2 * length) * torch.fft.rfft(kernel, n=2 * length), n=2 * length)
    return (y[..., :length] + u * constants(D, seed=8).unsqueeze(-1)).transpose(1, 2)


def free_kernel_by_fft(x: Tensor) -> Tensor:
    """A long convolution whose kernel is a parameter (Hyena, CKConv)."""
    length = x.shape[1]
    kernel = constants(D, length, seed=18) * torch.exp(-0.2 * torch.arange(length))
    spectrum = torch.fft.rfft(x, n=2 * length, dim=1) * torch.fft.rfft(kernel.T, n=2 * length, dim=0)
    return torch.fft.irfft(spectrum, n=2 * length, dim=1)[:, :length]


# --- linear attention with decay (retention, gated linear attention) ---


def heads(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v (b, a, t, d) of two heads."""
    own = x.unflatten(-1, (2, -1)).transpose(1, 2)
    return own, 2 * own + 0.3, 3 * own - 0.1


DECAYS = (0.9, 0.6)


def retention_parallel(x: Tensor) -> Tensor:
    q, k, v = heads(x)
    t = torch.arange(x.shape[1])
    gamma = torch.tensor(DECAYS, dtype=x.dtype)[:, None, None]
    d = gamma ** (t[:, None] - t).clamp(min=0) * (t[:, None] >= t)
    return ((q @ k.mT * d) @ v).transpose(1, 2).flatten(2)


def gated_retention_parallel(x: Tensor) -> Tensor:
    """In one product too, with a decay for each sequence, step and head (gated linear attention, Yang et al. 2024)."""
    q, k, v = heads(x)
    total = chunk_decays(x).cumsum(1).transpose(1, 2)
    d = torch.exp((total[..., :, None] - total[..., None, :]).tril()).tril()
    return ((q @ k.mT * d) @ v).transpose(1, 2).flatten(2)


CHUNK = 4


def chunked(x: Tensor) -> Tensor:
    """Decays that depend on the step, chunk by chunk in the layout of Mamba-2's reference; the last chunk is padded."""
    q, k, v = (one.transpose(1, 2) for one in heads(x))  # (b, t, a, d)
    length = -(-x.shape[1] // CHUNK) * CHUNK
    c, b, u = (
        F.pad(one, (0, 0, 0, 0, 0, length - x.shape[1])).unflatten(1, (-1, CHUNK)) for one in (q, k, v)
    )  # (b, c, l, a, d)
    logs = F.pad(chunk_decays(x), (0, 0, 0, length - x.shape[1])).unflatten(1, (-1, CHUNK)).permute(0, 3, 1, 2)
    total = torch.cumsum(logs, dim=-1)
    within = torch.exp((total[..., :, None] - total[..., None, :]).tril()).tril()
    diagonal = torch.einsum("bclan,bcsan,bacls,bcsap->bclap", c, b, within, u)
    states = torch.einsum("bclan,bacl,bclap->bcapn", b, torch.exp(total[..., -1:] - total), u)
    carried, before = torch.zeros_like(states[:, 0]), []
    for chunk in range(states.shape[1]):
        before.append(carried)
        carried = torch.exp(total[:, :, chunk, -1])[..., None, None] * carried + states[:, chunk]
    earlier = torch.einsum("bclan,bcapn,bacl->bclap", c, torch.stack(before, 1), torch.exp(total))
    return (diagonal + earlier).flatten(1, 2)[:, : x.shape[1]].flatten(2)


def chunk_decays(x: Tensor) -> Tensor:
    """(b, t, a) logarithms of the decay of two heads."""
    return -F.softplus(x @ constants(D, 2, seed=19))


def linear_attention_by_sums(x: Tensor) -> Tensor:
    """Without a normaliser: φ(q)·Σ φ(k)ᵀv, all states kept."""
    q, k, v = heads(x)
    state = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), dim=2)
    return torch.einsum("batd,batde->bate", q, state).transpose(1, 2).flatten(2)


def retention_map(x: Tensor) -> Tensor:
    """(a, t, s) q_t·k_s γ^(t−s) by loops."""
    q, k, _ = (one[SAMPLE] for one in heads(x))
    out = torch.zeros(2, T, T, dtype=torch.float64)
    for a in range(2):
        for t in range(T):
            for s in range(t + 1):
                out[a, t, s] = (q[a, t] * k[a, s]).sum() * DECAYS[a] ** (t - s)
    return out


class Scanned(nn.Module):
    """A model whose forward is one of these functions, in a place named "inner"; its one parameter is 1."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.inner = Inner(function)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner(x)
        return y


class Inner(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.one = nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x * self.one)
