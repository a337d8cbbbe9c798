"""The sum of absolute values that rounding is bounded by, against loops over its terms."""

from __future__ import annotations

import pytest
import torch

from inspector.engine.cells.rounding import absolute_sums


@pytest.mark.parametrize("given", [(), (0,), (0, 1), (None, 1)])
def test_every_term_counts_with_its_absolute_value(given: tuple[int | None, ...]) -> None:
    generator = torch.Generator().manual_seed(3)
    x, h, w, u = (torch.randn(shape, generator=generator).double() for shape in ((2, 1, 3), (2, 1, 4), (5, 3), (5, 4)))
    both = torch.randn(2, 5, generator=generator).double()
    biases = [None if n is None else both[n] for n in given]
    found = absolute_sums(x, h, w, u, *biases)
    for t in range(2):
        for row in range(5):
            terms = [float(w[row, i] * x[t, 0, i]) for i in range(3)] + [
                float(u[row, j] * h[t, 0, j]) for j in range(4)
            ]
            terms += [float(bias[row]) for bias in biases if bias is not None]
            assert float(found[t, 0, row]) == pytest.approx(sum(abs(term) for term in terms), rel=1e-12)
