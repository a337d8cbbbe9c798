"""`torch.utils.checkpoint` that keeps autograd's graph, for calls of a model whose graph is only looked at.

A checkpoint keeps no graph (reentrant), or one whose nodes have given up what they need. What it keeps instead here are
nodes without their large tensors, so that memory stays what a checkpoint is used for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch.utils.checkpoint as checkpoint
from torch.autograd.graph import saved_tensors_hooks

from inspector.engine.attention.graph_alone import WithoutValues


class _Plain:
    """In place of the function that computes again."""

    @staticmethod
    def apply(function: Callable[..., Any], _preserve: bool, *args: Any) -> Any:
        """Call the function as it is."""
        return function(*args)


@contextmanager
def without_checkpoints() -> Iterator[None]:
    """Inside, what a model checkpoints has a graph as anything else has."""
    values = WithoutValues()

    def hook(_frame: Any) -> AbstractContextManager[Any]:
        found: saved_tensors_hooks = values.hooks()
        return found

    before = checkpoint.CheckpointFunction, checkpoint._checkpoint_hook
    checkpoint.CheckpointFunction, checkpoint._checkpoint_hook = _Plain, hook  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        checkpoint.CheckpointFunction, checkpoint._checkpoint_hook = before  # type: ignore[misc]
