"""A callback for Lightning: `Trainer(callbacks=[InspectorCallback("run.inspect")])`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:  # the older name of the same library
    from pytorch_lightning.callbacks import Callback

from inspector.integrations.attached import Attached


class InspectorCallback(Callback):
    """Watches the training of a LightningModule, and records what it logs by `self.log`.

    Args:
        path: folder of the capture; a number is added where it exists.
        options: those of `inspector.watch`: every, share, cost, modules, probe, …

    Calls of the module's direct parts are calls of the model: Lightning calls `training_step`, not the module.
    """

    def __init__(self, path: Path | str = "run.inspect", **options: Any) -> None:
        super().__init__()
        self._attached = Attached(path, options)

    @property
    def watcher(self) -> Any:
        """The inspector.Watcher of the training that is under way, for notes; None before and after."""
        return self._attached.watcher

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Optimizers exist and the model is where it is trained."""
        whole = trainer.strategy.model
        self._attached.begin(pl_module if whole is None else whole, list(trainer.optimizers) or None)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """What the module logged at this step."""
        self._attached.log(trainer.progress_bar_metrics | trainer.logged_metrics, self._epoch(trainer, batch_idx + 1))

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """What it logged in validation."""
        done = trainer.fit_loop.epoch_loop.batch_progress.current.completed
        self._attached.log(trainer.callback_metrics, self._epoch(trainer, done))

    @staticmethod
    def _epoch(trainer: Any, done: int) -> float:
        """With the share of the epoch that is under way, where its length is known."""
        batches = trainer.num_training_batches
        known = isinstance(batches, int) and batches > 0
        return float(trainer.current_epoch) + (min(1.0, done / batches) if known else 0.0)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Finish the capture."""
        self._attached.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Finish it with the error."""
        self._attached.end(exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """In any case."""
        self._attached.end()
