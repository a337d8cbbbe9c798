"""x Wᵀ + b by the fastest matrix product there is.

The linear kernel of oneDNN is two to three times as fast as torch.addmm where MKL does not use the processor's widest
instructions. It is an internal operator: it is used after it has reproduced a small product, else torch.addmm is.
"""

from __future__ import annotations

import functools
import warnings

import torch
from torch import Tensor

LEAST_WORK = 1 << 20
"""Multiplications below which the plain product is as fast."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b for x (n, i), weight (o, i): (n, o), a new tensor."""
    n, i = x.shape
    fast = x.dtype == torch.float32 and x.device.type == "cpu" and n * i * weight.shape[0] >= LEAST_WORK
    if fast and _fast_product():
        return _onednn(x.contiguous(), weight.contiguous(), bias)
    return x @ weight.T if bias is None else torch.addmm(bias, x, weight.T)


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return out


@functools.cache
def _fast_product() -> bool:
    """Whether oneDNN's linear kernel is there and right; False also where it may round below float32."""
    if not torch.backends.mkldnn.is_available() or torch.get_float32_matmul_precision() != "highest":
        return False
    try:
        x = torch.linspace(-1, 1, 33 * 17).view(33, 17)
        weight = torch.linspace(1, -1, 40 * 17).view(40, 17).sin()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _onednn(x, weight, weight[:, 0].contiguous())
        return bool(torch.allclose(found.double(), x.double() @ weight.double().T + weight[:, 0], rtol=1e-5, atol=1e-5))
    except Exception:  # noqa: BLE001 - an internal operator may be missing or change: then the plain product is used
        return False
