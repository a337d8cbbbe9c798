"""The algebra that all gated steps share: sums of row-scaled weight matrices, Σ_g diag(a_g) W_g.

Letters: t step, b sample, g gate, h row (hidden unit), r column (entry of the previous h), p vector.
Weights of all gates lie one below the other: W (g·h, r); coefficients are a (t, b, g, h).
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.linear import linear


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the arithmetic: for half and bfloat16 weights it is float32."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def prepare(tensor: Tensor | None) -> Tensor | None:
    """A weight, detached and in the dtype of the arithmetic; None (no bias) stays None."""
    return None if tensor is None else tensor.detach().to(compute_dtype(tensor.dtype))


def as_given(tensor: Tensor | None) -> Tensor | None:
    """A weight as the module stores it, with its gradients: edited runs compute with it."""
    return tensor


def plain_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x Wᵀ + b by torch's own product: x (n, i), weight (o, i) → (n, o), a new tensor."""
    return x @ weight.T if bias is None else torch.addmm(bias, x, weight.T)


def pre_activations(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor | None) -> Tensor:
    """x W_ihᵀ + h W_hhᵀ + b for all steps in two matrix products: x (t, b, i), h (t, b, r) → (t, b, g·h)."""
    t, b, _ = x.shape
    flat = x.reshape(t * b, -1)
    out = flat @ w_ih.T if bias is None else torch.addmm(bias, flat, w_ih.T)
    out.addmm_(h.reshape(t * b, -1), w_hh.T)
    return out.view(t, b, -1)


def gate_rows(weights: Tensor, v: Tensor, gates: int) -> Tensor:
    """W_g v for every gate: weights (g·h, r), v (t, b, r, p) → (t, b, p, g, h), one matrix product."""
    t, b, _, p = v.shape
    rows = linear(v.transpose(2, 3).reshape(t * b * p, -1), weights)
    return rows.view(t, b, p, gates, -1)


def scaled_product(weights: Tensor, a: Tensor, v: Tensor) -> Tensor:
    """Σ_g diag(a_g) W_g v: weights (g·h, r), a (t, b, g, h), v (t, b, r, p) → (t, b, h, p)."""
    return gate_rows(weights, v, a.shape[2]).mul_(a[:, :, None]).sum(3).transpose(2, 3)


def scaled_transpose(transposed: Tensor, a: Tensor, u: Tensor) -> Tensor:
    """Σ_g W_gᵀ diag(a_g) u: transposed weights (r, g·h), a (t, b, g, h), u (t, b, h, p) → (t, b, r, p)."""
    t, b, g, h = a.shape
    p = u.shape[-1]
    rows = (a[:, :, None] * u.transpose(2, 3).unsqueeze(3)).reshape(t * b * p, g * h)
    return linear(rows, transposed).view(t, b, p, -1).transpose(2, 3)


def scaled_matrix(weights: Tensor, a: Tensor) -> Tensor:
    """Σ_g diag(a_g) W_g as matrices (t, b, h, r), by one batched product over rows h."""
    t, b, g, h = a.shape
    stacked = weights.view(g, h, -1).transpose(0, 1)  # (h, g, r)
    coefficients = a.permute(3, 0, 1, 2).reshape(h, t * b, g)
    product = torch.bmm(coefficients, stacked)  # (h, t·b, r)
    return product.transpose(0, 1).reshape(t, b, h, -1)


def row_gram(weights: Tensor, gates: int, diagonal: bool = False) -> Tensor:
    """Inner products of the rows of the gates' matrices, (h, g, g); with `diagonal`, the identity is one more gate.

    With it ‖Σ_g diag(a_g) W_g‖²_F = Σ_h a_h ᵀ K_h a_h, and no Jacobian is ever built.
    """
    w = weights.view(gates, -1, weights.shape[1]).transpose(0, 1)  # (h, g, r)
    gram = w @ w.transpose(1, 2)
    if not diagonal:
        return gram
    own = torch.diagonal(weights.view(gates, -1, weights.shape[1]), dim1=1, dim2=2).T  # (h, g): W_g[h, h]
    full = gram.new_ones(gram.shape[0], gates + 1, gates + 1)
    full[:, :gates, :gates] = gram
    full[:, :gates, gates] = own
    full[:, gates, :gates] = own
    return full


def quadratic(gram: Tensor, a: Tensor) -> Tensor:
    """Σ_h a_hᵀ K_h a_h for gram (h, g, g) and a (t, b, g, h) → (t, b). The symmetric pairs are summed once."""
    gates = a.shape[2]
    total = a.new_zeros(a.shape[:2])
    for first in range(gates):
        inner = a[:, :, first] * gram[:, first, first]
        for second in range(first + 1, gates):
            inner = torch.addcmul(inner, a[:, :, second], 2 * gram[:, first, second])
        total += torch.einsum("tbh,tbh->tb", inner, a[:, :, first])
    return total.clamp_min_(0)


def linear_factors(bias: Tensor | None, x: Tensor, h: Tensor) -> dict[str, tuple[str, Tensor]]:
    """What the parameters of a = W_ih x + W_hh h + b are multiplied with: x (t, b, i), h (t, b, r), 1 (t, b, 1)."""
    found = {"weight_ih": ("activations", x), "weight_hh": ("activations", h)}
    return found if bias is None else {**found, "bias": ("activations", x.new_ones(*x.shape[:2], 1))}
