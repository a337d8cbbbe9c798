"""Principal components and explained variance of a state's way, against scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import inspector


@pytest.mark.parametrize("library", ["sklearn.decomposition"], indirect=True)
@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM], ids=["gru", "lstm"])
def test_the_trajectory_is_the_principal_components(library: Any, kind: type[nn.GRU | nn.LSTM]) -> None:
    torch.manual_seed(0)
    model, x = kind(5, 12, batch_first=True).double(), torch.randn(40, 5, dtype=torch.float64)
    with inspector.run(model, x, only=("states", "trajectory")) as capture:
        place = next(iter(name for name in capture.channels if name.endswith(":trajectory"))).rpartition(":")[0]
        points, share = capture.array(f"{place}:trajectory"), capture.array(f"{place}:trajectory/share")
    visited = states(model, x)
    reference = library.PCA(points.shape[1], svd_solver="full").fit(visited)
    expected = reference.transform(visited)
    signs = np.sign((expected * points).sum(0))
    np.testing.assert_allclose(points * signs, expected, atol=1e-9)
    np.testing.assert_allclose(share, reference.explained_variance_ratio_, atol=1e-9)


def states(model: Any, x: torch.Tensor) -> np.ndarray[Any, Any]:
    """h, of an LSTM (h, c), of every step, one step of the module at a time."""
    state, rows = None, []
    with torch.no_grad():
        for row in x:
            _, state = model(row[None, None], state)
            parts = state if isinstance(state, tuple) else (state,)
            rows.append(torch.cat([part[0, 0] for part in parts]))
    return torch.stack(rows).numpy()
