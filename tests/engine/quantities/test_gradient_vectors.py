"""∂L/∂s_t, entry by entry, against autograd over a plain loop, and only at the steps that are asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.errors import InputError
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, chosen_quantities, perform
from inspector.engine.registries import QUANTITIES, quantity_of, request_of


class Net(nn.Module):
    """An LSTM and a read-out."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.rnn(x)[0])
        return out


def loss(output: Tensor, batch: Batch) -> Tensor:
    """A square at every step."""
    return output.square().sum(-1)


def reference(model: Net, x: Tensor) -> dict[str, Tensor]:
    """(t, h) gradients of the states by autograd, from cells called step by step."""
    cell = nn.LSTMCell(3, 4).double()
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in model.rnn.state_dict().items()})
    h, c = torch.zeros(1, 4, dtype=x.dtype), torch.zeros(1, 4, dtype=x.dtype)
    kept: dict[str, list[Tensor]] = {"h": [], "c": []}
    total = torch.zeros((), dtype=x.dtype)
    for row in x.unbind(1):
        h, c = cell(row, (h, c))
        h, c = h * 1, c * 1
        kept["h"].append(h)
        kept["c"].append(c)
        total = total + model.head(h).square().sum()
    own = torch.autograd.grad(total, [*kept["h"], *kept["c"]], allow_unused=True)
    rows = [torch.zeros(1, 4, dtype=x.dtype) if g is None else g for g in own]
    return {"h": torch.cat(rows[: x.shape[1]]), "c": torch.cat(rows[x.shape[1] :])}


def run(*requests: str) -> tuple[Kept, dict[str, Tensor]]:
    torch.manual_seed(3)
    model, x = Net().double(), torch.randn(1, 7, 3, dtype=torch.float64)
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=3, loss=loss)
    perform(subject, Batch(x, torch.tensor([7])), kept, RunOptions(only=requests))
    return kept, reference(model, x)


def test_every_entry_is_autograds() -> None:
    kept, expected = run("gradient/vectors")
    np.testing.assert_allclose(kept.array("rnn.l0:gradient/h"), expected["h"].numpy(), rtol=1e-10)


def test_only_the_steps_that_are_asked_for_are_written() -> None:
    kept, expected = run("gradient/vectors@2:5")
    got = kept.array("rnn.l0:gradient/h")
    assert got.shape == (7, 4) and np.isnan(got[[0, 1, 5, 6]]).all()
    np.testing.assert_allclose(got[2:5], expected["h"][2:5].numpy(), rtol=1e-10)


def test_requests_choose_and_set_options() -> None:
    defaults = {key for key, entry in QUANTITIES.items() if entry.default}
    assert set(chosen_quantities(RunOptions())) == defaults
    assert set(chosen_quantities(RunOptions(also=("bptt",)))) == defaults | {"bptt"}
    assert chosen_quantities(RunOptions(only=("gates", "states"))) == ["states", "gates"]
    assert chosen_quantities(RunOptions(only=("states",), also=("gradient/vectors@0:5",))) == [
        "states",
        "gradient/vectors@0:5",
    ]
    assert chosen_quantities(RunOptions(only=("gradient/vectors@0:5", "gradient/vectors@3"))) == ["gradient/vectors@3"]
    assert quantity_of("gradient/vectors@0:5")[1] == {"steps": (0, 5)}
    assert request_of("gradient/vectors", {"steps": (0, 5)}) == "gradient/vectors@steps=0:5"
    with pytest.raises(InputError, match="close to it is bptt"):
        chosen_quantities(RunOptions(also=("bppt",)))
    with pytest.raises(InputError, match=r"^The quantity influence cannot take this: draws is 0; expected .* 1 to 64"):
        request_of("influence", {"draws": 0})


def test_the_formula_says_what_is_held_fixed() -> None:
    torch.manual_seed(0)
    kept = Kept()
    batch = Batch(torch.randn(1, 5, 3), torch.tensor([5]))
    subject = Subject(Net(), kind="vectors", width=3, loss=loss)
    perform(subject, batch, kept, RunOptions(only=("gradient/vectors",)))
    assert "∂L/∂c_t with h_t held fixed" in kept.channel("rnn.l0:gradient/c").formula
    assert "∂L/∂h_t with c_t held fixed" in kept.channel("rnn.l0:gradient/h").formula
