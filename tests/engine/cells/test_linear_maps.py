"""Jacobians as linear maps: the products of those with diagonal columns are the products with the whole matrices."""

from __future__ import annotations

import pytest
import torch
from kept import Kept
from models import OnlyOutput
from torch import Tensor, nn

from inspector.engine.cells.base import StepBlock
from inspector.engine.cells.family import FAMILIES
from inspector.engine.cells.linear_maps import LinearMaps
from inspector.engine.cells.lstm_block import LstmBlock
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D, STEPS, HIDDEN = torch.float64, 5, 4


def block(kind: str, **options: int) -> StepBlock:
    torch.manual_seed(3)
    module = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[kind](3, HIDDEN, **options).to(D)
    weights = [getattr(module, name, None) for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")]
    if "proj_size" in options:
        weights.append(module.weight_hr_l0)
    cell = FAMILIES[kind]().make("tanh" if kind == "rnn" else kind, weights)
    state = torch.randn(STEPS, 1, cell.state_size, dtype=D)
    x = torch.randn(STEPS, 1, 3, dtype=D)
    return cell.block(x, state, cell.step(x.flatten(0, 1), state.flatten(0, 1)).view_as(state))


@pytest.mark.parametrize(("kind", "options"), [("lstm", {}), ("lstm", {"proj_size": 2}), ("gru", {}), ("rnn", {})])
def test_products_and_matrices_are_those_of_the_jacobians(kind: str, options: dict[str, int]) -> None:
    one = block(kind, **options)
    expected, maps = one.jacobian()[:, 0], one.maps()
    assert torch.equal(maps.whole(), expected)
    vectors = torch.randn(expected.shape[-1], 3, dtype=D)
    for number, matrix in enumerate(expected):
        torch.testing.assert_close(maps.push(number, vectors), matrix @ vectors)
    assert torch.equal(maps[1:3].whole(), expected[1:3])
    assert (maps.dense.shape[-1] < expected.shape[-1]) is (kind == "lstm" and not options)


@pytest.mark.parametrize("where", ["dense", "diagonal"])
def test_a_map_that_is_not_finite_is_found(where: str) -> None:
    maps = block("lstm").maps()
    assert maps.all_finite and bool(maps.finite().all())
    (maps.dense if where == "dense" else maps.diagonals[1][2])[2, 1] = torch.inf
    assert not maps.all_finite
    assert maps.finite().tolist() == [True, True, False, True, True]


def test_dense_matrices_have_no_diagonals() -> None:
    matrices: Tensor = torch.randn(3, 2, 2)
    maps = LinearMaps.of(matrices)
    assert len(maps) == 3 and maps.whole() is matrices
    assert maps.push(0, torch.eye(2, dtype=D)).dtype == D


def test_frobenius_norms_are_computed_once_for_all_quantities_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[StepBlock] = []
    plain = LstmBlock.frobenius

    def counted(block: LstmBlock) -> Tensor:
        taken.append(block)
        return plain(block)

    monkeypatch.setattr(LstmBlock, "frobenius", counted)
    keys = ("jacobian/frobenius_norm", "jacobian/frobenius_norm_scaled", "jacobian/isometry")
    subject = Subject(model=OnlyOutput(nn.LSTM(3, HIDDEN, batch_first=True)), kind="vectors", width=3)
    perform(subject, Batch(torch.randn(1, STEPS, 3), torch.tensor([STEPS])), Kept(), RunOptions(only=keys))
    assert len(taken) == 1
