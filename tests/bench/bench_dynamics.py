"""Lyapunov exponents against the naive loop, and largest singular values against full SVDs."""

from __future__ import annotations

from functools import partial

import torch
from harness import Row, interleave
from torch import Tensor
from walked import lstm

from inspector.engine.cells.lstm import LstmStep
from inspector.engine.cells.lstm_block import LstmBlock
from inspector.engine.cells.lyapunov import Directions
from inspector.engine.cells.spectral import largest, spectral_norms


def naive(cell: LstmStep, x: Tensor, states: Tensor, count: int) -> Tensor:
    """One Jacobian by autograd and one QR a step, as a textbook does it."""
    basis = Directions(cell.state_size, count).basis
    total = torch.zeros(count, dtype=torch.float64)
    for t in range(len(x)):
        found = torch.autograd.functional.jacobian(lambda s, t=t: cell.step(x[t], s[None])[0], states[t, 0])
        basis, triangle = torch.linalg.qr(found.double() @ basis)
        total += triangle.diagonal().abs().log()
    return total / len(x)


def ours(block: LstmBlock, count: int, every: int = 8) -> Tensor:
    """The engine's way, Jacobians included."""
    directions = Directions(block.shape[2], count, every)
    return directions.advance(block.jacobian()[:, 0])[0].sum(0) / block.shape[0]


def rows() -> list[Row]:
    """LSTM with H = 128 and T = 256, the state (h, c) whole, one thread; gates known from the capture."""
    torch.set_num_threads(1)
    h, t = 128, 256
    cell, x, stacked, gates = lstm(h, t)

    def fresh() -> LstmBlock:
        return cell.block(x, stacked[:-1], stacked[1:], gates)

    found = []
    for count, what, aim in ((16, "the first 16", "≥ 12"), (2 * h, f"all {2 * h}", "")):
        slow = naive(cell, x, stacked, count)
        worst = float((ours(fresh(), count) - slow).abs().max())
        times = interleave(
            {"ours": lambda n=count: ours(fresh(), n), "naive": partial(naive, cell, x, stacked, count)}, 3
        )
        found.append(
            Row(
                f"Lyapunov exponents, {what}: a Jacobian by autograd and a QR every step / ours", times["ours"],
                times["naive"], times["naive"] / times["ours"], aim, f"largest difference {worst:.1e} nats a step: rounding of float32 Jacobians",
            )
        )  # fmt: skip
        times = interleave({"ours": lambda n=count: ours(fresh(), n), "one": lambda n=count: ours(fresh(), n, 1)}, 3)
        found.append(
            Row(
                f"Lyapunov exponents, {what}: QR every step / every 8 or fewer", times["ours"], times["one"],
                times["one"] / times["ours"],
            )
        )  # fmt: skip
    block = fresh()
    matrices = block.jacobian()
    exact = torch.linalg.svdvals(matrices)
    worst = float((spectral_norms(block)[0] / exact[..., 0] - 1).abs().max())
    times = interleave({"ours": lambda: spectral_norms(block), "svd": lambda: torch.linalg.svdvals(matrices)}, 3)
    found.append(
        Row(
            "spectral norm of every step: full SVDs / Golub–Kahan–Lanczos until it has converged", times["ours"],
            times["svd"], times["svd"] / times["ours"], "≥ 12", f"largest relative error {worst:.1e}",
        )
    )  # fmt: skip
    times = interleave({"ours": lambda: largest(block, 8), "svd": lambda: torch.linalg.svdvals(matrices)}, 3)
    found.append(
        Row(
            "eight largest singular values of every step: full SVDs / 60 Lanczos steps", times["ours"], times["svd"],
            times["svd"] / times["ours"],
        )
    )  # fmt: skip
    return found
