"""Training scripts that know nothing of inspector: `python unwatched_scripts.py CASE`."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Dropout(0.2), nn.Linear(7, 1))


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, count: int) -> None:
    for _ in range(count):
        model(torch.randn(6, 5)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def bits(model: nn.Module) -> str:
    found = hashlib.sha256()
    for one in model.parameters():
        found.update(one.detach().numpy().tobytes())
    return f"{found.hexdigest()} {torch.rand(1).item()}"


def plain() -> None:
    """All that a script can see of how it was started, and a training."""
    sys.stdout.write(f"{sys.argv} {sys.stdin.read()} {'inspector' in sys.modules}\n")
    model = small()
    steps(model, torch.optim.AdamW(model.parameters(), 0.01), 30)
    sys.stdout.write(f"{bits(model)} {getattr(sys, 'of_the_user', None)}\n")
    sys.stderr.write("its own line\n")
    raise SystemExit(3)


def pair() -> None:
    """Two models in turns, batches from processes of their own; a second optimizer for the same models; then another
    model, and a parameter that is in none."""
    first, second = small(), nn.Linear(1, 1)
    data = DataLoader(TensorDataset(torch.randn(8, 5)), 4, num_workers=1, multiprocessing_context="spawn")
    one, two = torch.optim.SGD(first.parameters(), 0.1), torch.optim.SGD(second.parameters(), 0.1)
    for (batch,) in data:
        second(first(batch)).square().mean().backward()
        one.step()
        two.step()
    steps(first, torch.optim.Adam(first.parameters()), 4)
    third, free = nn.Linear(5, 1), torch.zeros(1, requires_grad=True)
    steps(nn.Sequential(third), torch.optim.SGD([*third.parameters(), free], 0.1), 6)


def ranks() -> None:
    """One of several processes, as torchrun starts them."""
    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(small())
    steps(model, torch.optim.SGD(model.parameters(), 0.1), 12)
    dist.destroy_process_group()


def no_optimizer() -> None:
    """By hand."""
    weight: Tensor = torch.ones(1, requires_grad=True)
    weight.square().backward()


def own_inspector() -> None:
    """Another package of this name is the script's own."""
    model = small()
    steps(model, torch.optim.SGD(model.parameters(), 0.1), 2)
    import inspector

    sys.stdout.write(f"{inspector.OWN}\n")  # type: ignore[attr-defined]


if __name__ == "__main__":
    torch.set_num_threads(1)
    case: Callable[[], None] = globals()[sys.argv[1]]
    case()
