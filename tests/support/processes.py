"""Two processes that train together, as tests start them: `python processes.py CASE RANK PORT FOLDER`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

WORLD = 2


def together(case: str, folder: Path, port_file: Path, seconds: float = 120.0) -> list[dict[str, Any]]:
    """Run a case in two processes; what each reported. Fails where one fails, or waits for ever."""
    command = [sys.executable, __file__, case]
    running = [
        subprocess.Popen(
            [*command, str(rank), str(port_file), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(WORLD)
    ]
    try:
        done = [one.communicate(timeout=seconds) for one in running]
    finally:
        for one in running:
            one.kill()
    for one, (_, err) in zip(running, done, strict=True):
        assert one.returncode == 0, err[-3000:]
    return [{**json.loads(out.splitlines()[-1]), "stderr": err} for out, err in done]


def _main(case: str, rank: int, port_file: str, folder: str) -> None:
    import hashlib
    from datetime import timedelta

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.fsdp import fully_shard

    import inspector

    torch.set_num_threads(1)
    patience = timedelta(seconds=4 if "short" in case else 100)
    store = dist.FileStore(port_file, WORLD)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD, timeout=patience)
    torch.manual_seed(0)
    model: Any = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3), nn.Linear(3, 1))
    if "fsdp" in case:
        fully_shard(model)
    else:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    watcher = None
    if "plain" not in case and ("one" not in case or not rank):
        every = None if "time" in case else 2
        waits: dict[str, Any] = (
            {"break_on": "iteration 7", "pause_timeout": 100 if "short" in case else 0.3} if "waits" in case else {}
        )
        watcher = inspector.watch(model, optimizer, f"{folder}/run.inspect", every=every, share=0.3, **waits)
        if "fails" in case and rank:
            watcher._core.losses.found = lambda *_: 1 / 0  # type: ignore[assignment]
    x = torch.randn(WORLD, 40, 6, 5, generator=torch.Generator().manual_seed(1))[rank]
    for n, part in enumerate(x):
        model(part).square().mean().backward()
        if "fsdp" not in case:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
        if "short" in case and watcher is not None and n == 20:
            watcher.pause("both")
        if "closes" in case and watcher is not None and n == 10 and rank == 0:
            watcher.close()
    found = hashlib.sha256()
    for one in model.parameters():
        found.update(getattr(one, "_local_tensor", one).detach().numpy().tobytes())
    report = {"bits": found.hexdigest()}
    if watcher is not None:
        watcher.close()
        ranks = watcher._core.ranks
        report |= {"error": watcher.error, "collectives": ranks.collectives, "path": str(watcher.path)}
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
