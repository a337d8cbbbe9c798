"""torch's own cells inside a larger hand-written step: one recurrence, with the cell's gates, exact through all of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from watched import seen

from inspector.engine.recurrent.traced.program.cell_functions import written_out
from inspector.records import Refusal

D = torch.float64
QUANTITIES = ("states", "gates")
CELLS = [nn.RNNCell, nn.GRUCell, nn.LSTMCell]


class Zoneout(nn.Module):
    """The state moves a part of the way only (Krueger et al. 2017, in evaluation)."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell = cell(3, 4)

    def advance(self, x: Tensor, state: Any) -> Any:
        new = self.cell(x, state)
        if isinstance(new, tuple):
            return tuple(0.25 * old + 0.75 * one for old, one in zip(state, new, strict=True))
        return 0.25 * state + 0.75 * new

    def forward(self, x: Tensor) -> Tensor:
        state: Any = x.new_zeros(x.shape[0], 4)
        if isinstance(self.cell, nn.LSTMCell):
            state = (state, state.clone())
        out = []
        for row in x.unbind(1):
            state = self.advance(row, state)
            out.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(out, 1)


class Masked(Zoneout):
    """Only every third unit moves at every step."""

    def advance(self, x: Tensor, state: Any) -> Any:
        new = self.cell(x, state)
        moves = torch.tensor([True, False, True, True])
        if isinstance(new, tuple):
            return tuple(torch.where(moves, one, old) for old, one in zip(state, new, strict=True))
        return torch.where(moves, new, state)


class Fed(Zoneout):
    """What the cell is given is computed from the state too (as the attention of a decoder, or a memory, is)."""

    def __init__(self, cell: Any) -> None:
        super().__init__(cell)
        self.feed = nn.Linear(4, 3)

    def advance(self, x: Tensor, state: Any) -> Any:
        return self.cell(x + torch.tanh(self.feed(state[0] if isinstance(state, tuple) else state)), state)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [Zoneout, Masked, Fed])
@pytest.mark.parametrize("cell", CELLS)
def test_the_whole_step_is_one_recurrence(kind: Any, cell: Any) -> None:
    """States, Jacobians (against autograd through the user's own step) and the loss gradient of every state."""
    torch.manual_seed(0)
    model = kind(cell).to(D)
    x = torch.randn(2, 21, 3, dtype=D)
    (found,), kept, trace = seen(model, x, quantities=QUANTITIES)
    assert not [record for record in kept.records if isinstance(record, Refusal)]
    assert found.place == "model" and found.check is not None and found.check.passed
    size = 8 if cell is nn.LSTMCell else 4

    def step(state: Tensor) -> Tensor:
        parts = state[None].split(4, -1)
        new = model.advance(x[1, 7][None], tuple(parts) if size == 8 else parts[0])
        return torch.cat(new if size == 8 else (new,), -1)[0]

    expected = torch.autograd.functional.jacobian(step, found.states[7, 1])
    ours = found.block(7, 8).vjp(torch.eye(size, dtype=D).expand(1, 2, -1, -1))[0, 1].mT
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(found.states[8, 1], step(found.states[7, 1]))
    assert trace.loss is not None
    assert found.delta is not None and found.arriving is not None
    h = found.cell.parts[found.cell.main]
    torch.testing.assert_close(found.delta[-1, :, h], 2 * found.states[-1, :, h])


@pytest.mark.parametrize("kind", [Zoneout, Masked, Fed])
@pytest.mark.parametrize(("cell", "names"), [
    (nn.GRUCell, ["gate/reset", "gate/update", "candidate"]),
    (nn.LSTMCell, ["gate/input", "gate/forget", "candidate", "gate/output"]),
])  # fmt: skip
def test_the_gates_of_the_cell_are_shown(kind: Any, cell: Any, names: list[str]) -> None:
    torch.manual_seed(1)
    model = kind(cell).to(D)
    x = torch.randn(1, 9, 3, dtype=D)
    (found,), kept, _ = seen(model, x, quantities=QUANTITIES)
    assert set(names) <= set(found.cell.gate_names)
    weights = dict(model.cell.named_parameters())
    h = found.states[4, 0, :4]
    given = x[0, 4] + torch.tanh(model.feed(h)) if kind is Fed else x[0, 4]
    a = weights["weight_ih"] @ given + weights["bias_ih"]
    b = weights["weight_hh"] @ h + weights["bias_hh"]
    second = torch.sigmoid((a + b)[4:8]).detach()
    torch.testing.assert_close(found.known[found.cell.gate_names.index(names[1])][4, 0], second)
    assert torch.tensor(kept.array(f"model:{names[1]}")).shape == (9, 4)


@pytest.mark.parametrize("detached", [False, True])
def test_a_cell_and_nothing_else_stays_the_cells(detached: bool) -> None:
    """Detached in between or not, the walk of the cell is shown, with its own name."""

    class Plain(Zoneout):
        def advance(self, x: Tensor, state: Any) -> Any:
            return self.cell(x, state.detach() if detached else state)

    (found,), _, _ = seen(Plain(nn.GRUCell).to(D), torch.randn(1, 12, 3, dtype=D), quantities=QUANTITIES)
    assert found.place == "cell" and found.cell.family == "gru"


@pytest.mark.parametrize("name", sorted(written_out()))
@pytest.mark.parametrize("bias", [True, False])
def test_cells_written_out_are_torchs(name: str, bias: bool) -> None:
    torch.manual_seed(2)
    rows = {"lstm_cell": 16, "gru_cell": 12}.get(name, 4)
    x, h, c = torch.randn(5, 3, dtype=D), torch.randn(5, 4, dtype=D), torch.randn(5, 4, dtype=D)
    weights = [torch.randn(rows, 3, dtype=D), torch.randn(rows, 4, dtype=D)]
    weights += [torch.randn(rows, dtype=D), torch.randn(rows, dtype=D)] if bias else []
    state = (h, c) if name == "lstm_cell" else h
    torch.testing.assert_close(written_out()[name](x, state, *weights), getattr(torch, name)(x, state, *weights))


def test_what_is_run_again_is_no_part_of_the_models_attention() -> None:
    """A softmax inside the step is the model's once, not once more for the check."""

    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.score = nn.GRUCell(3, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            keys = torch.tanh(x @ torch.ones(3, 4, dtype=D))
            h, out = x.new_zeros(x.shape[0], 4), []
            for row in x.unbind(1):
                alpha = torch.softmax(torch.bmm(keys, self.score(h).unsqueeze(2)).squeeze(2), 1)
                context = torch.bmm(alpha.unsqueeze(1), keys).squeeze(1)
                h = self.cell(row + context[:, :3], h)
                out.append(h)
            return torch.stack(out, 1)

    found, kept, trace = seen(Attending().to(D), torch.randn(2, 7, 3, dtype=D), quantities=QUANTITIES)
    assert [item.place for item in found] == ["model"]
    assert not [record for record in kept.records if isinstance(record, Refusal)]
    assert len(trace.attentions) == 1
