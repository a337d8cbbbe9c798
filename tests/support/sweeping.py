"""Checkpoints of a small model that is written by hand, and what a capture holds, to be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from inspector.capture import Capture
from inspector.records import SECONDS

CODE = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
import torch
from torch import nn

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(4, 3)
        self.rnn = nn.GRU(3, 5, batch_first=True)
        self.head = nn.Linear(5, 4)

    def forward(self, ids):
        if float(self.head.bias[0].detach()) == 99.0:
            os._exit(7)
        if float(self.head.bias[0].detach()) == 98.0:
            raise RuntimeError("this model does not like its bias")
        return self.head(self.rnn(self.embed(ids))[0])

def make():
    with open(Path(__file__).with_name("made.txt"), "a") as file:
        file.write("made\\n")
    def loss(logits, batch):
        each = torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
        return torch.nn.functional.pad(each, (0, 1), value=torch.nan)
    return SimpleNamespace(model=Tagger(), vocabulary="abcd", loss=loss, next_token=True, examples={"e": "abcdabca"})
"""
ONLY = ("states", "output/loss", "jacobian/lag", "gates")


def subject(folder: Path) -> str:
    """A file of a model, as the subject of a run."""
    file = folder / "tagger.py"
    file.write_text(CODE)
    return f"{file}:make"


def times_made(folder: Path) -> int:
    """How often the model was made since the last question."""
    file = folder / "made.txt"
    count = len(file.read_text().split()) if file.exists() else 0
    file.unlink(missing_ok=True)
    return count


def weights(seed: int, first_bias: float | None = None) -> dict[str, torch.Tensor]:
    """A state dict of the model."""
    torch.manual_seed(seed)
    parts = {"embed": nn.Embedding(4, 3), "rnn": nn.GRU(3, 5, batch_first=True), "head": nn.Linear(5, 4)}
    state = {f"{name}.{key}": value for name, part in parts.items() for key, value in part.state_dict().items()}
    if first_bias is not None:
        state["head.bias"][0] = first_bias
    return state


def checkpoints(folder: Path, steps: tuple[int, ...] = (0, 10, 200)) -> Path:
    """Files of torch.save that tell their steps."""
    folder.mkdir(exist_ok=True)
    for step in steps:
        torch.save({"model": weights(step), "step": step}, folder / f"model-{step}.pt")
    return folder


def sharded(folder: Path, state: dict[str, torch.Tensor], kind: str = "safetensors") -> Path:
    """Weights in two files, those whose names begin with 1 in the second, and their index."""
    folder.mkdir(exist_ok=True)
    stem = "model" if kind == "safetensors" else "pytorch_model"
    places = {name: f"{stem}-0000{1 + name.startswith('1')}-of-00002.{kind}" for name in state}
    for file in set(places.values()):
        part = {name: value for name, value in state.items() if places[name] == file}
        if kind == "safetensors":
            save_file(part, folder / file)
        else:
            torch.save(part, folder / file)
    index = folder / f"{stem}.{kind}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    return index


def content(capture: Capture) -> dict[str, Any]:
    """All that a capture says, but for times: frames, numbers of every channel, scalars, labels, refusals, logs."""
    arrays = {
        (name, frame.index): np.ma.asarray(capture.array(name, frame.index)).filled(-1).tobytes()
        for frame in capture.frames for name in capture.channels if capture.frame_of(name, frame.index) == frame.index
        and (name, frame.index) in capture._arrays
    }  # fmt: skip
    timed = (SECONDS, "run:forward_seconds")
    return {
        "frames": capture.frames, "arrays": arrays, "channels": dict(capture.channels),
        "scalars": [repr(one) for one in capture.scalars if not one.name.startswith(timed)],
        "labels": {(domain, frame.index): capture.labels(domain, frame.index) for domain in capture.label_domains for frame in capture.frames},
        "refusals": capture.refusals, "logs": capture.logs, "damage": list(capture.verify()),
    }  # fmt: skip
