"""Steps of thousands of small operations: what looking for recurrences does grows with their number, not its square."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import inspector

STEPS = 4


class Sliced(nn.Module):
    """Each entry of the state on its own: slices, gates and a join, or writes into a buffer."""

    def __init__(self, parts: int, *, written: bool) -> None:
        super().__init__()
        self.parts, self.written = parts, written
        self.read = nn.Linear(3, parts)
        self.own = nn.Parameter(torch.full((parts,), 0.3))
        self.out = nn.Linear(parts, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(len(x), self.parts)
        outputs = []
        for t in range(x.shape[1]):
            a, new = self.read(x[:, t]), torch.zeros(len(x), self.parts)
            made = [torch.tanh(h[:, n] * self.own[n] + a[:, n]) for n in range(self.parts)]
            if self.written:
                for n, one in enumerate(made):
                    new[:, n] = one
            h = new if self.written else torch.stack(made, 1)
            outputs.append(self.out(h))
        return torch.stack(outputs, 1)


def calls(folder: Path, parts: int, *, written: bool) -> int:
    """Function calls in a run for its states."""
    profile = cProfile.Profile()
    profile.enable()
    inspector.run(
        Sliced(parts, written=written), torch.ones(1, STEPS, 3), out=folder / f"{parts}.inspect", only=["states"]
    )
    profile.disable()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize("written", [False, True])
def test_twice_the_operations_take_twice_the_work(tmp_path: Path, written: bool) -> None:
    calls(tmp_path, 8, written=written)  # what is imported and compiled once
    first, second, third = (calls(tmp_path, parts, written=written) for parts in (100, 200, 400))
    assert third - second < 2.4 * (second - first)
