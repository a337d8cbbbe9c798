"""Where in the user's code an operation comes from, and in which module.

In the backward pass the code that runs is torch's. Autograd numbers the nodes of its graph; an operation of the
forward pass that makes a node has the number before the next one, which the node still has when it is run backward.
"""

from __future__ import annotations

import contextlib
import linecache
import sys
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

from inspector.engine.hooks.module_stack import CalledModules

TORCH = str(Path(torch.__file__).parent)
CONTEXTS = contextlib.__file__
OURS = str(Path(__file__).parents[3])
RECORDER = str(Path(__file__).parent)
LONGEST = 160


@dataclass(frozen=True, slots=True)
class Origin:
    """`line` is "file.py:12: its text", `module` the qualified name of the innermost module of the model."""

    line: str = ""
    module: str = ""


class Origins:
    """Finds the origin of the operation that is being made."""

    def __init__(self, model: nn.Module | None) -> None:
        self._called = None if model is None else CalledModules(model)
        self._numbers: list[int] = []
        self._origins: list[Origin] = []

    def here(self) -> tuple[Origin, str]:
        """(origin, "" in a forward pass, or the name of autograd's node in a backward pass)."""
        node: Any = torch._C._current_autograd_node()  # None outside of a backward pass, which torch's types leave out
        if node is not None:
            return self._forward(node._sequence_nr()), str(node.name())
        found = Origin(_line(), "" if self._called is None else self._called.place()[0])
        number = torch._C._autograd._get_sequence_nr() - 1
        if not self._numbers or number > self._numbers[-1]:
            self._numbers.append(number)
            self._origins.append(found)
        return found, ""

    def _forward(self, number: int) -> Origin:
        """Of the operation that made a node. Some operations make two, of which the later has no first operation of its
        own: then it is that of the node before."""
        at = bisect_right(self._numbers, number)
        return self._origins[at - 1] if at and number < 1 << 62 else Origin()


def _line() -> str:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(OURS) and not name.startswith(RECORDER):
            return ""  # the app calls torch itself
        if not name.startswith((TORCH, RECORDER, "<")) and name != CONTEXTS:
            return _text(name, frame.f_lineno)
        frame = frame.f_back
    return ""


def _text(name: str, number: int) -> str:
    text = " ".join(linecache.getline(name, number).split())
    return f"{Path(name).name}:{number}" + (f": {text[:LONGEST]}" if text else "")
