"""A recurrence that cannot be shown hides no other one, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from watched import seen

from inspector.engine.probes import handwritten

D = torch.float64
T, H = 7, 4


class TwoLayers(nn.Module):
    """Both in one loop over time, so that they are two states of it."""

    def __init__(self) -> None:
        super().__init__()
        self.lower, self.upper = nn.Linear(2 * H, H), nn.Linear(2 * H, H)

    def forward(self, x: Tensor) -> Tensor:
        a = b = x.new_zeros(len(x), H)
        out = []
        for row in x.unbind(1):
            a = torch.tanh(self.lower(torch.cat((row, a), -1)))
            b = torch.tanh(self.upper(torch.cat((a, b), -1)))
            out.append(b)
        return torch.stack(out, 1)


class InTurn(TwoLayers):
    """One loop after the other."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in (self.lower, self.upper):
            h, out = x.new_zeros(len(x), H), []
            for row in x.unbind(1):
                h = torch.tanh(layer(torch.cat((row, h), -1)))
                out.append(h)
            x = torch.stack(out, 1)
        return x


@pytest.mark.parametrize("model", [TwoLayers, InTurn])
@pytest.mark.parametrize("fault", [StopIteration(), RuntimeError("no such shape"), KeyError("h")])
def test_a_fault_in_one_state_hides_no_other(
    model: type[nn.Module], fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    assemble = handwritten.recurrence_of
    faults = iter([fault])

    def faulty(*given: Any) -> Any:
        for one in faults:
            raise one
        return assemble(*given)

    monkeypatch.setattr(handwritten, "recurrence_of", faulty)
    found, kept, _ = seen(model().to(D), torch.randn(2, T, H, dtype=D))
    assert [(one.place, one.steps) for one in found] == [("model#2", T)]
    (reason,) = kept.reasons()
    assert reason.startswith(f"The loop of {T} iterations in forward(), line ") and type(fault).__name__ in reason


def test_a_fault_in_one_loop_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    analyse, looks = handwritten.analyse, iter([0])

    def faulty(loop: Any) -> Any:
        for _ in looks:
            raise StopIteration
        return analyse(loop)

    monkeypatch.setattr(handwritten, "analyse", faulty)
    found, kept, _ = seen(InTurn().to(D), torch.randn(2, T, H, dtype=D))
    assert [one.steps for one in found] == [T] and len(kept.reasons()) == 1


class Stack(nn.Module):
    """Layers of changing width without a loop over time, and a recurrence beside them."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(widths))
        self.map = nn.Linear(2 * H, H)

    def forward(self, x: Tensor) -> Tensor:
        v = x[:, -1]
        for layer in self.layers:
            v = torch.tanh(layer(v))
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            h = torch.tanh(self.map(torch.cat((row, h), -1)))
            out.append(h + v.sum())
        return torch.stack(out, 1)


@pytest.mark.parametrize("widths", [(H, 5, 6, 7), (H, 6, 6, 5), (H, 5, 6, 5), (H, 8, 8, 16, 16)])
def test_a_stack_whose_width_changes_is_refused_and_hides_nothing(widths: Sequence[int]) -> None:
    found, kept, _ = seen(Stack(widths).to(D), torch.randn(2, T, H, dtype=D))
    assert [(one.place, one.steps) for one in found] == [("model", T)]
    (reason,) = kept.reasons()
    assert reason.startswith(
        f"The stack of {len(widths) - 1} layers in model#2 is not shown: its state changes its shape"
    )
    assert f"(2, {widths[1]})" in reason


def test_a_stack_of_one_width_is_shown() -> None:
    found, kept, _ = seen(Stack((H, 5, 5, 5)).to(D), torch.randn(2, T, H, dtype=D))
    assert [(one.place, one.steps) for one in found] == [("model", T), ("model#2", 3)] and not kept.reasons()
