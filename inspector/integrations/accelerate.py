"""A tracker for Accelerate: `Accelerator(log_with=InspectorTracker("run.inspect"))`."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import GeneralTracker

from inspector.integrations.attached import Attached


class InspectorTracker(GeneralTracker):
    """Watches what an Accelerator has prepared, and records what `accelerator.log` is given.

    Args:
        path: folder of the capture; a number is added where it exists.
        options: those of `inspector.watch`: every, share, cost, modules, probe, …

    Watching begins with `accelerator.init_trackers(…)`; where that comes before `accelerator.prepare(…)`, with the
    first `accelerator.log(…)`, or with `tracker.watch(model, optimizer)`. It ends with `accelerator.end_training()`,
    with a `with tracker:` around the loop in any case, or when the program ends.
    """

    name = "inspector"
    requires_logging_directory = False
    main_process_only = False  # every process of a sharded model takes part in its norms; the first one writes

    def __init__(self, path: Path | str = "run.inspect", **options: Any) -> None:
        self._attached = Attached(path, options)
        self._ended = False
        super().__init__()

    @property
    def tracker(self) -> Any:
        """The inspector.Watcher, for notes; None before and after."""
        return self._attached.watcher

    def watch(self, model: Any, optimizer: Any = None) -> None:
        """Watch a model and its optimizers from here on."""
        self._attached.begin(model, optimizer)

    def start(self) -> None:
        """From `accelerator.init_trackers`."""
        self._ended = False
        self._attach()

    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        """The configuration becomes a note."""
        self._attach()
        if self._attached.watcher is not None:
            self._attached.watcher.note(", ".join(f"{name}={value}" for name, value in values.items())[:1000])

    def log(self, values: Mapping[str, Any], step: int | None = None, **kwargs: Any) -> None:
        """Numbers, at the iteration that is under way."""
        self._attach()
        self._attached.log(values)

    def finish(self) -> None:
        """From `accelerator.end_training`."""
        self._ended = True
        self._attached.end()

    def _attach(self) -> None:
        """Watch what the Accelerator that has this tracker has prepared, once there is something."""
        if self._attached.watcher is not None or self._ended:
            return
        for one in gc.get_objects():  # a tracker is not told whose it is
            if issubclass(type(one), Accelerator) and any(known is self for known in one.trackers) and one._models:
                self._attached.begin(one._models[0], list(one._optimizers) or None)
                return

    def __enter__(self) -> InspectorTracker:
        return self

    def __exit__(self, kind: Any, fault: BaseException | None, where: Any) -> None:
        self._ended = True
        self._attached.end(fault)
