"""A stream is read in pieces, the state handed on as it is, and retain_graph=True put where torch complained: each pass
goes back to the first piece, through weights that are gone. The cure detaches the state between pieces."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN137"
EVIDENCE = "nodes of the graph that the last backward pass goes through; the loss may fall all the same"


class Plain(torch.optim.Optimizer):
    """Steps along the gradient, written with .data, so that torch does not see that weights have changed."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step."""
        for parameter in self.param_groups[0]["params"]:
            parameter.data = parameter.data - 0.1 * parameter.grad


class Tagger(nn.Module):
    """The symbol before the last one: ids (b, t), state → logits (b, t, 6), state."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.recurrent, self.head = nn.Embedding(6, 12), nn.GRUCell(12, 24), nn.Linear(24, 6)

    def forward(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """A piece of the stream."""
        said = []
        for x in self.embedding(ids).unbind(1):
            state = self.recurrent(x, state)
            said.append(self.head(state))
        return torch.stack(said, 1), state


def nodes(root: object) -> int:
    """How many nodes of autograd are reached from one."""
    waiting, seen = [root], {root}
    while waiting:
        below = [one for one, _ in waiting.pop().next_functions if one is not None and one not in seen]  # type: ignore[attr-defined]
        seen.update(below)
        waiting.extend(below)
    return len(seen)


def train(version: str, seed: int, folder: Path) -> float:
    """80 pieces of 8 steps."""
    torch.manual_seed(seed)
    model, ill = Tagger(), version == "ill"
    state = torch.zeros(16, 24)
    with inspector.watch(model, optimizer := Plain(model.parameters(), {}), folder / "run.inspect", every=1):
        for _ in range(80):
            ids = torch.randint(0, 6, (16, 8))
            said, state = model(ids, state if ill else state.detach())
            loss = nn.functional.cross_entropy(said[:, 1:].flatten(0, 1), ids[:, :-1].flatten())
            optimizer.zero_grad()
            loss.backward(retain_graph=ill)
            optimizer.step()
    return float(nodes(loss.grad_fn))


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
