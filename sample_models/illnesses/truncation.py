"""A stream is learned in pieces of 4 steps, the state handed on without its gradient, and what is asked for was read 8
steps before. The cure is pieces of 24 steps, over as many symbols in all."""

import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

import inspector

RULE = "IN208"
SYMBOLS, LAG, STREAMS = 4, 8, 32


class Reader(nn.Module):
    """Symbols (b, t) → logits (b, t, v), and the state after the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(SYMBOLS, 8), nn.GRU(8, 32, batch_first=True)
        self.head = nn.Linear(32, SYMBOLS)

    def forward(self, ids: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits (b, t, 4), state (1, b, h)."""
        out, state = self.rnn(self.embedding(ids), state)
        return self.head(out), state


def train(version: str, seed: int, folder: Path) -> float:
    """Every iteration is a piece of the streams; what the data need is counted in sequences of 24 steps."""
    torch.manual_seed(seed)
    model, piece = Reader(), 4 if version == "ill" else 24
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    streams = torch.randint(0, SYMBOLS, (STREAMS, LAG + 24 * 300))
    inputs, targets = streams[:, LAG:], streams[:, :-LAG]
    shown = torch.randint(0, SYMBOLS, (64, LAG + 24))
    data = [(one[LAG:], one[:-LAG]) for one in shown]
    subject = SimpleNamespace(
        model=model, kind="tokens", data=data, examples={"one": data[0]}, logits=lambda out: out[0],
        loss=lambda out, batch: nn.functional.cross_entropy(out[0].transpose(1, 2), batch.targets, reduction="none"),
    )  # fmt: skip
    state, losses = None, []
    with inspector.watch(
        model, optimizer, folder / "run.inspect", every=3, probe="example:", probe_subject=subject, probe_every=10_000,
        quantities=["trial/reach"],
    ):  # fmt: skip
        for ids, wanted in zip(inputs.split(piece, 1), targets.split(piece, 1), strict=True):
            scores, state = model(ids, state)
            loss = nn.functional.cross_entropy(scores.transpose(1, 2), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state = state.detach()
            losses.append(loss.item())
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    print("loss", train(sys.argv[1], 0, to := Path(*sys.argv[2:])))
    for finding in inspector.diagnose(to / "run.inspect").findings:
        print(f"{finding.severity}: {finding.message} [{finding.id}]")
