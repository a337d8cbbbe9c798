"""The operation that made the first loss that is not finite, in losses that users write, and none where all is well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.engine.watch.measures.broken_loss import broken_by

ZERO, HALF = torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.5])


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda p: -(HALF * p.log()).sum(), ["the logarithm of 0"]),
        (lambda p: -(ZERO * p.log()).sum(), ["the logarithm of 0"]),  # 0 · −∞ is NaN
        (lambda p: -(HALF * (p - 0.5).log2()).sum(), ["the logarithm of a negative number"]),
        (lambda p: -(HALF * (1 - p).log()).sum(), ["the logarithm of 0"]),
        (lambda p: (-p).log1p().sum(), ["the logarithm of 0"]),
        (lambda p: (HALF / p).sum(), ["a division by 0"]),
        (lambda p: (p - 0.5).sqrt().sum(), ["the root of a negative number"]),
        (lambda p: (p.log() + 1 / p).sum(), ["the logarithm of 0", "a division by 0"]),
        (lambda p: (p * 1e30).exp().sum(), []),  # it is infinite by itself
        (lambda p: -(p + 1e-8).log().sum(), []),
        (lambda p: (p * torch.nan).sum(), []),
    ],
)
def test_operations_are_told_by_what_they_were_given(loss: Callable[[Tensor], Tensor], said: list[str]) -> None:
    scores = torch.tensor([200.0, -200.0], requires_grad=True)
    assert sorted(broken_by(loss(torch.softmax(scores, 0)))) == sorted(said)
    assert broken_by(torch.tensor(torch.nan)) == []


class Net(nn.Module):
    """A probability that becomes exactly 0 once the weight has been made large."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Linear(2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.read(x))


@pytest.mark.parametrize("every", [1, 5])
@pytest.mark.parametrize("eps", [0.0, 1e-8])
def test_it_is_named_also_where_the_iteration_was_not_recorded(tmp_path: Path, every: int, eps: float) -> None:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.ones(4, 2)
    with inspector.watch(model, optimizer, tmp_path / "a.inspect", every=every):
        for n in range(1, 31):
            if n == 13:
                with torch.no_grad():
                    model.read.weight.fill_(-300.0)
            loss = -(model(x) + eps).log().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    found = [one for one in inspector.diagnose(tmp_path / "a.inspect").findings if one.id == "IN102"]
    assert bool(found) == (eps == 0)
    for one in found:
        assert "in iteration 13 the loss computes the logarithm of 0" in one.message
        assert "binary_cross_entropy_with_logits" in one.code and "training:loss/broken_by" in one.evidence
