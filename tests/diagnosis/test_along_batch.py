"""IN130: recurrent modules that go along the batch, in runs of models in several styles."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import inspector


class Reads(nn.Module):
    """A recurrent layer within a model; `turned` gives it (step, batch, unit)."""

    def __init__(self, rnn: nn.RNNBase, *, turned: bool) -> None:
        super().__init__()
        self.rnn, self.turned, self.read = rnn, turned, nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        states = self.rnn(x.transpose(0, 1))[0].transpose(0, 1) if self.turned else self.rnn(x)[0]
        return torch.as_tensor(self.read(states))


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize(("sequences", "steps"), [(1, 6), (3, 6), (6, 6), (1, 2)])
@pytest.mark.parametrize(("batch_first", "turned"), [(False, False), (False, True), (True, False)])
def test_found_where_it_is_so_and_nowhere_else(
    tmp_path: Path, kind: type[nn.RNNBase], sequences: int, steps: int, batch_first: bool, turned: bool
) -> None:
    torch.manual_seed(0)
    model = Reads(kind(3, 4, batch_first=batch_first), turned=turned).eval()  # type: ignore[arg-type]
    x = torch.randn(sequences, steps, 3)
    with torch.no_grad():
        earlier = torch.cat((2 * x[:, :-1], x[:, -1:]), 1)  # a step hangs on those before it, unless they are a batch
        along = torch.allclose(model(x)[:, -1], model(earlier)[:, -1], atol=1e-7)
    inspector.run(model, x, out=tmp_path / "r.inspect", only=("states", "input")).close()
    found = [one for one in inspector.diagnose(tmp_path / "r.inspect").findings if one.id == "IN130"]
    assert bool(found) is along is (not batch_first and not turned)
    for one in found:
        assert one.severity == "warning" and one.place == "rnn" and f"not along the {steps} steps" in one.message


def test_a_run_of_one_step_says_nothing(tmp_path: Path) -> None:
    model = Reads(nn.GRU(3, 4), turned=False).eval()
    inspector.run(model, torch.randn(1, 1, 3), out=tmp_path / "r.inspect", only=("states", "input")).close()
    assert "IN130" not in {one.id for one in inspector.diagnose(tmp_path / "r.inspect").findings}
