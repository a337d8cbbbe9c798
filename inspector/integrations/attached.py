"""What the callbacks share: one watcher at a time, and numbers among what a library logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspector.engine.watch import Watcher

LOGGED = "loss (logged)"
"""The loss that a library logs is often a mean over several steps; "loss" is that of each step, which is found."""


class Attached:
    """Begins, feeds and ends the watcher of one training after the other."""

    def __init__(self, path: Path | str, options: Mapping[str, Any]) -> None:
        self.path, self.options = path, dict(options)
        self.watcher: Watcher | None = None

    def begin(self, model: Any, optimizer: Any) -> None:
        """Watch a training from here on. Raises ValueError, TypeError or CaptureError for settings of no use."""
        from inspector.engine.watch import watch

        self.end()
        self.watcher = watch(model, optimizer, self.path, **self.options)

    def log(self, numbers: Mapping[str, Any], epoch: float | None = None, tokens: float | None = None) -> None:
        """Record the numbers among what was logged; texts, tables and pictures are left out."""
        if self.watcher is None:
            return
        found = {LOGGED if name == "loss" else str(name): value for name, value in numbers.items() if is_number(value)}
        axes = {"epoch": epoch, "tokens": tokens}
        found |= {name: value for name, value in axes.items() if value is not None}
        if found:
            self.watcher.log(**found)

    def end(self, fault: BaseException | None = None) -> None:
        """Finish the capture, with the exception that ended the training, if one did."""
        if self.watcher is not None:
            self.watcher.__exit__(None if fault is None else type(fault), fault, None)
            self.watcher = None


def is_number(value: Any) -> bool:
    """Whether it is one number: of Python's, of NumPy's, or a tensor of one entry."""
    if isinstance(value, (bool, str)):
        return False
    size = getattr(value, "numel", None)
    if callable(size):
        return bool(size() == 1)
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
