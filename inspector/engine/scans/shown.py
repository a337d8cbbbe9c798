"""What a scan puts beside its recurrence: the map that it stands for, and its factors under the names of the code."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from inspector.engine.scans.diagonal import Diagonal
from inspector.engine.scans.equivalent import Map, channel_names, map_of
from inspector.engine.scans.factors import Factor
from inspector.engine.scans.mixed import FORMULA as MIXED
from inspector.engine.scans.mixed import NOTE as OF_MATRICES
from inspector.engine.scans.mixed import mixed_of, norms
from inspector.engine.scans.readout import Reading
from inspector.engine.scans.recurrences import Steps
from inspector.engine.scans.roles import Roles, factors_for_map, roles_of
from inspector.engine.scans.values import Flow, Layout, wide
from inspector.engine.trace.trace import Attention, Recurrence

FORMULA = "M[t, s] = C_t (Π_{s<j≤t} a_j) B_s, the part of y_t = Σ_s M[t, s] x_s that comes from step s"
OF_STATES = "M[t, s] = (Π_{s<j≤t} a_j) B_s, the part of h_t = Σ_s M[t, s] x_s that comes from step s"
MAGNITUDE = "|M[t, s]|: M is complex, and its magnitude is shown; "
PRODUCT = "; x is the product {}: which of them is the token is not known"


def stands_for(
    flow: Flow, found: Diagonal, steps: Steps, recurrence: Recurrence, sample: int, reading: Reading
) -> tuple[Attention | None, Mapping[str, Tensor]]:
    """The map of a scan as an attention of its place, None where it is too large, and its factors by name."""
    layout = found.layout
    index = sample - steps.base
    if len(steps.b) < layout.shape[layout.steps] - 1:
        return None, {}  # padded to a longer scan
    units = [layout.shape[n] for n in layout.units]
    shape = [1] * len(layout.shape)
    for n, size in zip(layout.units, units, strict=True):
        shape[n] = size
    decay = _narrowed(steps.a[0, 0].reshape(shape) if found.a is None else found.a.numbers(), layout)
    mixed = mixed_of(flow, found, reading)
    roles = roles_of(flow, found, decay, reading)
    start = steps.h[0, index].reshape(shape)
    factors = factors_for_map(found, roles, decay, start, len(steps.b))
    parts = _named(flow, found, roles, len(steps.b))
    own = None if mixed is None else norms(mixed, wide(steps.a[:, 0 if steps.a.shape[1] == 1 else index]), len(steps.b))
    if mixed is not None and own is not None:
        whole = Map(own[None].to(torch.float32), (0,), mixed.check)
        return _attention(whole, OF_MATRICES, MIXED, recurrence, sample), parts
    made = map_of(factors, found.h.tensor.dtype)
    if made is None:
        return None, parts
    note = channel_names(made.channels, factors.y.shape[1])
    if len(roles.x) > 1:
        note += PRODUCT.format(" · ".join(_variable(flow, one, found) or "a tensor without a name" for one in roles.x))
    formula = OF_STATES if roles.readout is None else FORMULA
    formula = MAGNITUDE + formula if made.magnitude else formula
    return _attention(made, note, formula, recurrence, sample), parts


def _narrowed(decay: Tensor, layout: Layout) -> Tensor:
    """Without the repetitions along axes of units, each of which would be a map of its own."""
    for n in layout.units:
        axis = n - len(layout.shape)
        if -axis > decay.dim():
            continue
        first = decay.narrow(axis, 0, 1)
        decay = first if bool(((decay - first).abs() <= 1e-9 * decay.abs().amax()).all()) else decay
    return decay


def _attention(made: Map, note: str, formula: str, recurrence: Recurrence, sample: int) -> Attention:
    """The map as an attention that was recorded for one sequence."""
    weights = made.weights[None]
    steps = weights.shape[-1]
    none = weights.new_zeros(1, weights.shape[1], 0, 1)
    return Attention(
        place=recurrence.place, module=recurrence.module, query=none, key=none, scale=1.0, causal=True,
        mask=torch.ones(1, 1, steps, steps, dtype=torch.bool).tril(), weights=weights, check=made.check, kept=sample,
        note=note, equivalent=formula,
    )  # fmt: skip


def _named(flow: Flow, found: Diagonal, roles: Roles, count: int) -> dict[str, Tensor]:
    """The factors of b and the readout, (t, k) of the selected sequence, by the names of the code's variables.

    Where a factor has no name in the function that multiplied it, it is called by its role.
    """
    parts: dict[str, Tensor] = {}
    own = [("input", one) for one in roles.x] + [("input weight", one) for one in roles.weights]
    if roles.readout is not None:
        own.append(("readout", Factor(roles.readout.numbers, roles.readout.c)))
    for role, factor in own:
        if not factor.extends(found.layout.steps, found.layout.shape):
            continue
        name = _variable(flow, factor, found) or role
        while name in parts:
            name += "'"
        parts[name] = _rows(factor.numbers, found)[-count:]
    return parts


def _rows(numbers: Tensor, found: Diagonal) -> Tensor:
    """(t, k) of the selected sequence, without the axes along which it is repeated."""
    layout = found.layout
    whole = numbers[(None,) * (len(layout.shape) - numbers.dim())]
    if layout.batch is not None:
        sample = layout.sample if whole.shape[layout.batch] > 1 else 0
        whole = whole.narrow(layout.batch, sample, 1)
    rows: Tensor = whole.movedim(layout.steps, 0).flatten(1)
    return torch.view_as_real(rows.contiguous()).flatten(1) if rows.is_complex() else rows


def _variable(flow: Flow, factor: Factor, found: Diagonal) -> str:
    """The name that a tensor has where the scan was computed."""
    tensor = factor.value.tensor
    wanted = tensor.data_ptr(), tensor.numel()
    for n in (found.b.made, found.h.made):
        if not 0 <= n < len(flow.table.calls):
            continue
        outer, frame = flow.table.calls[n][4]
        for one in (frame, *(above for above, _ in reversed(outer))):
            held = {name: value for name, value in one.f_locals.items() if isinstance(value, Tensor)}
            same = [name for name, value in held.items() if value is tensor]
            same += [name for name, value in held.items() if (value.data_ptr(), value.numel()) == wanted]
            if same:
                return same[0]
    return ""
