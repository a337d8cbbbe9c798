"""Lyapunov exponents by QR against the textbook loop, known systems, and what the explicit product gets wrong."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from inspector.engine.cells.linear_maps import LinearMaps
from inspector.engine.cells.lyapunov import Directions, advance, entropy_rate, kaplan_yorke

D = torch.float64


def textbook(matrices: Tensor, count: int) -> Tensor:
    """Σ ln |R_ii| with Gram–Schmidt at every step, written out; from the same random basis."""
    basis = Directions(matrices.shape[1], count).basis.clone()
    total = torch.zeros(count, dtype=D)
    for matrix in matrices:
        moved = matrix @ basis
        for i in range(count):
            for _ in range(2):
                for j in range(i):
                    moved[:, i] -= (basis[:, j] @ moved[:, i]) * basis[:, j]
            total[i] += moved[:, i].norm().log()
            basis[:, i] = moved[:, i] / moved[:, i].norm()
    return total


def random_chain(n: int, s: int, scale: float = 0.8) -> Tensor:
    return torch.randn(n, s, s, generator=torch.Generator().manual_seed(5), dtype=D) * scale


@pytest.mark.parametrize("most", [1, 3, 8])
@pytest.mark.parametrize("count", [2, 5])
def test_sums_equal_gram_schmidt_at_every_step(most: int, count: int) -> None:
    chain = random_chain(61, 5)
    logs, booked = Directions(5, count, most).advance(chain)
    torch.testing.assert_close(logs.sum(0), textbook(chain, count), rtol=1e-10, atol=1e-10)
    assert bool(booked[-1]) and (most == 1) == bool(booked.all())
    assert bool((logs[~booked] == 0).all())


def test_fewer_steps_are_multiplied_where_directions_grow_apart() -> None:
    """A spread of e⁻⁷ a step: eight steps at once would leave 10⁻²⁴, so the interval shrinks and nothing is lost."""
    turn = torch.linalg.qr(random_chain(40, 4)).Q
    chain = turn @ torch.diag(torch.exp(torch.tensor([0.0, -1.0, -4.0, -7.0], dtype=D))) @ turn.mT
    directions = Directions(4, 4)
    logs, _ = directions.advance(chain)
    assert directions.every < 8
    torch.testing.assert_close(logs.sum(0), textbook(chain, 4), rtol=1e-8, atol=1e-8)
    assert float(logs.sum()) == pytest.approx(-12.0 * 40, rel=1e-9)


def test_products_that_overflow_are_done_in_smaller_bites() -> None:
    chain = 1e60 * torch.linalg.qr(random_chain(20, 3)).Q
    logs, _ = Directions(3, 3).advance(chain)
    torch.testing.assert_close(logs.sum(0), torch.full((3,), 20 * math.log(1e60), dtype=D))


def test_the_explicit_product_loses_the_small_directions_and_we_do_not() -> None:
    """QUANTITIES C2: SVD of the product of 60 random 4 × 4 matrices is wrong about the smallest exponents."""
    chain = random_chain(60, 4) * torch.tensor([1.0, 0.8, 0.5, 0.1], dtype=D)[:, None]
    logs, _ = Directions(4, 4).advance(chain)
    truth = float(torch.linalg.slogdet(chain).logabsdet.sum())
    assert float(logs.sum()) == pytest.approx(truth, rel=1e-9)  # up to eight steps are multiplied between two QRs
    product = torch.eye(4, dtype=D)
    for matrix in chain:
        product = matrix @ product
    wrong = torch.linalg.svdvals(product).log()
    assert abs(float(wrong.sum()) - truth) > 5, "the naive way has become right: this test no longer shows anything"


def test_logarithms_are_natural_and_j_is_not_transposed() -> None:
    """Trap 10. x' = diag(2, ½) x has ±ln 2. For J₂ J₁ with a kernel that J₁ avoids, the transpose chain differs."""
    logs, _ = Directions(2, 2).advance(torch.diag(torch.tensor([2.0, 0.5], dtype=D)).repeat(400, 1, 1))
    torch.testing.assert_close(logs.sum(0) / 400, torch.tensor([1.0, -1.0], dtype=D) * math.log(2), rtol=0, atol=1e-2)
    chain = random_chain(7, 3)
    straight, turned = (Directions(3, 3).advance(c)[0].sum(0) for c in (chain, chain.mT))
    torch.testing.assert_close(straight, textbook(chain, 3))
    assert float((straight - turned).abs().max()) > 1e-2


def test_singular_jacobians_give_minus_infinity_and_the_others_go_on() -> None:
    chain = random_chain(50, 5)
    chain[20, 3] = 0.0
    chain[30, 1] = 0.0
    logs, _ = Directions(5, 5).advance(chain)
    total = logs.sum(0)
    assert torch.isneginf(total).tolist() == [False, False, False, False, True]
    full = random_chain(50, 5)
    full[:, [0, 1]] = 0.0  # two units that are always dead
    alive = Directions(5, 5).advance(full)[0].sum(0)
    assert torch.isneginf(alive).tolist() == [False, False, False, True, True]
    torch.testing.assert_close(alive[:3].sum(), _inner(full), rtol=1e-9, atol=1e-9)
    nothing = Directions(3, 3)
    assert bool(torch.isneginf(nothing.advance(torch.zeros(20, 3, 3, dtype=D))[0].sum(0)).all())
    assert nothing.basis.shape == (3, 0)


def _inner(chain: Tensor) -> Tensor:
    """Growth of volume in the living subspace: after the first step only rows and columns 2 … 4 count."""
    q = Directions(5, 5).basis[:, :3]
    first = torch.linalg.qr(chain[0] @ q).R.diagonal().abs().log().sum()
    return first + torch.linalg.slogdet(chain[1:, 2:, 2:]).logabsdet.sum()


def test_dimension_and_entropy() -> None:
    lorenz = torch.tensor([0.906, 0.0, -14.572], dtype=D)
    assert kaplan_yorke(lorenz, True) == pytest.approx(2.062, abs=1e-3)
    assert entropy_rate(lorenz, True) == pytest.approx(0.906)
    stable = torch.tensor([-0.1, -0.2], dtype=D)
    assert kaplan_yorke(stable, True) == 0 and entropy_rate(stable, False) == 0
    growing = torch.tensor([0.2, 0.1], dtype=D)
    assert kaplan_yorke(growing, True) == 2
    assert math.isnan(kaplan_yorke(growing, False)) and math.isnan(entropy_rate(growing, False))
    assert kaplan_yorke(torch.tensor([0.5, -math.inf], dtype=D), True) == 1


def test_the_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    Directions(4, 4).advance(random_chain(9, 4))
    assert torch.equal(torch.get_rng_state(), before)


def test_several_bases_take_one_product_a_step_and_give_what_each_alone_gives() -> None:
    chain = random_chain(61, 7)
    alone = [Directions(7, count, seed=seed).advance(chain)[0].sum(0) for count, seed in ((7, 3), (4, 4), (2, 5))]
    several = [Directions(7, count, seed=seed) for count, seed in ((7, 3), (4, 4), (2, 5))]
    maps = Counted.of(chain)
    together = advance(several, maps)
    assert maps.pushes == len(chain)
    for (logs, booked), expected in zip(together, alone, strict=True):
        # products of another width are rounded otherwise, and 61 of them magnify it (1.3e-10 on one processor)
        torch.testing.assert_close(logs.sum(0), expected, rtol=1e-8, atol=1e-8)
        assert bool(booked[-1])


def test_where_one_of_several_bases_spreads_too_far_all_take_fewer_steps() -> None:
    turn = torch.linalg.qr(random_chain(40, 4)).Q
    chain = turn @ torch.diag(torch.exp(torch.tensor([0.0, -1.0, -4.0, -7.0], dtype=D))) @ turn.mT
    (all_four, _), (leading, _) = advance([Directions(4, 4), Directions(4, 1, seed=4)], LinearMaps.of(chain))
    torch.testing.assert_close(all_four.sum(0), textbook(chain, 4), rtol=1e-8, atol=1e-8)
    assert float(leading.sum()) == pytest.approx(float(all_four.sum(0)[0]), abs=5)


class Counted(LinearMaps):
    """Counts its products."""

    pushes = 0

    def push(self, number: int, vectors: Tensor) -> Tensor:
        type(self).pushes += 1
        return super().push(number, vectors)
