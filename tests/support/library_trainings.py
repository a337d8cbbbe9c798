"""Small trainings by other people's training libraries, with a callback of ours and without: `CASE FOLDER [plain]`.

Prints the bits of the trained parameters.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

ROWS = [(torch.tensor([1.0, float(n)]), torch.tensor([2.0 * n])) for n in range(16)]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.act, self.drop, self.out = nn.Linear(2, 4), nn.Tanh(), nn.Dropout(0.1), nn.Linear(4, 1)

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Any:
        out = self.out(self.drop(self.act(self.hidden(x))))
        return out if labels is None else {"loss": (out - labels).square().mean(), "out": out}


def tell(model: nn.Module) -> None:
    found = hashlib.sha256()
    for one in model.parameters():
        found.update(one.detach().numpy().tobytes())
    sys.stdout.write(f"bits {found.hexdigest()} {torch.rand(1).item()}\n")


def lightning(folder: Path, plain: bool, fails: bool = False) -> None:
    import lightning.pytorch as pl

    from inspector.integrations.lightning import InspectorCallback

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch: Any, number: int) -> Tensor:
            if fails and self.global_step == 3:
                raise ArithmeticError("it fails")
            loss: Tensor = self.net(*batch)["loss"]
            self.log("half", loss / 2)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), 0.01)

    callback = InspectorCallback(folder / "run.inspect", every=1)
    module = Module()
    trainer = pl.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[] if plain else [callback], log_every_n_steps=1,
    )  # fmt: skip
    try:
        trainer.fit(module, DataLoader(ROWS, 4))
    except ArithmeticError:
        assert callback.watcher is None
    tell(module)


def lightning_fails(folder: Path, plain: bool) -> None:
    lightning(folder, plain, fails=True)


def huggingface(folder: Path, plain: bool) -> None:
    from transformers import Trainer, TrainingArguments

    from inspector.integrations.huggingface import InspectorCallback

    callback = InspectorCallback(folder / "run.inspect", every=1)
    model = Net()
    arguments = TrainingArguments(
        str(folder / "out"), max_steps=6, logging_steps=2, per_device_train_batch_size=4, report_to=[], use_cpu=True,
        disable_tqdm=True, gradient_accumulation_steps=2, save_strategy="no", learning_rate=0.01,
    )  # fmt: skip
    data = [{"x": x, "labels": y} for x, y in ROWS]
    trainer = Trainer(model, arguments, train_dataset=data, callbacks=[] if plain else [callback])
    trainer.train()
    assert callback.watcher is None
    tell(model)


def huggingface_fails(folder: Path, plain: bool) -> None:
    from transformers import TrainerControl, TrainerState

    from inspector.integrations.huggingface import InspectorCallback

    callback = InspectorCallback(folder / "run.inspect", every=1)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    told: tuple[Any, ...] = (None, TrainerState(), TrainerControl())
    callback.on_train_begin(*told, model=model, optimizer=optimizer)
    model(*ROWS[0])["loss"].backward()
    optimizer.step()
    raise ArithmeticError("it fails")


def accelerate(folder: Path, plain: bool, fails: bool = False) -> None:
    from accelerate import Accelerator

    from inspector.integrations.accelerate import InspectorTracker

    tracker = InspectorTracker(folder / "run.inspect", every=1)
    accelerator = Accelerator(cpu=True, log_with=None if plain else tracker, gradient_accumulation_steps=2)
    model = Net()
    model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.01), DataLoader(ROWS, 2))
    accelerator.init_trackers("project", {"lr": 0.01})
    for n, batch in enumerate(data):
        with accelerator.accumulate(model):
            loss = model(*batch)["loss"]
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.log({"loss": loss.item(), "batch": n, "text": "left out"}, step=n)
        if fails and n == 5:
            raise ArithmeticError("it fails")
    accelerator.end_training()
    assert tracker.tracker is None
    tell(model)


def accelerate_fails(folder: Path, plain: bool) -> None:
    accelerate(folder, plain, fails=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    globals()[sys.argv[1]](Path(sys.argv[2]), "plain" in sys.argv)
