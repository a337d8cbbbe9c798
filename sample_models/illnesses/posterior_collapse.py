"""The divergence of a whole sequence is added to the mean loss of a symbol, so that it counts eight times and z is
given up. The cure counts both of a sequence, with free bits, and does not tell the decoder all symbols before."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN419"
EVIDENCE = "reconstruction, nats a symbol"
SYMBOLS, STEPS = 6, 8


class Autoencoder(nn.Module):
    """ids (b, t) → (logits (b, t, v), divergence of each of four hidden numbers (b, n))."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.encoder = nn.Embedding(SYMBOLS + 1, 8), nn.GRU(8, 24, batch_first=True)
        self.heads, self.begin = nn.Linear(24, 8), nn.Linear(4, 24)
        self.decoder, self.read = nn.GRU(8, 24, batch_first=True), nn.Linear(24, SYMBOLS)
        self.free, self.dropped, self.counted = 0.0, 0.0, 1.0

    def forward(self, ids: Tensor) -> Any:
        mu, log_variance = self.heads(self.encoder(self.embed(ids))[1][-1]).chunk(2, -1)
        z = mu + torch.exp(log_variance / 2) * torch.randn_like(mu)
        before = torch.cat((torch.full_like(ids[:, :1], SYMBOLS), ids[:, :-1]), 1)
        if self.training:
            before = before.masked_fill(torch.rand(before.shape) < self.dropped, SYMBOLS)
        scores = self.read(self.decoder(self.embed(before), torch.tanh(self.begin(z))[None])[0])
        return scores, (mu.square() + log_variance.exp() - 1 - log_variance) / 2


def missed(output: Any, batch: Any) -> Tensor:
    """(b, t): −ln p of each symbol that was read."""
    return nn.functional.cross_entropy(output[0].transpose(1, 2), batch.inputs, reduction="none")


def draw(many: int) -> Tensor:
    """(b, t): a symbol, and how many further the next one is."""
    first, further = torch.randint(0, SYMBOLS, (2, many, 1))
    ids: Tensor = (first + further * torch.arange(STEPS)) % SYMBOLS
    return ids


def train(version: str, seed: int, folder: Path) -> float:
    """600 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model, losses = Autoencoder().train(), []
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for iteration in range(1200 if version == "cured" else 600):
        if version == "healthy" or iteration == 600:
            model.free, model.dropped, model.counted = 1.0, 0.7, 1 / STEPS
        ids = draw(48)
        output = model(ids)
        reconstruction = missed(output, SimpleNamespace(inputs=ids))
        loss = reconstruction.mean() + model.counted * output[1].clamp(min=model.free).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            losses.append(missed(model.eval()(ids), SimpleNamespace(inputs=ids)).mean().item())
        model.train()
    subject = SimpleNamespace(model=model.eval(), vocabulary="abcdef", loss=missed, logits=lambda output: output[0])
    inspector.run(subject, draw(1)[0], out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
