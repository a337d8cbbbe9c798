"""Two processes that train together, as tests start them: each case they are asked for begins and ends a group.

A process of torch begins with seconds of imports, so the same two take one case after the other.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORLD = 2
SECONDS = 120.0


class Together:
    """Two processes of this file; those that fail or wait for ever are ended, and the next case has new ones."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[str]] = []
        self._said: list[queue.SimpleQueue[str]] = []
        self._plain: dict[str, list[str]] = {}
        self._meetings = 0

    def run(self, case: str, folder: Path) -> list[dict[str, Any]]:
        """Run a case in both processes; what each reported. Fails where one fails, or waits for ever."""
        if not self._running:
            self._start()
        self._meetings += 1
        asked = json.dumps({"case": case, "folder": str(folder), "port_file": str(folder / f"meet-{self._meetings}")})
        with self._ended_by_faults():
            for one in self._running:
                assert one.stdin is not None
                one.stdin.write(asked + "\n")
                one.stdin.flush()
            reports = [json.loads(said.get(timeout=SECONDS)) for said in self._said]
            faults = [report["fault"] for report in reports if "fault" in report]
            assert not faults, faults
        return reports

    def plain(self, kind: str, folder: Path) -> list[str]:
        """What the parameters of a kind are after the same training that nobody watches, of each process."""
        if kind not in self._plain:
            self._plain[kind] = [one["bits"] for one in self.run(f"{kind} plain", folder)]
        return self._plain[kind]

    def close(self) -> None:
        """End both."""
        for one in self._running:
            one.kill()
            one.communicate()
        self._running, self._said = [], []

    def _start(self) -> None:
        for rank in range(WORLD):
            command = [sys.executable, __file__, str(rank)]
            one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            said: queue.SimpleQueue[str] = queue.SimpleQueue()
            threading.Thread(target=_listen, args=(one, said), daemon=True).start()
            self._running.append(one)
            self._said.append(said)

    @contextlib.contextmanager
    def _ended_by_faults(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise


def _listen(one: subprocess.Popen[str], said: queue.SimpleQueue[str]) -> None:
    assert one.stdout is not None
    with contextlib.suppress(ValueError):  # closed meanwhile
        for line in one.stdout:
            said.put(line)
    said.put(json.dumps({"fault": "the process ended"}))


def _main(rank: int) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print is no answer
    for line in sys.stdin:
        asked = json.loads(line)
        errors = Path(asked["folder"]) / f"stderr-{asked['case']}-{rank}"
        with errors.open("w") as file:
            os.dup2(file.fileno(), 2)
        try:
            report = _train(asked["case"], rank, asked["port_file"], asked["folder"])
        except Exception as fault:  # noqa: BLE001 - told to the test, which fails
            report = {"fault": f"{type(fault).__name__}: {fault}\n{errors.read_text()[-3000:]}"}
        sys.stderr.flush()
        answers.write(json.dumps({**report, "stderr": errors.read_text()}) + "\n")
        answers.flush()


def _train(case: str, rank: int, port_file: str, folder: str) -> dict[str, Any]:
    import hashlib
    from datetime import timedelta

    import torch
    import torch.distributed as dist
    from torch import nn

    import inspector

    torch.set_num_threads(1)
    patience = timedelta(seconds=4 if "short" in case else 100)
    store = dist.FileStore(port_file, WORLD)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD, timeout=patience)
    torch.manual_seed(0)
    model: Any = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3), nn.Linear(3, 1))
    if "fsdp" in case:
        from torch.distributed.fsdp import fully_shard

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
    return report


if __name__ == "__main__":
    _main(int(sys.argv[1]))
