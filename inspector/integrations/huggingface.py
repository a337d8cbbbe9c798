"""A callback for the Trainer of transformers: `Trainer(…, callbacks=[InspectorCallback("run.inspect")])`."""

from __future__ import annotations

import sys
import weakref
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from inspector.integrations.attached import Attached


class InspectorCallback(TrainerCallback):
    """Watches a training, and records what the Trainer logs: learning rate, epoch, tokens, evaluation.

    Args:
        path: folder of the capture; a number is added where it exists.
        options: those of `inspector.watch`: every, share, cost, modules, probe, …

    The Trainer tells its callbacks of no exception: a capture that one leaves open is finished when the callback goes,
    when it begins another training, or when the program ends.
    """

    def __init__(self, path: Path | str = "run.inspect", **options: Any) -> None:
        self._attached = Attached(path, options)
        weakref.finalize(self, _end, self._attached)

    @property
    def watcher(self) -> Any:
        """The inspector.Watcher of the training that is under way, for notes; None before and after."""
        return self._attached.watcher

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Optimizers exist and the model is where it is trained."""
        self._attached.begin(model, kwargs.get("optimizer"))

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """The numbers of a line of the Trainer's log."""
        numbers = {name: value for name, value in (logs or {}).items() if name != "epoch"}
        self._attached.log(numbers, state.epoch, getattr(state, "num_input_tokens_seen", 0) or None)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Finish the capture."""
        self._attached.end()


def _end(attached: Attached) -> None:
    fault = sys.exc_info()[1]
    attached.end(fault if isinstance(fault, BaseException) else None)
