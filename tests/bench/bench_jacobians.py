"""Step Jacobians in closed form, their norms, against what torch.func and full SVDs cost."""

from __future__ import annotations

import torch
from harness import Row, interleave

from inspector.engine.steps.generic import FunctionStep
from inspector.engine.steps.lstm import LstmStep
from inspector.engine.steps.spectral import lanczos


def rows() -> list[Row]:
    """LSTM with H = 128 and T = 128, the state (h, c) whole, float32, one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    h, t = 128, 128
    cell = LstmStep(*(torch.randn(4 * h, h) * h**-0.5 for _ in range(2)), torch.zeros(4 * h), torch.zeros(4 * h))
    x = torch.randn(t, 1, h)
    states = [torch.zeros(1, 2 * h)]
    for row in x:
        states.append(cell.step(row, states[-1]))
    stacked = torch.stack(states)
    slow = FunctionStep(cell.step, cell.parts).block(x, stacked[:-1], stacked[1:])

    def fast() -> object:
        return cell.block(x, stacked[:-1], stacked[1:])

    found = []
    with torch.no_grad():
        times = interleave({"ours": lambda: fast().jacobian(), "jacrev": slow.jacobian}, 3)
        found.append(
            Row(
                "step Jacobians: vmap(jacrev) / closed form",
                times["ours"],
                times["jacrev"],
                times["jacrev"] / times["ours"],
                "≥ 45",
            )
        )
        times = interleave(
            {"ours": lambda: fast().frobenius(), "built": lambda: fast().jacobian().flatten(2).norm(dim=2)}, 7
        )
        found.append(
            Row(
                "Frobenius norms / building the Jacobians",
                times["ours"],
                times["built"],
                times["ours"] / times["built"],
                "≤ 0.33",
            )
        )
        block = fast()
        matrices = block.jacobian()
        times = interleave({"ours": lambda: lanczos(block, 20), "svd": lambda: torch.linalg.svdvals(matrices)}, 3)
        found.append(
            Row(
                "spectral norms: full SVDs / 20 Lanczos steps",
                times["ours"],
                times["svd"],
                times["svd"] / times["ours"],
                "≥ 10",
            )
        )
    return found
