"""Checkpoints that Lightning and transformers write while they train are frames of a sweep: steps, order, weights."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from sweeping import ONLY, subject

import inspector

LIGHTNING = """
import sys, torch, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import lightning.pytorch as pl
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader
from tagger import Tagger

class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.model = Tagger()
    def training_step(self, batch, number):
        return torch.nn.functional.cross_entropy(self.model(batch).flatten(0, 1), batch.flatten())
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 0.05)

keep = ModelCheckpoint(sys.argv[1] + "/run", every_n_train_steps=3, save_top_k=-1, save_last="link")
trainer = pl.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False, callbacks=[keep],
                     enable_model_summary=False, default_root_dir=sys.argv[1])
trainer.fit(Module(), DataLoader([torch.tensor([n % 4, (n + 1) % 4, 2, 3]) for n in range(16)], 4))
"""
TRANSFORMERS = """
import sys, torch, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from transformers import Trainer, TrainingArguments
from tagger import Tagger

class Model(Tagger):
    def forward(self, ids, labels=None):
        out = super().forward(ids)
        return {"loss": torch.nn.functional.cross_entropy(out.flatten(0, 1), ids.flatten()), "logits": out}

torch.manual_seed(0)
arguments = TrainingArguments(sys.argv[1] + "/run", max_steps=12, save_steps=3, per_device_train_batch_size=4, report_to=[],
                              use_cpu=True, disable_tqdm=True, learning_rate=0.05, logging_steps=3)
data = [{"ids": torch.tensor([n % 4, (n + 1) % 4, 2, 3]), "labels": torch.tensor([0])} for n in range(16)]
Trainer(Model(), arguments, train_dataset=data).train()
"""
STEPS = [3, 6, 9, 12]


@pytest.mark.parametrize("library", ["lightning", "transformers"], indirect=True)
def test_what_it_saved_is_swept(library: Any, tmp_path: Path) -> None:
    named = subject(tmp_path)
    script = LIGHTNING if library.__name__ == "lightning" else TRANSFORMERS
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    with inspector.sweep(tmp_path / "run", named, "abca", only=ONLY) as capture:
        assert [frame.step for frame in capture.frames] == STEPS, [frame.label for frame in capture.frames]
        assert not capture.refusals, capture.refusals
        told = {frame.meta["sweep"]["step_from"] for frame in capture.frames}
        assert told in ({"the key 'global_step'"}, {"global_step in trainer_state.json"})
        states = [torch.from_numpy(capture.array("rnn.l0:h", frame.index).copy()) for frame in capture.frames]
        assert all(not torch.equal(a, b) for a, b in itertools.pairwise(states)), "each has weights of its own"
