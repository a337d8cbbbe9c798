"""A service with a small model open, asked for runs and for more of their quantities afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from inspector.capture import Capture
from inspector.engine.session.service import Service
from inspector.records import Analyse, Edit, Finished, InputSpec, Load, Loaded, Run

SUBJECTS = """
import torch
from types import SimpleNamespace
from torch import nn

class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 5, 2, batch_first=True, bidirectional=True), nn.Linear(10, 4)
    def forward(self, x):
        calls.append(1)
        return self.head(self.rnn(x)[0])

class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), nn.Linear(4, 4)
    def forward(self, x):
        calls.append(1)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.layer(x, src_mask=mask, is_causal=True))

class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer, self.head = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        calls.append(1)
        h, out = x.new_zeros(len(x), 4), []
        for t in range(x.shape[1]):
            z = torch.sigmoid(self.inner(x[:, t]) - h)
            h = z * h + (1 - z) * torch.tanh(self.outer(h) + self.inner(x[:, t]))
            out.append(h)
        return self.head(torch.stack(out, 1))

calls = []

def make(kind):
    torch.manual_seed(2)
    model = {"fused": Fused, "attention": Attending, "loop": Loop}[kind]()
    width = 4 if kind == "attention" else 3
    def loss(output, batch):
        return output.square().sum(-1)
    return SimpleNamespace(model=model, width=width, kind="vectors", loss=loss, calls=calls)
"""
KINDS = ("fused", "attention", "loop")
SPEC = InputSpec(kind="generated", value="noise", options={"steps": 9})


class Asked:
    """A service with a model open, and what it said."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.said: list[Any] = []
        self.folder = folder
        (folder / "m.py").write_text(SUBJECTS)
        self.service = Service(self.said.append)
        self.open(kind)

    def open(self, kind: str) -> None:
        load = Load(subject=f"{self.folder / 'm.py'}:make", arguments={"kind": kind}, trusted=True)
        self.service.serve(load)
        assert isinstance(self.said[-1], Loaded), self.said[-1]

    def run(self, name: str, *quantities: str, edits: tuple[Edit, ...] = ()) -> Path:
        path = self.folder / f"{name}.inspect"
        self.service.serve(Run(path=str(path), input=SPEC, only=quantities, edits=edits, seed=4))
        assert isinstance(self.said[-1], Finished) and self.said[-1].stop.status == "done", self.said[-1]
        return path

    def ask(self, path: Path, *quantities: str) -> Any:
        self.service.serve(Analyse(path=str(path), quantities=quantities, generation=5))
        assert self.said[-1].generation == 5
        return self.said[-1]

    @property
    def calls(self) -> int:
        """How often the model was called."""
        assert self.service.opened is not None
        return len(self.service.opened.subject.model.forward.__globals__["calls"])


def held(capture: Capture) -> dict[tuple[str, int], tuple[tuple[int, ...], bytes]]:
    """The bytes of every channel in every frame."""
    found = {}
    for name in capture.channels:
        for frame in capture.frames:
            if capture.revision(name, frame.index):
                array = np.ma.getdata(capture.array(name, frame.index))
                found[name, frame.index] = (array.shape, array.tobytes())
    return found
