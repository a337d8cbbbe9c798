"""Whether torch.compile would compile again if another function stood in the place of torch's attention.

Compiled code is guarded: it runs where what it read of the program is as it was. Code that calls
`F.scaled_dot_product_attention` is guarded on which function that is, other code is not.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import torch

NAME = "scaled_dot_product_attention"


class CompiledAttention:
    """Asked before each recorded call of the model; looks at guards again only where more was compiled since."""

    def __init__(self) -> None:
        self._seen = 0, 0
        self._guarded = False

    def would_compile_again(self) -> bool:
        """True where compiled code is guarded on the function, and where that cannot be known."""
        frames = sys.modules.get("torch._dynamo.convert_frame")
        if frames is None:
            return False  # nothing was ever compiled
        try:
            return self._asked(frames)
        except (AttributeError, KeyError, TypeError, RuntimeError):  # another version of torch
            return True

    def _asked(self, frames: Any) -> bool:
        if torch.compiler.is_compiling() or _inside_compiled(frames.output_codes.seen_ids):
            return True
        codes = frames.input_codes.seen
        seen = len(codes), sys.modules["torch._dynamo.utils"].counters["frames"].get("total", 0)
        if seen != self._seen:
            self._seen = seen
            self._guarded = any(_guarded(one()) for one in codes)
        return self._guarded


def _inside_compiled(codes: set[int]) -> bool:
    """Whether the model is called by compiled code, of which the rest may be compiled while the call lasts."""
    frame: FrameType | None = sys._getframe(1) if codes else None
    while frame is not None:
        if id(frame.f_code) in codes:
            return True
        frame = frame.f_back
    return False


def _guarded(code: Any) -> bool:
    if code is None:
        return False
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    return any(NAME in str(entry.guard_manager) for entry in _debug_get_cache_entry_list(code))
