"""What is done by torch inside a context, as the Work that quantities declare; and rates that are the same everywhere."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from inspector.engine.session.rates import Rates
from inspector.engine.trace.work import Factorisation, Work

KINDS: dict[str, Factorisation] = {
    "linalg_eig": "eigenvalues", "_linalg_eigvals": "eigenvalues", "_linalg_eigh": "symmetric",
    "_linalg_svd": "singular", "linalg_qr": "triangular", "linalg_lu_factor_ex": "solved", "linalg_lu_solve": "solved",
    "_linalg_slogdet": "solved",
}  # fmt: skip
BY = {"mm": 0, "bmm": 0, "_linear_pointwise": 0, "addmm": 1, "baddbmm": 1}
"""Products, and which argument is the left factor."""
NOMINAL = Rates(
    2.5e-11, 3e-11, 4e-10, 3e-6,
    {
        "eigenvalues": {16: 4e-5, 64: 6e-4, 128: 6e-3}, "symmetric": {16: 2e-5, 64: 1.4e-4, 128: 6e-4},
        "singular": {16: 2e-5, 64: 2e-4, 128: 9e-4}, "triangular": {16: 1.3e-5, 64: 7e-5, 128: 4e-4},
        "solved": {16: 2e-5, 64: 6e-5, 128: 2.2e-4},
    },
)  # fmt: skip
"""Of one processor, so that what is compared are counts."""


class CountedWork(TorchDispatchMode):
    """Inside, `work` grows by what every operation does."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: Counter[str] = Counter()
        self.factors: Counter[tuple[Factorisation, int]] = Counter()

    @property
    def work(self) -> Work:
        """What was done."""
        return Work(**{key: float(value) for key, value in self.kinds.items()}, factors=dict(self.factors))

    def __torch_dispatch__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        out = found[0] if isinstance(found, (tuple, list)) and len(found) else found
        self.kinds["calls"] += 1
        if name in BY:
            self._product(out, args[BY[name]])
        elif name in KINDS:
            self._factorised(KINDS[name], args[0])
        elif isinstance(out, Tensor) and not function.is_view:
            given = [one.numel() for one in args if isinstance(one, Tensor)]
            self.kinds["numbers"] += max(out.numel(), *given, 0)
        return found

    def _product(self, out: Tensor, left: Tensor) -> None:
        one_vector = out.dim() == 3 and 1 in out.shape[-2:]
        kind = "wide" if out.dtype == torch.float64 else "numbers" if one_vector else "products"
        self.kinds[kind] += out.numel() * left.shape[-1]

    def _factorised(self, kind: Factorisation, matrix: Tensor) -> None:
        rows, columns = matrix.shape[-2:]
        size = round((rows * columns * min(rows, columns)) ** (1 / 3))
        if size:
            self.factors[kind, size] += math.prod(matrix.shape[:-2])
