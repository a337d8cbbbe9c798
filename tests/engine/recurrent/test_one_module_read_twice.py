"""One module that reads two sequences: derivatives of each one's states by the parameters, against autograd.

The reference is autograd on the module's own output. Where the second sequence is made of the first one's states the
parameters act on its states in a second way, and nothing is shown for them.
"""

from __future__ import annotations

import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D, IN, E, H, T = torch.float64, 3, 5, 4, 6


class Twice(nn.Module):
    """Both sequences are embedded in one call."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.embed, self.rnn, self.back = nn.Linear(IN, E), kind(E, H, batch_first=True), nn.Linear(H, E)

    def read(self, given: Tensor) -> Tensor:
        found: Tensor = self.rnn(given)[0]
        return found

    def both_embedded(self, x: Tensor) -> tuple[Tensor, Tensor]:
        one, other = self.embed(torch.cat((x, x.flip(1)))).chunk(2)
        return one, other

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        one, other = self.both_embedded(x)
        return self.read(one), self.read(other)

    def forward(self, x: Tensor) -> Tensor:
        one, other = self.both(x)
        return one + other


class OnTop(Twice):
    """The second sequence is made of the first one's states."""

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        one = self.read(self.embed(x))
        return one, self.read(self.back(one))


class Cells(Twice):
    """torch's cell in a loop of one's own."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__(kind)
        self.rnn = {nn.GRU: nn.GRUCell, nn.RNN: nn.RNNCell}[kind](E, H)  # type: ignore[assignment, index]

    def read(self, given: Tensor) -> Tensor:
        h, out = given.new_zeros(len(given), H), []
        for row in given.unbind(1):
            h = self.rnn(row, h)
            out.append(h)
        return torch.stack(out, 1)


class CellsOnTop(Cells):
    both = OnTop.both


class Tanh(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(E, H), nn.Linear(H, H, bias=False)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.x(x) + self.h(h))


class ByHand(Cells):
    """A cell that is written by hand, too; both loops are in one function, or one is after the other in `both`."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__(nn.RNN)
        self.rnn = Tanh()  # type: ignore[assignment]


class ByHandOnTop(ByHand):
    both = OnTop.both


class ByHandInOneLoop(ByHand):
    """Both sequences in one loop."""

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        one, other = Twice.both_embedded(self, x)
        h = g = x.new_zeros(len(x), H)
        first, second = [], []
        for a, b in zip(one.unbind(1), other.unbind(1), strict=True):
            h, g = self.rnn(a, h), self.rnn(b, g)
            first.append(h)
            second.append(g)
        return torch.stack(first, 1), torch.stack(second, 1)


class ByHandAbove(ByHand):
    """In one loop, and the second reads the first one's states."""

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = g = x.new_zeros(len(x), H)
        first, second = [], []
        for a in self.embed(x).unbind(1):
            h = self.rnn(a, h)
            g = self.rnn(self.back(h), g)
            first.append(h)
            second.append(g)
        return torch.stack(first, 1), torch.stack(second, 1)


def run(model: Twice) -> tuple[Kept, Tensor]:
    kept, x = Kept(), torch.randn(1, T, IN, dtype=D)
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out.square().sum(-1))
    perform(subject, Batch(x, torch.tensor([T])), kept, RunOptions(only=("gradient/state_derivatives",)))
    return kept, x


CASES = [(Twice, nn.LSTM), (Twice, nn.GRU), (Twice, nn.RNN), (Cells, nn.GRU), (Cells, nn.RNN)]


@pytest.mark.parametrize(("how", "kind"), CASES)
def test_independent_sequences_have_their_derivatives_each(how: type[Twice], kind: type[nn.RNNBase]) -> None:
    torch.manual_seed(1)
    model = how(kind).to(D)
    kept, x = run(model)
    assert not kept.reasons()
    for place, states in zip(("rnn", "rnn#2"), model.both(x), strict=True):
        place += ".l0" if how is Twice else ""
        for name in ("weight_ih", "weight_hh"):
            weight = getattr(model.rnn, name + ("_l0" if how is Twice else ""))
            rows = [torch.autograd.grad(unit, weight, retain_graph=True)[0] for unit in states[0, -1]]
            shown = kept.scalar(f"{place}:state_derivative/{name}/{T - 1}/norm")
            assert shown == pytest.approx(float(torch.stack(rows).norm()), rel=1e-9)


@pytest.mark.parametrize("how", [ByHand, ByHandInOneLoop])
def test_loops_by_hand_over_two_sequences_have_their_derivatives_each(how: type[ByHand]) -> None:
    torch.manual_seed(1)
    model = how(nn.RNN).to(D)
    kept, x = run(model)
    assert not kept.reasons()
    for place, states in zip(("rnn", "rnn#2"), model.both(x), strict=True):
        for name in ("x.weight", "x.bias", "h.weight"):
            weight = model.rnn.get_parameter(name)
            rows = [torch.autograd.grad(unit, weight, retain_graph=True)[0] for unit in states[0, -1]]
            shown = kept.scalar(f"{place}:state_derivative/rnn.{name}/{T - 1}/norm")
            assert shown == pytest.approx(float(torch.stack(rows).norm()), rel=1e-9)


@pytest.mark.parametrize("how", [ByHandOnTop, ByHandAbove])
def test_a_loop_by_hand_over_the_others_states_has_none(how: type[ByHand]) -> None:
    torch.manual_seed(1)
    kept, _ = run(how(nn.RNN).to(D))
    names = [name for name in kept.names() if "state_derivative" in name]
    assert [name for name in names if name.startswith("rnn:")]
    assert not [name for name in names if name.startswith("rnn#2")]
    reasons = [one.reason for one in kept.refusals() if one.channel.startswith("rnn#2")]
    assert reasons and all("acts on this state through other values" in why or "may act on" in why for why in reasons)


@pytest.mark.parametrize(("how", "kind"), [(OnTop, nn.LSTM), (OnTop, nn.GRU), (CellsOnTop, nn.RNN)])
def test_a_sequence_made_of_the_others_states_has_none(how: type[Twice], kind: type[nn.RNNBase]) -> None:
    """Nor has a bias that is the sum of two parameters."""
    torch.manual_seed(1)
    kept, _ = run(how(kind).to(D))
    assert not [name for name in kept.names() if name.startswith("rnn#2") and "state_derivative" in name]
    reasons = [one.reason for one in kept.refusals() if one.channel.startswith("rnn#2")]
    assert reasons and all("uses it too, and may act on this state" in reason for reason in reasons)
