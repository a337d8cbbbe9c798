"""A long convolution as a scan: its states rebuilt from the powers behind its kernel, and its map M[t, s] = k_{t−s}."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from inspector.engine.cells.check import Check
from inspector.engine.scans.convolution import Convolution, Modes, convolved
from inspector.engine.scans.equivalent import MOST_MAPS, MOST_NUMBERS, channel_names
from inspector.engine.scans.recurrences import Steps
from inspector.engine.scans.values import rounding, wide
from inspector.engine.trace.trace import Attention

FORMULA = "M[t, s] = k_{t−s}, the part of y_t = Σ_s M[t, s] u_s that comes from step s; k is the kernel"


def steps_of(found: Convolution, modes: Modes, sample: int | None) -> tuple[Steps, Check]:
    """The states h_t = λ h_{t−1} + u_t of every channel, and how well factor · Re Σ C h reproduces the output."""
    u = found.layout.rows(found.u.numbers(), sample)
    entries = modes.decay.shape[1]
    given = u.repeat_interleave(entries, -1)
    own = torch.complex64 if u.dtype == torch.float32 else torch.complex128
    dtype = own if modes.decay.is_complex() else u.dtype
    a = modes.decay.reshape(1, 1, -1)
    states = [torch.zeros(given.shape[1:], dtype=a.dtype)]
    for row in wide(given):
        states.append(a[0] * states[-1] + row)
    h = torch.stack(states)
    made = modes.factor * (h[1:].unflatten(-1, (-1, entries)) * modes.readout.to(h.dtype)).sum(-1)
    made = made.real if made.is_complex() else made
    y = wide(found.layout.rows(found.y.numbers(), sample))
    error = float((made - y).abs().amax())
    allowed = rounding(u.dtype) * max(float(y.abs().amax()), 1e-300)
    steps = Steps(h.to(dtype), given.to(dtype), a.to(dtype), 0 if sample is None else sample)
    return steps, Check(error, allowed)


def gradient_of(found: Convolution, modes: Modes, sample: int | None) -> Callable[[Tensor], Tensor]:
    """From the gradient at the output to that at the states, (t, b, k): ∂L/∂h = factor · conj(C) ∂L/∂y."""
    return partial(_taken_back, found, modes, sample)


def _taken_back(found: Convolution, modes: Modes, sample: int | None, gradient: Tensor) -> Tensor:
    rows = found.layout.rows(gradient, sample)
    c = (modes.factor * modes.readout.conj()).to(torch.promote_types(rows.dtype, modes.readout.dtype))
    return (rows.unsqueeze(-1).to(c.dtype) * c).flatten(-2)


def map_of(found: Convolution, place: str, module: str, sample: int) -> Attention | None:
    """The map of the selected sequence, checked against the model's output; None where one channel's is too large."""
    layout = found.layout
    steps, channels = layout.shape[layout.steps], len(found.kernel)
    count = min(channels, MOST_MAPS, MOST_NUMBERS // (steps * steps))
    if not count:
        return None
    chosen = sorted({round(i * (channels - 1) / max(1, count - 1)) for i in range(count)})
    lag = torch.arange(steps)[:, None] - torch.arange(steps)
    kernel = found.kernel[chosen]
    weights = kernel[:, lag.clamp(min=0)].masked_fill(lag < 0, 0.0).to(torch.float32)[None]
    u, y = (wide(layout.rows(one.numbers(), sample)[:, 0]).T[chosen] for one in (found.u, found.y))
    error = float((convolved(u, kernel) - y).abs().amax())
    allowed = rounding(found.y.tensor.dtype) * max(float(y.abs().amax()), 1e-300)
    none = weights.new_zeros(1, weights.shape[1], 0, 1)
    return Attention(
        place=place, module=module, query=none, key=none, scale=1.0, causal=True,
        mask=torch.ones(1, 1, steps, steps, dtype=torch.bool).tril(), weights=weights,
        check=Check(error, allowed), kept=sample, note=channel_names(chosen, channels), equivalent=FORMULA,
    )  # fmt: skip
