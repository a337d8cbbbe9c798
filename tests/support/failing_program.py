"""Small programs that write captures while one of their writes fails, run below `failing_writes.c`.

One line of JSON a case on stdin, one line of what became of it on stdout: what was acknowledged, what was said.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from inspector.capture import CaptureError, Writer, appending
from inspector.records import Channel, Page, RunStart, RunStop

CHANNEL = Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 16))
STEPS, EACH = 40, 8


def run(path: Path, name: str, overwrite: bool = False, whole: bool = False) -> dict[str, Any]:
    """A run of five commits into three page files; `steps` counts what was acknowledged, `run` is the one that must be
    there: with `whole` it takes the place of the other once it has ended."""
    told: dict[str, Any] = {"run": "", "steps": 0, "said": [], "done": False}
    offset = 1000 if overwrite else 0
    try:
        with Writer(path, RunStart(run=name, title="t"), overwrite=overwrite, whole=whole) as writer:
            writer.write(CHANNEL)
            for step in range(0, STEPS, EACH):
                writer.write(Page("a:h", 0, (step, 0), np.full((EACH, 16), offset + step, np.float32)))
                writer.flush()
                told |= {"run": told["run"] if writer.beside else name, "steps": step + EACH}
            writer.write(RunStop("done"))
        told |= {"done": True, "run": name}
    except CaptureError as problem:
        told["said"].append(str(problem))
    return told


def train(path: Path | None) -> dict[str, Any]:
    """A small training, watched where there is a path: its bits, and what the watcher said."""
    import torch
    from torch import nn

    import inspector

    torch.manual_seed(0)
    model = nn.GRU(3, 4, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(6, 2, 5, 3, generator=torch.Generator().manual_seed(1))
    watcher, said = None, []
    if path is not None:
        try:
            watcher = inspector.watch(model, optimizer, path, every=1, share=1.0)
        except CaptureError as problem:  # before the training has begun
            said.append(str(problem))
    for part in x:
        model(part)[0].square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    if watcher is not None:
        watcher.close()
        said += [watcher.error] if watcher.error else []
    found = hashlib.sha256()
    for one in model.parameters():
        found.update(one.detach().numpy().tobytes())
    return {"bits": found.hexdigest(), "said": said, "run": "", "steps": 0, "done": not said}


def tried(case: dict[str, Any]) -> dict[str, Any]:
    """Run the program of a case; how often it wrote, and how many of those calls failed."""
    libc, path = ctypes.CDLL(None), Path(case["folder"]) / "a.inspect"
    replaces = case["kind"] in ("replace", "exchange")
    if replaces:
        run(path, "first")
    libc.fail_at(case["folder"].encode(), ctypes.c_long(case["nth"]), case["errno"], int(case["later"]))
    if case["kind"] == "training":
        told = train(path)
    else:
        told = run(path, "second" if replaces else "first", replaces, case["kind"] == "exchange")
    return told | {"calls": libc.fail_calls(), "hits": libc.fail_hits()}


def main() -> None:
    """Answer until stdin ends; each case in a process of its own, which has ended when it is answered."""
    answers = os.dup(1)
    os.dup2(2, 1)
    appending.ROLL_BYTES = 1200
    plain = train(None)["bits"]
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.write(writing, json.dumps(tried(json.loads(line)) | {"plain": plain}).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            told = file.read()
        os.waitpid(child, 0)
        os.write(answers, told + b"\n")


if __name__ == "__main__":
    main()
