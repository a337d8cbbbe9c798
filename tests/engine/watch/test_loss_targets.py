"""What the loss of a watched training asks for, against the same numbers computed in plain loops; what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import inspector

Loss = Callable[[nn.Module], Tensor]
ROWS, STEPS, SYMBOLS = 6, 9, 7


class Reader(nn.Module):
    """ids (b, t) → (b, t, 7)."""

    def __init__(self, last: Callable[[Tensor], Tensor] = lambda y: y) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.rnn, self.head = (
            nn.Embedding(SYMBOLS, 8),
            nn.GRU(8, 12, batch_first=True),
            nn.Linear(12, SYMBOLS),
        )
        self.last = last

    def forward(self, ids: Tensor) -> Tensor:
        return self.last(self.head(self.rnn(self.embedding(ids))[0]))


def watched(
    path: Path, model: nn.Module, loss: Loss, iterations: int = 12, cost: str = "full", rate: float = 1e-3
) -> Any:
    optimizer = torch.optim.Adam(model.parameters(), rate)
    with inspector.watch(model, optimizer, path, every=1, cost=cost) as watcher:
        for _ in range(iterations):
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
    assert watcher.error is None
    return inspector.diagnose(path)


def row(path: Path, name: str, at: int = 0) -> Any:
    with inspector.open_capture(path) as capture:
        return np.ma.filled(np.ma.asarray(capture.array(f"training:asked/{name}"), np.float64), np.nan)[at]


def told(found: Any, rule: str) -> list[str]:
    assert not found.broken
    return [one.severity for one in found.findings if one.id == rule]


def test_losses_with_targets_of_others_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    model = Reader()
    ids, targets = torch.randint(0, SYMBOLS, (ROWS, STEPS)), torch.randint(0, SYMBOLS, (ROWS, STEPS))
    targets[0, 3:] = -100
    with torch.no_grad():
        logs = model(ids).double().log_softmax(-1)
    own, others, differ = [], [], []
    for b in range(ROWS):
        for t in range(STEPS):
            one, two = int(targets[b, t]), int(targets[b - 1, t])
            if min(one, two) >= 0:
                own.append(-float(logs[b, t, one]))
                others.append(-float(logs[b, t, two]))
                differ.append(one != two)
    for n, loss in enumerate(
        (
            lambda m: F.cross_entropy(m(ids).flatten(0, 1), targets.flatten()),
            lambda m: F.cross_entropy(m(ids).transpose(1, 2), targets),
        )
    ):
        path = tmp_path / f"{n}.inspect"
        watched(path, Reader(), loss, 1)
        assert row(path, "own") == pytest.approx(np.mean(own), rel=1e-5)
        assert row(path, "others") == pytest.approx(np.mean(others), rel=1e-5)
        assert row(path, "differ") == pytest.approx(np.mean(differ))
        assert row(path, "given") == 0


def test_numbers_of_a_regression_are_those_of_numpy(tmp_path: Path) -> None:
    ids, targets = torch.randint(0, SYMBOLS, (ROWS, STEPS)), 3 + 2 * torch.randn(ROWS, STEPS)
    with torch.no_grad():
        said = Reader()(ids)[..., 0].double().numpy()
    watched(tmp_path / "a.inspect", Reader(), lambda m: F.mse_loss(m(ids)[..., 0], targets), 1)
    y = targets.double().numpy()
    expected = [y.mean(), y.std(), said.mean(), said.std(), np.corrcoef(y.ravel(), said.ravel())[0, 1]]
    np.testing.assert_allclose(row(tmp_path / "a.inspect", "numbers"), expected, rtol=1e-5)
    assert row(tmp_path / "a.inspect", "others") == pytest.approx(((said - np.roll(y, 1, 0)) ** 2).mean(), rel=1e-5)


def words() -> Tensor:
    return torch.randint(0, SYMBOLS, (ROWS, STEPS + 3))


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("shift", "severity"), [(0, "info"), (1, ""), (2, "warning"), (3, "warning")])
def test_how_far_ahead_targets_lie(tmp_path: Path, shift: int, severity: str, inside: bool) -> None:
    def loss(model: nn.Module) -> Tensor:
        x = words()
        if inside:  # the model is given the whole text, and the loss leaves out the last step
            targets = torch.cat([x, torch.full((ROWS, 3), -100)], 1)[:, shift : shift + x.shape[1] - 1]
            return F.cross_entropy(model(x)[:, :-1].flatten(0, 1), targets.flatten())
        return F.cross_entropy(model(x[:, :STEPS]).flatten(0, 1), x[:, shift : shift + STEPS].flatten())

    found = watched(tmp_path / "a.inspect", Reader(), loss)
    assert told(found, "IN132") == [severity] * bool(severity)


@pytest.mark.parametrize(("shift", "severity"), [(-1, ""), (0, "info"), (1, ""), (2, "warning")])
def test_what_the_loop_leaves_out_at_the_front_moves_the_steps(tmp_path: Path, shift: int, severity: str) -> None:
    def loss(model: nn.Module) -> Tensor:
        x = words()
        said = model(x)[:, 1:]
        targets = torch.cat([x, torch.full((ROWS, 3), -100)], 1)[:, 1 + shift : 1 + shift + said.shape[1]]
        return F.cross_entropy(said.transpose(1, 2), targets)

    assert told(watched(tmp_path / "a.inspect", Reader(), loss), "IN132") == [severity] * bool(severity)


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize(
    ("cut", "shift", "severity"), [(2, 2, "warning"), (2, 1, ""), (3, 3, "warning"), (3, 2, "warning"), (3, 1, "")]
)
def test_how_far_ahead_targets_lie_where_the_loop_cuts_more_than_one_step(
    tmp_path: Path, cut: int, shift: int, severity: str, flat: bool
) -> None:
    def loss(model: nn.Module) -> Tensor:
        x = words()
        said, targets = model(x)[:, :-cut], x[:, shift : shift + x.shape[1] - cut]
        if flat:
            return F.cross_entropy(said.flatten(0, 1), targets.flatten())
        return F.cross_entropy(said.transpose(1, 2), targets)

    found = watched(tmp_path / "a.inspect", Reader(), loss)
    assert told(found, "IN132") == [severity] * bool(severity)
    shares = row(tmp_path / "a.inspect", "ahead")
    assert shares[shift] == 1 and np.nanmax(np.delete(shares, shift)) < 1


def test_heads_that_say_several_steps_ahead_and_texts_of_one_symbol_are_left_alone(tmp_path: Path) -> None:
    def heads(model: nn.Module) -> Tensor:
        x = words()
        y = model(x[:, :STEPS])
        return sum(
            (F.cross_entropy(y.flatten(0, 1), x[:, n : n + STEPS].flatten()) for n in (1, 2, 3)), torch.zeros(())
        )

    assert not told(watched(tmp_path / "a.inspect", Reader(), heads), "IN132")

    def same(model: nn.Module) -> Tensor:
        x = torch.randint(0, SYMBOLS, (ROWS, 1)).expand(ROWS, STEPS + 2)
        return F.cross_entropy(model(x[:, :STEPS]).flatten(0, 1), x[:, 2:].flatten())

    assert not told(watched(tmp_path / "b.inspect", Reader(), same), "IN132")


@pytest.mark.parametrize(
    ("last", "severity"),
    [
        (lambda y: y.softmax(-1), "warning"), (lambda y: y.sigmoid(), "warning"), (lambda y: y.log_softmax(-1), ""),
        (lambda y: y, ""), (lambda y: 5 * y.softmax(-1), ""),
    ],
)  # fmt: skip
def test_a_softmax_before_the_loss(tmp_path: Path, last: Callable[[Tensor], Tensor], severity: str) -> None:
    def loss(model: nn.Module) -> Tensor:
        x = words()
        return F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())

    assert told(watched(tmp_path / "a.inspect", Reader(last), loss), "IN131") == [severity] * bool(severity)


def test_one_batch_shows_nothing_and_one_sequence_no_others(tmp_path: Path) -> None:
    x = torch.randint(0, SYMBOLS, (1, STEPS))
    found = watched(
        tmp_path / "a.inspect", Reader(lambda y: y.softmax(-1)), lambda m: F.cross_entropy(m(x[:, :-1])[0], x[0, 1:]), 1
    )
    assert not {"IN131", "IN132", "IN211", "IN212"} & {one.id for one in found.findings}
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        assert "training:asked/own" not in capture.channels and "training:asked/given" in capture.channels


def test_losses_by_hand_in_light_and_of_nan_break_nothing(tmp_path: Path) -> None:
    def by_hand(model: nn.Module) -> Tensor:
        return (model(words())[..., 0] - 1).square().mean()

    found = watched(tmp_path / "a.inspect", Reader(), by_hand)
    assert not {"IN131", "IN132", "IN211", "IN212"} & {one.id for one in found.findings}
    watched(tmp_path / "b.inspect", Reader(), by_hand, cost="light")

    def nan(model: nn.Module) -> Tensor:
        x = words()
        return F.cross_entropy(model(x[:, :-1]).flatten(0, 1) * torch.nan, x[:, 1:].flatten())

    found = watched(tmp_path / "c.inspect", Reader(), nan, 60)
    assert not {"IN131", "IN211", "IN212", "IN136"} & {one.id for one in found.findings}
