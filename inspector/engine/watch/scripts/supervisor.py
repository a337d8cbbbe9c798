"""Attaches watchers in a script that has no line for it: where its first backward pass begins, or a step does.

By then models are on their device, compiled, sharded and wrapped, and optimizers have their parameters. What happens
in the first forward pass of a model is therefore not recorded; its loss and its gradients are.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from inspector.engine.watch.backward_calls import Scaled, leave, listen
from inspector.engine.watch.hooks import Passing
from inspector.engine.watch.processes.ranks import several, spread
from inspector.engine.watch.scripts.claims import Asked
from inspector.engine.watch.scripts.roots import model_of
from inspector.engine.watch.watcher import Watcher, watch
from inspector.engine.wording import error_text

PATIENCE = 3
"""Iterations of a new model after which the one before, if it made none meanwhile, is trained no more."""


class Supervisor:
    """One in each process; nothing that goes wrong in it gets out."""

    def __init__(self) -> None:
        self._asked = Asked.of_environment()
        self._known: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._new: list[weakref.ref[Optimizer]] = []
        self._watchers: list[Watcher] = []
        self._listening = self._over = False
        register_optimizer_step_pre_hook(Passing(lambda optimizer, *_: self._guarded(self._steps, optimizer)))

    def made(self, optimizer: Optimizer) -> None:
        """An optimizer was made."""
        self._known.add(optimizer)
        self._new.append(weakref.ref(optimizer))
        self._listen()

    def backward_begins(self, roots: tuple[Tensor, ...]) -> None:
        """See backward_calls.Listener: those that were made are attached, and there is nothing to listen for."""
        self._guarded(self._attach)
        leave(self)
        self._listening = False

    def backward_ended(self, roots: tuple[Tensor, ...], scaled: Scaled | None) -> None:
        """See backward_calls.Listener."""

    def backward_failed(self, roots: tuple[Tensor, ...], fault: Exception) -> None:
        """See backward_calls.Listener."""

    def _listen(self) -> None:
        if not self._listening and not self._over:
            self._listening = True
            listen(self)

    def _steps(self, optimizer: Optimizer) -> None:
        """A step begins: of an optimizer whose gradients came from elsewhere, or of a copy of one."""
        if optimizer not in self._known:
            self.made(optimizer)
        if any(one() is optimizer for one in self._new):
            self._attach()

    def _guarded(self, action: Callable[..., None], *arguments: Any) -> None:
        if self._over:
            return
        try:
            action(*arguments)
        except Exception as fault:  # noqa: BLE001 - whatever happens here must not end the user's training
            self._over = True
            self._new.clear()
            told = f"inspector: this script is not watched ({error_text(fault)}); it runs on."
            with suppress(Exception):
                sys.stderr.write(f"{told}\n")
            with suppress(OSError):
                (self._asked.folder / f"fault-{os.getpid()}").write_text(told, "utf-8")

    def _attach(self) -> None:
        """Watch the models of the new optimizers, or add these to the watcher of a model that is watched already."""
        optimizers = [one for ref in self._new if (one := ref()) is not None]
        self._new.clear()
        left = [one for one in optimizers if not any(watcher.also(one) for watcher in self._watchers)]
        tensors = [one for optimizer in left for group in optimizer.param_groups for one in group["params"]]
        if not tensors:
            return
        model = model_of(tensors)
        if not (path := self._path(model)):
            return
        watcher = watch(model, left, path, **self._asked.options)
        self._close_idle(watcher)
        self._watchers.append(watcher)

    def _path(self, model: Any) -> Path | None:
        """Where this process writes; None where it does not watch. One that only helps another to write gets a path
        that is not used."""
        if several() and dist.get_rank():
            return self._asked.folder / "unused" if spread(model) else None
        return self._asked.claim() if several() or self._asked.may_write() else None

    def _close_idle(self, new: Watcher) -> None:
        """Finish captures of models that are trained no more: they would be kept in memory until the end."""
        before = [(one, one.iteration) for one in self._watchers]

        def look(iteration: int) -> None:
            if iteration == PATIENCE:
                idle = [one for one, then in before if one.iteration == then]
                self._watchers = [one for one in self._watchers if one not in idle]
                for one in idle:
                    one.close()
                before.clear()

        if before:
            new.after_each(look)
