"""Two processes that train together, as tests start them: each case they are asked for begins and ends a group.

A process of torch begins with seconds of imports, so the same two take one case after the other. That they meet is up
to torch and to the machine, and is tried again; what comes after it is what the tests are about, and is not: where it
takes too long, the test fails with the stacks of both.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WORLD = 2
MEETING_SECONDS = 90.0
MEETINGS = 3
CASE_SECONDS = 180.0
KEPT: list[Any] = []
"""What must not be destroyed before the process ends: with the last wrapper of a model, which holds the group, torch 2.13
joins the group's threads while it holds the interpreter, and one of them may wait for that: watched or not, a process in
a few hundred hung there."""


class Together:
    """Two processes of this file; those that fail or wait for ever are ended, and the next case has new ones."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[str]] = []
        self._said: list[queue.SimpleQueue[str]] = []
        self._plain: dict[str, list[str]] = {}
        self._meetings = 0

    def run(self, case: str, folder: Path) -> list[dict[str, Any]]:
        """Run a case in both processes; what each reported. Fails where one fails, or waits for ever."""
        with self._ended_by_faults():
            self._meet(case, folder)
            reports = [json.loads(said.get(timeout=CASE_SECONDS + 10.0)) for said in self._said]
            faults = [report["fault"] for report in reports if "fault" in report]
            assert not faults, faults
        return reports

    def _meet(self, case: str, folder: Path) -> None:
        for tries in range(MEETINGS):
            if not self._running:
                self._start()
            self._meetings += 1
            meeting = str(folder / f"meet-{self._meetings}")
            for one in self._running:
                assert one.stdin is not None
                one.stdin.write(json.dumps({"case": case, "folder": str(folder), "port_file": meeting}) + "\n")
                one.stdin.flush()
            try:
                met = [json.loads(said.get(timeout=MEETING_SECONDS)) for said in self._said]
            except queue.Empty:
                if tries == MEETINGS - 1:
                    raise
                self.close()
            else:
                assert all("met" in one for one in met), met
                return

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

    def say(**what: Any) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    for line in sys.stdin:
        asked = json.loads(line)
        errors = Path(asked["folder"]) / f"stderr-{asked['case']}-{rank}"
        with errors.open("w") as file:
            os.dup2(file.fileno(), 2)
        report = _report(asked, rank, errors, say)
        sys.stderr.flush()
        say(**report, stderr=errors.read_text())


def _report(asked: dict[str, str], rank: int, errors: Path, say: Callable[..., None]) -> dict[str, Any]:
    """Say when the processes have met, and where they are when a case does not end; what it found, or its fault."""
    late = threading.Timer(CASE_SECONDS, lambda: say(fault=f"it did not end:\n{_stacks(errors)}"))
    late.daemon = True

    def met() -> None:
        say(met=rank)
        late.start()

    try:
        return _train(asked["case"], rank, asked["port_file"], asked["folder"], met)
    except Exception as fault:  # noqa: BLE001 - told to the test, which fails
        return {"fault": f"{type(fault).__name__}: {fault}\n{errors.read_text()[-3000:]}"}
    finally:
        late.cancel()


def _stacks(errors: Path) -> str:
    faulthandler.dump_traceback(file=2)
    return errors.read_text()[-6000:]


def _train(case: str, rank: int, port_file: str, folder: str, met: Callable[[], object]) -> dict[str, Any]:
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
    met()
    if "group" in case:
        dist.new_group(timeout=timedelta(seconds=4))
    torch.manual_seed(0)
    width = 8 if "columns" in case else 7  # FSDP cuts rows unevenly, and not columns
    model: Any = nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, 3), nn.Linear(3, 1))
    if "fsdp" in case:
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor import Shard

        along = (lambda one: Shard(1 if one.dim() > 1 and one.shape[1] % 2 == 0 else 0)) if "columns" in case else None
        fully_shard(model, shard_placement_fn=along)
    else:
        model = nn.parallel.DistributedDataParallel(model)
    KEPT.append((store, model))
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    watcher = None
    if "plain" not in case and ("one" not in case or not rank):
        every = None if "time" in case else 2
        waits: dict[str, Any] = (
            {"break_on": "iteration 7", "pause_timeout": 100 if "short" in case or "group" in case else 0.3}
            if "waits" in case
            else {}
        )
        waits["fingerprints"] = "prints" in case
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
