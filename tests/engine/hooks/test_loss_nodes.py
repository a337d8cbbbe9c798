"""What a loss was given, read off autograd's graph: against the tensors that it was computed from."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from inspector.engine.hooks.loss_nodes import are_logarithms, are_shares, asked_of, origin, wrong_input


def scores() -> Tensor:
    torch.manual_seed(0)
    found: Tensor = nn.Linear(4, 5)(torch.randn(3, 6, 4))
    return found


TARGETS = torch.randint(0, 5, (3, 6), generator=torch.Generator().manual_seed(1))


def by_column(y: Tensor) -> Tensor:
    return F.cross_entropy(y.transpose(1, 2), TARGETS)


def flat(y: Tensor) -> Tensor:
    return F.cross_entropy(y.flatten(0, 1), TARGETS.flatten())


def by_hand(y: Tensor) -> Tensor:
    return -y.log_softmax(-1).gather(-1, TARGETS[..., None]).mean()


def halves(y: Tensor) -> Tensor:
    return 0.5 * by_column(y) + F.mse_loss(y, torch.ones_like(y))


def smooth(y: Tensor) -> Tensor:
    return F.cross_entropy(y.flatten(0, 1), TARGETS.flatten(), label_smoothing=0.1, weight=torch.arange(5.0))


def shares(y: Tensor) -> Tensor:
    return F.cross_entropy(y.flatten(0, 1), F.one_hot(TARGETS.flatten(), 5).float())


@pytest.mark.parametrize("loss", [by_column, flat, by_hand, halves, smooth, shares])
@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (lambda y: y, 0), (lambda y: y.softmax(-1), 1), (lambda y: y.softmax(1), 1), (lambda y: y.sigmoid(), 2),
        (lambda y: y.log_softmax(-1), 0), (lambda y: 4 * y.softmax(-1), 0), (lambda y: y.softmax(-1).log(), 0),
        (lambda y: torch.stack([one.softmax(-1) for one in y.unbind(1)], 1), 1), (lambda y: y.tanh(), 0),
    ],
)  # fmt: skip
def test_what_stands_before_the_softmax_of_the_loss_is_named(loss: object, made: object, wrong: int) -> None:
    assert callable(loss) and callable(made)
    assert wrong_input(loss(made(scores()))) == wrong


def test_losses_of_two_classes_and_logarithms() -> None:
    y, half = scores(), torch.full((3, 6, 5), 0.5)
    assert wrong_input(F.binary_cross_entropy_with_logits(y, half)) == 0
    assert wrong_input(F.binary_cross_entropy_with_logits(y.sigmoid(), half)) == 3
    assert wrong_input(F.binary_cross_entropy(y.sigmoid(), half)) is None
    assert wrong_input(F.nll_loss(y.flatten(0, 1), TARGETS.flatten())) == 4
    assert wrong_input(F.nll_loss(y.softmax(-1).flatten(0, 1), TARGETS.flatten())) == 4
    assert wrong_input(F.nll_loss((y.softmax(-1) + 1e-3).log().flatten(0, 1), TARGETS.flatten())) == 0
    assert wrong_input(F.mse_loss(y, half)) is None and wrong_input((y - half).square().mean()) is None


def test_a_softmax_inside_the_model_is_none_of_the_loss() -> None:
    y = scores()
    assert wrong_input(flat(nn.Linear(5, 5)(y.softmax(-1)))) == 0
    assert wrong_input(flat(nn.Linear(5, 5)(y.sigmoid() @ torch.ones(5, 5)))) == 0


def test_outputs_of_code_without_a_softmax_count_where_they_are_probabilities() -> None:
    y = scores().exp()
    made = y / y.sum(-1, keepdim=True)
    assert wrong_input(flat(made)) == 0
    assert wrong_input(flat(made), lambda node: node is origin(made) and are_shares(made.detach())) == 1
    assert not are_shares(scores()) and not are_shares(made.detach() * 1.1) and are_shares(made.detach().mT)


def test_targets_and_what_stands_beside_them_are_those_that_the_loss_was_given() -> None:
    y = scores()
    targets = TARGETS.clone()
    targets[0, :2] = -100
    (one,) = asked_of(F.cross_entropy(y.flatten(0, 1), targets.flatten()))
    assert one.kind == "classes" and one.ignored == -100 and one.rows == 0
    torch.testing.assert_close(one.given, y.log_softmax(-1).flatten(0, 1).detach())
    assert torch.equal(one.targets, targets.flatten())
    (two,) = asked_of(F.cross_entropy(y.transpose(1, 2), targets, ignore_index=-100))
    assert two.rows == 3 and torch.equal(two.targets, targets.flatten())
    torch.testing.assert_close(two.given, one.given)
    for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss):
        (three,) = asked_of(loss(y, torch.ones_like(y)))
        assert three.kind == "numbers" and torch.equal(three.given, y.detach()) and bool((three.targets == 1).all())
    assert [one.kind for one in asked_of(halves(y))] in (["classes", "numbers"], ["numbers", "classes"])
    assert asked_of((y - 1).square().mean()) == [] and asked_of(y.sum().detach()) == []


def test_nothing_is_read_that_was_freed_or_changed_in_place() -> None:
    y = scores()
    loss = F.mse_loss(y, torch.ones_like(y))
    loss.backward()
    assert asked_of(loss) == []
    target = torch.ones_like(y)
    loss = F.mse_loss(y, target)
    target.add_(1)
    assert asked_of(loss) == []


def test_rows_of_nan_are_not_accused() -> None:
    assert are_logarithms(torch.full((4, 3), torch.nan)) and are_logarithms(torch.empty(0, 3))
