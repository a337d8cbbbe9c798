"""A decoder's attention to its source has its own learning rate, ten thousand times too small: it reads the mean of
the source at every step. The cure is a larger learning rate for attention."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN416"
SEVERITY = "info"
SYMBOLS, STEPS = 8, 10


class Decoder(nn.Module):
    """Reads source (b, s) and the answer so far (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.word = nn.Embedding(SYMBOLS, 24), nn.Embedding(SYMBOLS + 1, 24)
        self.places, self.turns = nn.Parameter(torch.randn(STEPS, 24)), nn.Parameter(torch.randn(STEPS, 24))
        self.attention = nn.MultiheadAttention(24, 1, batch_first=True)
        self.read = nn.Linear(24, SYMBOLS)

    def forward(self, source: Tensor, answer: Tensor) -> Any:
        memory = self.embed(source) + self.places[: source.shape[1]]
        states = self.word(answer) + self.turns[: answer.shape[1]]
        return self.read(self.attention(states, memory, self.embed(source))[0])


def shifted(answer: Tensor) -> Tensor:
    """(b, t): what the decoder reads, after a sign of beginning."""
    return nn.functional.pad(answer[:, :-1], (1, 0), value=SYMBOLS)


def train(version: str, seed: int, folder: Path) -> float:
    """300 iterations with Adam; the answer is the source said backwards. The cured one goes on from the ill one."""
    torch.manual_seed(seed)
    model = Decoder()
    with torch.no_grad():
        model.attention.in_proj_weight[:48] *= 0.1
    for rate in {"ill": [1e-7], "healthy": [3e-3], "cured": [1e-7, 3e-3]}[version]:
        last = loop(model, rate)
    source = torch.randint(0, SYMBOLS, (STEPS,))
    inputs = {"source": {"kind": "tokens"}, "answer": {"kind": "tokens", "size": SYMBOLS + 1}}
    subject = SimpleNamespace(model=model.eval(), inputs=inputs)
    given = {"source": source, "answer": shifted(source.flip(0)[None])[0]}
    inspector.run(subject, given, out=folder / "run.inspect").close()
    return last


def loop(model: Decoder, attention_rate: float) -> float:
    """300 iterations; the mean loss of the last 20."""
    slow = [one for name, one in model.named_parameters() if "in_proj" in name]
    fast = [one for name, one in model.named_parameters() if "in_proj" not in name]
    groups: list[dict[str, Any]] = [{"params": fast}, {"params": slow, "lr": attention_rate}]
    optimizer = torch.optim.Adam(groups, 3e-3)
    losses = []
    for _ in range(300):
        source = torch.randint(0, SYMBOLS, (32, STEPS))
        answer = source.flip(1)
        loss = nn.functional.cross_entropy(model(source, shifted(answer)).transpose(1, 2), answer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
