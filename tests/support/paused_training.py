"""A training that is watched until a file is there, then once more without: `python paused_training.py CAPTURE OVER`.

The last line of stdout is JSON: the bits of both, and what the watcher said went wrong.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from with_parent import ends_with_parent

import inspector


def train(path: Path | None, more: Callable[[int], bool]) -> tuple[str, int, str]:
    """(bits of the parameters, iterations, what the watcher said) of a training that goes on while it may."""
    torch.manual_seed(0)
    model, made = nn.GRU(3, 4, batch_first=True), torch.Generator().manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    watcher = None if path is None else inspector.watch(model, optimizer, path, every=1, share=1.0)
    done = 0
    while more(done):
        model(torch.randn(2, 5, 3, generator=made))[0].square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        done += 1
        if path is not None:
            time.sleep(0.01)
    if watcher is not None:
        watcher.close()
    found = hashlib.sha256()
    for one in model.parameters():
        found.update(one.detach().numpy().tobytes())
    return found.hexdigest(), done, str((watcher.error if watcher is not None else "") or "")


def main() -> None:
    """Until it may end."""
    ends_with_parent()
    torch.set_num_threads(1)
    over = Path(sys.argv[2])
    bits, count, said = train(Path(sys.argv[1]), lambda _done: not over.exists())
    plain, _, _ = train(None, lambda done: done < count)
    sys.stdout.write(json.dumps({"bits": bits, "plain": plain, "said": said}) + "\n")


if __name__ == "__main__":
    main()
