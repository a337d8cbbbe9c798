"""Long convolutions by Fourier transforms, y = irfft(rfft(u) · rfft(k)): their kernel, and the states behind it.

A kernel k_l = c · Re Σ_n C_n λ_nˡ is that of a diagonal recurrence with states h_t = λ h_{t−1} + u_t (S4D: Gu et al.
2022, arXiv 2206.11893): the powers λˡ stand in a tensor that the kernel was made from.
Letters: d channel, n state entry of a channel, l lag.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.recurrent.traced.record.operation import name_of, results_of
from inspector.engine.scans.diagonal import NEAR, layout_of
from inspector.engine.scans.mixing import INVERSE, Stretch
from inspector.engine.scans.values import Flow, Layout, Value, laid, rounding, wide

FORWARD = frozenset({"fft_rfft", "fft_fft"})
AFTER = 6
"""Operations after the inverse transform among which the cut to the length of the sequence is looked for."""


@dataclass(frozen=True, slots=True)
class Convolution:
    """y_t = Σ_l k_l u_{t−l}: the input u and output y in one layout, the kernel (d, l) with channels as the layout has
    them, and where they were found the powers that it is made of."""

    u: Value
    y: Value
    layout: Layout
    kernel: Tensor
    modes: Modes | None


@dataclass(frozen=True, slots=True)
class Modes:
    """k = factor · Re Σ_n C λˡ: λ and C (d, n), double precision."""

    decay: Tensor
    readout: Tensor
    factor: float


def convolutions(flow: Flow, stretch: Stretch, batch: int, sample: int) -> list[Convolution]:
    """The causal convolutions of a stretch."""
    found = []
    for n in stretch.calls:
        if name_of(flow.table.calls[n][0]) in INVERSE:
            one = _of_transform(flow, n, stretch.steps, batch, sample)
            if one is not None:
                found.append(one)
    return found


def _of_transform(flow: Flow, n: int, steps: int, batch: int, sample: int) -> Convolution | None:
    out = results_of(flow.table.calls[n][3])[0]
    given = list(_transformed(flow, flow.value(out)))
    for y in flow.made_by(range(n, n + AFTER)):
        layout = None if y.tensor.is_complex() else layout_of(y.tensor, steps, batch, sample)
        if layout is None or layout.shape[layout.steps] != steps:
            continue
        for u in given:
            for k in given:
                if u.tensor.shape != y.tensor.shape or k is u or k.tensor.is_complex():
                    continue
                kernel = _kernel(k.tensor.detach(), layout)
                if kernel is not None and _meets(y.tensor.detach(), u.tensor.detach(), kernel, layout):
                    return Convolution(u, y, layout, kernel, _modes(flow, k, kernel))
    return None


def _transformed(flow: Flow, value: Value) -> Iterator[Value]:
    """What was given to the transforms that lead to a value, cut to what is no padding, nearest first."""
    seen: set[int] = set()
    for one in (value, *flow.before(value, 40)):
        number = flow.table.maker(id(one.tensor))
        if number is not None and name_of(flow.table.calls[number][0]) in FORWARD and number not in seen:
            seen.add(number)
            yield flow.value(flow.table.calls[number][1][0])


def _kernel(tensor: Tensor, layout: Layout) -> Tensor | None:
    """A kernel (d, l) in double precision, one row for each channel of a layout; None where it is none."""
    steps = layout.shape[layout.steps]
    for shape in laid(_less(tensor.shape, layout, steps), _flat(layout)):
        rows = tensor.reshape(shape).movedim(layout.steps, -1)
        own = list(layout.shape)
        own[layout.steps] = rows.shape[-1]
        if layout.batch is not None:
            own[layout.batch] = 1
        del own[layout.steps]
        return wide(rows.expand(*own, rows.shape[-1]).flatten(0, -2)[:, :steps])
    return None


def _less(shape: torch.Size, layout: Layout, steps: int) -> tuple[int, ...]:
    """The shape of a kernel, as long as the sequence or longer taken to be as long."""
    return tuple(steps if size >= steps and n == _axis(shape, layout, steps) else size for n, size in enumerate(shape))


def _axis(shape: torch.Size, layout: Layout, steps: int) -> int:
    last = layout.steps - len(layout.shape) + len(shape)
    return last if 0 <= last < len(shape) else len(shape) - 1


def _flat(layout: Layout) -> tuple[int, ...]:
    return tuple(1 if n == layout.batch else size for n, size in enumerate(layout.shape))


def _meets(y: Tensor, u: Tensor, kernel: Tensor, layout: Layout) -> bool:
    """Whether y is the causal convolution of u, for the selected sequence and all channels."""
    rows = [wide(layout.rows(one, layout.sample if layout.batch is not None else None)[:, 0]).T for one in (y, u)]
    if len(kernel) != len(rows[0]) or kernel.shape[1] < rows[0].shape[1]:
        return False
    error = float((convolved(rows[1], kernel) - rows[0]).abs().amax())
    return error <= rounding(y.dtype) * max(float(rows[0].abs().amax()), 1e-300)


def convolved(u: Tensor, kernel: Tensor) -> Tensor:
    """Σ_l k_l u_{t−l} for u and k (d, t), by sums and not by transforms: (d, t)."""
    steps = u.shape[1]
    padded = torch.nn.functional.pad(u, (steps - 1, 0))[None]
    made: Tensor = torch.nn.functional.conv1d(padded, kernel[:, :steps].flip(1)[:, None], groups=len(u))[0]
    return made


def _modes(flow: Flow, k: Value, kernel: Tensor) -> Modes | None:
    """The powers and coefficients of a kernel, where it was made of them."""
    before = flow.before(k, 60)
    for powers in before:
        base = _base(powers.tensor.detach(), kernel.shape[1])
        if base is None or base.dim() < 1:
            continue
        table = wide(powers.tensor.detach().movedim(-1, 0)[: kernel.shape[1]])  # (l, …)
        for coefficients in _coefficients(before, base):
            found = _fitting(table, coefficients, kernel)
            if found is not None:
                readout, factor = found
                return Modes(base.expand(readout.shape).reshape(len(kernel), -1), readout, factor)
    return None


def _coefficients(before: Sequence[Value], base: Tensor) -> Iterator[Tensor]:
    """What powers may be multiplied with: each tensor that fits their axes, and nothing."""
    for one in before:
        for shape in laid(one.tensor.shape, base.shape):
            yield wide(one.tensor.detach().reshape(shape))
    yield torch.ones(base.shape, dtype=torch.float64)


def _base(powers: Tensor, length: int) -> Tensor | None:
    """λ (…) of powers (…, l) with 1 first, each λ times the one before; None for any other tensor."""
    if powers.dim() < 2 or powers.shape[-1] < length or length < 3:
        return None
    own = wide(powers[..., :length])
    base = own[..., 1]
    tolerance = rounding(powers.dtype)
    same = float((own[..., 1:] - base[..., None] * own[..., :-1]).abs().amax()) <= tolerance
    return base if same and float((own[..., 0] - 1).abs().amax()) <= tolerance and bool((base != 1).any()) else None


def _fitting(powers: Tensor, coefficients: Tensor, kernel: Tensor) -> tuple[Tensor, float] | None:
    """(C (d, n), factor) where the kernel is factor · Re Σ_n C λˡ."""
    whole = coefficients.expand(powers.shape[1:])
    if whole.dim() < 1 or whole.numel() % len(kernel) or not whole.numel():
        return None
    c = whole.reshape(len(kernel), -1)
    made = torch.einsum("dn,ldn->dl", c.to(powers.dtype), powers.reshape(len(powers), len(kernel), -1))
    made = made.real if made.is_complex() else made
    size = float(kernel.abs().amax())
    for factor in (1.0, 2.0):
        if float((factor * made - kernel).abs().amax()) <= NEAR**2 * size:
            return c, factor
    return None
