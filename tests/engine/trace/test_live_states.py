"""States that are written while the model runs have, in the capture, the axis that is known only afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector

STEPS, WIDTH, UNITS = 40, 3, 4


class Backward(nn.Module):
    """A cell that reads its input from the end."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.two = kind(WIDTH, UNITS), kind is nn.LSTMCell

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(x.shape[0], UNITS)
        rows = []
        for t in reversed(range(x.shape[1])):
            if self.two:
                h, c = self.cell(x[:, t], (h, c))
            else:
                h = self.cell(x[:, t], h)
            rows.append(h)
        return torch.stack(rows[::-1], 1)


@pytest.mark.parametrize("kind", [nn.GRUCell, nn.LSTMCell, nn.RNNCell])
@pytest.mark.parametrize("steps", [5, STEPS])
def test_a_cell_that_reads_backwards_is_not_drawn_on_the_axis_of_its_input(kind: type[nn.Module], steps: int) -> None:
    model, x = Backward(kind), torch.randn(steps, WIDTH)
    with inspector.run(model, x.numpy(), only=("states",)) as capture:
        for part in ("h", "c") if kind is nn.LSTMCell else ("h",):
            assert capture.channel(f"cell:{part}").domain("step") == "iteration of cell"
        states = capture.array("cell:h")
    expected = model(x[None])[0].flip(0).detach().numpy()
    assert states.shape == expected.shape
    assert np.allclose(states, expected, atol=1e-6)


class FastAndSlow(nn.Module):
    """Three cells make one step together; the slow one's state goes from call to call as it is."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.slow, self.second = (
            nn.GRUCell(WIDTH, UNITS),
            nn.GRUCell(UNITS, UNITS),
            nn.GRUCell(UNITS, UNITS),
        )

    def forward(self, x: Tensor) -> Tensor:
        fast = slow = x.new_zeros(x.shape[0], UNITS)
        rows = []
        for t in range(x.shape[1]):
            fast = self.first(x[:, t], fast)
            slow = self.slow(fast, slow)
            fast = self.second(slow, fast)
            rows.append(fast)
        return torch.stack(rows, 1)


def test_a_cell_that_was_written_before_it_was_a_part_of_a_step_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.engine.probes.cells.LIVE_STEPS", 8)
    monkeypatch.setattr("inspector.engine.probes.cells.LIVE_SECONDS", 1e9)
    with inspector.run(FastAndSlow(), torch.randn(12, WIDTH).numpy(), only=("states",)) as capture:
        written = len(capture.array("slow:h"))
        said = {one.channel: one.reason for one in capture.refusals}
        assert capture.array("model:slow").shape == (12, UNITS)
    assert written == 8
    assert f"only the first {written} were written" in said["slow:h"]
