"""What tools that diagnose trainings say of one net that cannot learn, of one that does, and of a calmer one.

    python tests/bench/bench_peers.py [--seeds 0 1 2] [--tools gradsnitch …]

The task: say after 60 random symbols which of eight came first. *Ill*: an nn.RNN of 48 units, its recurrent weights times
0.9, which forgets the first symbol within some fifteen steps, so that no gradient teaches it. *Healthy*: an nn.LSTM whose
forget gates start open (a bias of 4). *Calmer*: the same at a third of the learning rate, since the healthy one has real
spikes that are clipped. Adam at 3e-3, clipping at 1, 400 iterations, three seeds; each tool as its README shows it.

Each tool that is not installed is left out. Versions that README's table was made with: torchmortem 0.1.1 (plotly 7.1.0),
gradsnitch 0.1.0, trainspotter 0.2.6, traintools 0.6.2, torch-audit 0.3.0; `pip install --no-deps` into an environment
that has torch, pandas, jinja2 and rich.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from harness import Row
from peer_tools import GROUPS, STEPS, TOOLS, Said
from torch import nn

ROWS, ITERATIONS = 64, 400
NETS = ("ill", "healthy", "calmer")
CAUSE = ("vanish", "through time", "further back")
"""A tool that says one of these of the ill net names the cause."""
Found = dict[tuple[str, str, int], list[Said]]


class Reader(nn.Module):
    """Embedding, a recurrence, a read-out of the last step."""

    def __init__(self, net: str) -> None:
        super().__init__()
        kind = nn.RNN if net == "ill" else nn.LSTM
        self.embedding, self.rnn, self.head = nn.Embedding(8, 8), kind(8, 48, batch_first=True), nn.Linear(48, 8)
        with torch.no_grad():
            if net == "ill":
                self.rnn.weight_hh_l0 *= 0.9
            else:
                self.rnn.bias_ih_l0[48:96] = 4.0

    def forward(self, ids: torch.Tensor) -> Any:
        """Logits (b, 8)."""
        return self.head(self.rnn(self.embedding(ids))[0][:, -1])


def trained(net: str, seed: int, names: Sequence[str]) -> tuple[float, dict[str, list[Said]]]:
    """Train, with tools in the loop: the mean loss of the last 50 iterations, and what each says."""
    torch.manual_seed(seed)
    model, losses, tools = Reader(net), [], {name: TOOLS[name]() for name in names}
    optimizer = torch.optim.Adam(model.parameters(), 1e-3 if net == "calmer" else 3e-3)
    generator = torch.Generator().manual_seed(seed)  # of its own: a tool may draw from the usual one
    with tempfile.TemporaryDirectory() as folder:
        for tool in tools.values():
            tool.begin(model, optimizer, Path(folder))
        for step in range(ITERATIONS):
            ids = torch.randint(0, 8, (ROWS, STEPS), generator=generator)
            loss = nn.functional.cross_entropy(model(ids), ids[:, 0])
            optimizer.zero_grad()
            loss.backward()
            losses.append(loss.item())
            norm = torch.stack([one.grad.norm() for one in model.parameters()]).norm().item()
            for tool in tools.values():
                tool.after_backward(step, losses[-1], norm)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            for tool in tools.values():
                tool.after_step(step, losses[-1])
        return sum(losses[-50:]) / 50, {name: tool.said() for name, tool in tools.items()}


def versions() -> dict[str, str]:
    """{tool: version} of those that are installed."""
    found = {}
    for name, tool in TOOLS.items():
        try:
            found[name] = version(tool.package) if tool.package else ""
        except PackageNotFoundError:
            continue
    return found


def measured(seeds: Iterable[int], installed: Iterable[str]) -> Found:
    """All trainings; losses are told, which no tool may change."""
    found: Found = {}
    for net in NETS:
        for seed in seeds:
            losses = set()
            for group in GROUPS:
                names = [name for name in group if name in installed]
                if names:
                    loss, said = trained(net, seed, names)
                    losses.add(f"{loss:.4f}")
                    found.update({(name, net, seed): one for name, one in said.items()})
            sys.stderr.write(f"{net}, seed {seed}: loss {', '.join(sorted(losses))}\n")
    return found


def markdown(found: Found, installed: dict[str, str]) -> str:
    """The confusion table."""
    lines = ["| tool | the ill net: cause named | warnings | the healthy net: warnings | the calmer one: warnings |"]
    lines.append("|---|---|---|---|---|")
    for name, number in installed.items():
        ill = [said for (tool, net, _seed), said in found.items() if (tool, net) == (name, "ill")]
        named = sum(any(word in f"{a} {b}".lower() for a, b in said for word in CAUSE) for said in ill)
        cells = [_cell([said for (tool, net, _), said in found.items() if (tool, net) == (name, one)]) for one in NETS]
        lines.append(f"| {f'{name} {number}'.strip()} | {named} of {len(ill)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(runs: Sequence[list[Said]]) -> str:
    """In how many runs there is a warning, and of what, with how many there are of it."""
    kinds = [Counter(short for short, _more in said) for said in runs]
    texts = []
    for kind in sorted({one for counts in kinds for one in counts}):
        times = [counts[kind] for counts in kinds]
        texts.append(f"{kind} ({', '.join(map(str, times))})")
    return f"{sum(bool(said) for said in runs)} of {len(runs)}" + (f": {'; '.join(texts)}" if texts else "")


def rows() -> list[Row]:
    """None: this bench has no ratios, and its table is printed when it is run by itself."""
    return []


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What tools that diagnose trainings say of an ill and a healthy net.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tools", nargs="+", choices=list(TOOLS), default=list(TOOLS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    installed = {name: number for name, number in versions().items() if name in given.tools}
    print(markdown(measured(given.seeds, installed), installed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
