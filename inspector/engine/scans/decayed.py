"""Linear attention with decay as one product, y = (Q Kᵀ ⊙ D) V (retention, and a chunk of a gated linear attention).

D[t, s] = Π_{s<j≤t} a_j is found by its values: 1 on the diagonal, 0 above it, and D[t, s] = D[t, s+1] D[s+1, s]. The
whole is the recurrence S_t = a_t S_{t−1} + k_t v_tᵀ, y_t = q_tᵀ S_t (Sun et al. 2023, arXiv 2307.08621).
Letters: b sequence, a head, t and s step, d entry of a key, e entry of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.cells.check import Check
from inspector.engine.recurrent.traced.record.operation import Call, given_to, name_of
from inspector.engine.scans.equivalent import MOST_MAPS, MOST_NUMBERS, channel_names
from inspector.engine.scans.factors import PRODUCTS as ELEMENTWISE
from inspector.engine.scans.mixing import FEWEST, calls_named
from inspector.engine.scans.recurrences import Steps
from inspector.engine.scans.values import Flow, Value, rounding, wide
from inspector.engine.trace.trace import Attention

FORMULA = "M[t, s] = q_t · k_s Π_{s<j≤t} a_j, the part of y_t = Σ_s M[t, s] v_s that comes from step s"
DEEPEST = 3
"""Products within products that are taken apart."""
PRODUCTS = frozenset({"matmul", "__matmul__", "bmm"})


@dataclass(frozen=True, slots=True)
class Decayed:
    """Such a computation.

    Attributes:
        made: the number of the operation that made y.
        y: the output; `arranged` takes a tensor like it to (b, a, t, e).
        decay: a_t, (b or 1, a or 1, t); the first one, into which nothing is carried, is that of the second.
        query, key, value: (b, a, t, ·).
        weights: (b, a, t, s) where the model computed them.
    """

    made: int
    y: Value
    arranged: Callable[[Tensor], Tensor]
    decay: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    weights: Tensor | None = None

    def weights_of(self, sample: int, heads: Sequence[int]) -> Tensor:
        """(a, t, s) of some heads of one sequence, in double precision."""
        if self.weights is not None:
            return wide(self.weights[sample, list(heads)])
        query, key = (wide(one[sample, list(heads)]) for one in (self.query, self.key))
        rows = wide(self.decay[sample if len(self.decay) > 1 else 0])
        rows = rows[list(heads)] if len(rows) > 1 else rows
        left, found = torch.zeros(query.shape[:2], dtype=torch.float64), torch.zeros_like(query @ key.mT)
        for t in range(query.shape[1]):
            left = left * rows[:, t, None]
            left[:, t] = 1.0
            found[:, t] = left * (key @ query[:, t, :, None])[..., 0]
        return found


def decayed_products(flow: Flow, lengths: Collection[int]) -> list[Decayed]:
    """Those of a run. `lengths`: numbers of steps that its sequences have."""
    found = []
    for n in calls_named(flow.table, PRODUCTS.__contains__):
        call = flow.table.calls[n]
        weights = call[1][0] if call[1] else None
        if not isinstance(weights, Tensor) or not isinstance(call[3], Tensor):
            continue
        if weights.dim() >= 3 and weights.shape[-1] == weights.shape[-2] and weights.shape[-1] in lengths:
            one = _of_product(flow, n, call)
            if one is not None:
                found.append(one)
    return found


def _of_product(flow: Flow, n: int, call: Call) -> Decayed | None:
    weights, values = call[1][0].detach(), call[1][1].detach()
    steps = weights.shape[-1]
    if steps < FEWEST or not weights.is_floating_point() or bool(weights.triu(1).any()):
        return None
    parts = _apart(flow, call[1][0], steps, DEEPEST)
    decays, scores = ([one for kind, one in parts if kind == wanted] for wanted in ("decay", "scores"))
    made = _product_of(flow, scores[0]) if len(scores) == len(decays) == 1 else None
    if made is None or name_of(flow.table.calls[made][0]) not in PRODUCTS:
        return None
    decay = decays[0].detach()
    scale = torch.ones((), dtype=weights.dtype)
    for kind, one in parts:
        scale = scale * one.detach().reshape(()) if kind == "scale" else scale
    query, key = (one.detach() for one in flow.table.calls[made][1][:2])
    between = decay.diagonal(-1, -2, -1)
    own = torch.cat([between[..., :1], between], -1)
    own = own.unsqueeze(-2) if weights.dim() == 3 else own
    heads = _four(weights).shape[1]  # one product of queries and keys may be that of all heads
    query, key, values = (_four(one).expand(-1, heads, -1, -1) for one in (query * scale, key.mT, values))
    return Decayed(
        n, flow.value(call[3]), _four, own.reshape((1,) * (3 - own.dim()) + tuple(own.shape)), query,
        key=key, value=values, weights=_four(weights),
    )  # fmt: skip


def _product_of(flow: Flow, scores: Tensor) -> int | None:
    """The number of the operation that made scores: of the product, where only an axis of heads was put in after it."""
    made = flow.table.maker(id(scores))
    if made is None or name_of(flow.table.calls[made][0]) not in ("unsqueeze", "__getitem__"):
        return made
    before = given_to(flow.table.calls[made])
    put_in = len(before) == 1 and scores.dim() == 4 and scores.shape[1] == 1
    return flow.table.maker(id(before[0])) if put_in and before[0].shape == scores.squeeze(1).shape else made


def _apart(flow: Flow, tensor: Tensor, steps: int, deep: int) -> list[tuple[str, Tensor]]:
    """(kind, tensor) of what weights are the product of: a "decay" mask, one "scale" for all, "scores"."""
    if tensor.numel() == 1:
        return [("scale", tensor)]
    if tensor.is_floating_point() and tensor.shape[-2:] == (steps, steps) and _is_semiseparable(tensor.detach()):
        return [("decay", tensor)]
    number = flow.table.maker(id(tensor))
    call = None if number is None or not deep else flow.table.calls[number]
    if call is None or name_of(call[0]) not in ELEMENTWISE:
        return [("scores", tensor)]
    found: list[tuple[str, Tensor]] = []
    for one in call[1][:2]:
        found += _apart(flow, one if isinstance(one, Tensor) else torch.tensor(float(one)), steps, deep - 1)
    return found


def _four(tensor: Tensor) -> Tensor:
    """(b, a, ·, ·): one head where there is no axis of heads."""
    return tensor.unsqueeze(1) if tensor.dim() == 3 else tensor


def _is_semiseparable(mask: Tensor) -> bool:
    """Whether a (…, t, t) holds products of decays between two steps, and not all of them 1."""
    own = wide(mask)
    steps = own.shape[-1]
    if bool(own.triu(1).any()) or not bool((own.diagonal(0, -2, -1) == 1).all()):
        return False
    between = own.diagonal(-1, -2, -1)  # (…, s): D[s + 1, s]
    left = own[..., 1:, : steps - 1]
    made = own[..., 1:, 1:] * between.unsqueeze(-2)
    below = torch.ones(steps - 1, steps - 1, dtype=torch.bool).tril()
    same = (left - made).abs().masked_fill(~below, 0.0).amax() <= rounding(mask.dtype)
    return bool(same) and bool((between != 1).any())


def steps_of(found: Decayed, sample: int | None) -> Steps:
    """The states S of every head, flat (t + 1, b, a d e), of all sequences or of one."""
    at = slice(None) if sample is None else slice(sample, sample + 1)
    given = torch.einsum("batd,bate->tbade", found.key[at], found.value[at])
    rows = found.decay[at if len(found.decay) > 1 else slice(None)].permute(2, 0, 1)
    rows = rows[:1] if bool((rows == rows[:1]).all()) else rows
    decay = rows[..., None, None].expand(-1, -1, *given.shape[2:]).flatten(2)
    a, b = wide(decay), wide(given.flatten(2))
    a, states = a.expand(len(b), *a.shape[1:]), [torch.zeros_like(b[0])]
    for row, gain in zip(b, a, strict=True):
        states.append(gain * states[-1] + row)
    return Steps(torch.stack(states).to(given.dtype), given.flatten(2), decay, 0 if sample is None else sample)


def check_of(found: Decayed, steps: Steps) -> Check:
    """How well q·S reproduces what the model computed."""
    at = slice(steps.base, steps.base + steps.b.shape[1])
    query, y = wide(found.query[at]), wide(found.arranged(found.y.numbers())[at])
    states = wide(steps.h[1:]).unflatten(-1, (query.shape[1], query.shape[3], -1))
    error = float((torch.einsum("batd,tbade->bate", query, states) - y).abs().amax())
    return Check(error, rounding(found.y.tensor.dtype) * max(float(y.abs().amax()), 1e-300))


def gradient_of(found: Decayed, sample: int | None, gradient: Tensor) -> Tensor:
    """From the gradient at y to that at the states, (t, b, a d e): q_t ⊗ ∂L/∂y_t."""
    at = slice(None) if sample is None else slice(sample, sample + 1)
    return torch.einsum("batd,bate->tbade", found.query[at], found.arranged(gradient)[at]).flatten(2)


def map_of(found: Decayed, place: str, module: str, sample: int) -> Attention | None:
    """The map of the selected sequence, checked against the model's output; None where one head's is too large."""
    heads, steps = found.query.shape[1:3]
    count = min(heads, MOST_MAPS, MOST_NUMBERS // (steps * steps))
    if not count:
        return None
    chosen = sorted({round(i * (heads - 1) / max(1, count - 1)) for i in range(count)})
    weights = found.weights_of(sample, chosen)
    made = weights @ wide(found.value[sample, chosen])
    y = wide(found.arranged(found.y.numbers())[sample, chosen])
    allowed = rounding(found.y.tensor.dtype) * max(float(y.abs().amax()), 1e-300)
    none = weights.new_zeros(1, len(chosen), 0, 1)
    return Attention(
        place=place, module=module, query=none, key=none, scale=1.0, causal=True,
        mask=torch.ones(1, 1, steps, steps, dtype=torch.bool).tril(), weights=weights.float()[None],
        check=Check(float((made - y).abs().amax()), allowed), kept=sample,
        note=channel_names(chosen, heads, "head"), equivalent=FORMULA,
    )  # fmt: skip
