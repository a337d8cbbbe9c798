"""Step Jacobians in closed form, their norms, against what torch.func and full SVDs cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from harness import Row, interleave
from torch import Tensor
from walked import lstm

from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.cells.gated_algebra import scaled_matrix
from inspector.engine.cells.lstm import LstmStep
from inspector.engine.cells.lstm_block import LstmBlock
from inspector.engine.cells.spectral import Krylov


def stopped(block: LstmBlock, iterations: int) -> Tensor:
    """σ₁ of every step after so many steps of the bidiagonalisation."""
    space = Krylov(block, iterations)
    space.extend(iterations)
    return space.largest()[0]


def hidden_to_hidden(cell: LstmStep, x: Tensor, states: Tensor) -> Tensor:
    """∂h_t/∂h_{t-1} of every step by vmap(jacrev), c held fixed: (t, h, h)."""
    h, c = cell.parts["h"], cell.parts["c"]

    def step(before: Tensor, memory: Tensor, row: Tensor) -> Tensor:
        return cell.step(row[None], torch.cat((before, memory), -1)[None])[0, h]

    jacobians: Tensor = torch.vmap(torch.func.jacrev(step), chunk_size=64)(
        states[:-1, 0, h], states[:-1, 0, c], x[:, 0]
    )
    return jacobians


def rows() -> list[Row]:
    """LSTM with H = 128 and T = 128, the state (h, c) whole, float32, one thread; gates known from the capture."""
    torch.set_num_threads(1)
    h, t = 128, 128
    cell, x, stacked, gates = lstm(h, t)

    def slow() -> object:
        return FunctionStep(cell.step, cell.parts).block(x, stacked[:-1], stacked[1:]).jacobian()

    def fast() -> LstmBlock:
        return cell.block(x, stacked[:-1], stacked[1:], gates)

    found = []
    with torch.no_grad():
        hidden = partial(hidden_to_hidden, cell, x, stacked)
        pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "∂h/∂h (T, H, H)": (lambda: scaled_matrix(cell.w_hh, fast().through_output), hidden),
            "∂(h,c)/∂(h,c) (T, 2H, 2H)": (lambda: fast().jacobian(), slow),
        }
        for what, (ours, jacrev) in pairs.items():
            times = interleave({"ours": ours, "jacrev": jacrev}, 5)
            found.append(
                Row(
                    f"step Jacobians {what}: vmap(jacrev) / closed form from the gates",
                    times["ours"],
                    times["jacrev"],
                    times["jacrev"] / times["ours"],
                    "≥ 45" if "H, H)" in what and "2H" not in what else "",
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
        times = interleave({"ours": lambda: stopped(block, 20), "svd": lambda: torch.linalg.svdvals(matrices)}, 3)
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
