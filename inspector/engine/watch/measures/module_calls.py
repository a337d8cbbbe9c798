"""Calls of single modules inside a recorded call of the model, in training mode.

Hooks are on the modules only while such a call lasts: iterations that are not recorded cost nothing, copies of the
model made between calls have none, and in evaluation the fused paths of torch's transformer layers, which hooks turn
off, are taken as without a watcher. Parts that torch.compile compiled call no hooks, and those that torch.jit.script
made take none: that is said once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from inspector.engine.cells.family import sequence_family
from inspector.engine.hooks.function_mode import FUSED, runs_fused
from inspector.engine.hooks.module_stack import in_backward
from inspector.engine.watch.hooks import Passing
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters, plain_name
from inspector.engine.watch.turns import Turns
from inspector.engine.wording import error_text

MOST = 500
"""Modules that are watched."""
UNHEARD = 2
"""Recorded iterations without a call of any of them after which that is said, where something was compiled."""
NO_CALLS = (
    "No call of a module was seen: code that torch.compile compiled calls no hooks. Of activations and states nothing "
    "is recorded; parameters, gradients and the loss are."
)
NO_HOOKS = "Of activations and states in {} nothing is recorded: what torch.jit.script makes takes no hooks."
NOT_ITS_TURN = "module calls"
"""In `Moment.extra`: they are not looked at in this iteration."""


class ModuleCalls(Measure):
    """Passes calls of the modules that match `patterns` (all that have no parts, without any) to the readers.

    A reader is a measure with `reads(module)`, asked once, and `called(moment, place, module, args, kwargs, output)`.
    """

    def __init__(
        self, parameters: Parameters, model: nn.Module, patterns: Sequence[str], readers: Sequence[Measure],
        turns: Turns,
    ) -> None:  # fmt: skip
        super().__init__(parameters)
        self._turns = turns
        self._ended: set[int] = set()
        every = [(plain_name(name) or "model", part) for name, part in model.named_modules()]
        named = [(place, part) for place, part in every if not isinstance(part, torch.jit.ScriptModule)]
        self._scripted = _outermost([place for place, part in every if isinstance(part, torch.jit.ScriptModule)])
        self._model, self._heard, self._unheard = model, False, 0
        watched = [(place, part) for place, part in named if _wanted(place, part, patterns)][:MOST]
        of: list[Any] = list(readers)
        self._watched = [(place, part, [one for one in of if one.reads(part)]) for place, part in watched]
        self._handles: list[RemovableHandle] = []
        self._root: tuple[str, list[Any], Any, Any] | None = None

    def forward_begins(self, moment: Moment, model: nn.Module, args: Any, kwargs: Any) -> None:
        """Put the hooks on."""
        self._remove()
        if not self._turns.has(moment, self.deciding()):
            moment.extra[NOT_ITS_TURN] = True
            return
        fused = {id(part) for one in model.modules() if runs_fused(one) for part in one.modules()}
        for place, part, readers in self._watched:
            if part is model:  # a hook put on during a call is not reliably called for it
                self._root = place, readers, args, kwargs
            elif id(part) not in fused:
                hook = Passing(partial(self.guard, self._called, moment, place, readers))
                self._handles.append(part.register_forward_hook(hook, with_kwargs=True))

    def forward_ended(self, moment: Moment, model: nn.Module, output: Any) -> None:
        """Take them off; the model may itself be one of the modules."""
        root, self._root = self._root, None
        self._remove()
        if root is not None and output is not None:
            self._called(moment, *root[:2], model, *root[2:], output)

    def _remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def ends(self, moment: Moment) -> None:
        """Say once what has no numbers, and why."""
        if self._scripted:
            self.say(NO_HOOKS.format(", ".join(self._scripted[:5])))
            self._scripted = []
        waits = self._watched and self._model.training and NOT_ITS_TURN not in moment.extra
        if self._heard or not waits or not moment.passes:
            return
        self._unheard += 1
        if self._unheard == UNHEARD and _was_compiled():
            self.say(NO_CALLS)

    def over(self) -> None:
        """Take them off."""
        self._remove()

    def _called(
        self, moment: Moment, place: str, readers: Sequence[Any], module: nn.Module, args: Any, kwargs: Any, output: Any
    ) -> None:
        if in_backward():
            return
        self._heard = True
        for reader in readers:
            if id(reader) in self._ended:
                continue
            try:
                reader.called(moment, place, module, args, kwargs, output)
            except Exception as fault:  # noqa: BLE001 - modules of all sorts: one that cannot be read ends one series
                self._ended.add(id(reader))
                titles = ", ".join(about.title for about in reader.tables)
                self.say(f"At {place} this ended: {titles} ({error_text(fault)}).")


def _wanted(place: str, part: nn.Module, patterns: Sequence[str]) -> bool:
    if patterns:
        return any(fnmatchcase(place, one) for one in patterns)
    leaf = not any(True for _ in part.children()) and not isinstance(part, (nn.Dropout, nn.Identity))
    return leaf or isinstance(part, (*FUSED[:1], nn.RNNBase)) or sequence_family(part) is not None


def _outermost(places: list[str]) -> list[str]:
    """Without what lies inside another one of them; the model itself comes first."""
    if places[:1] == ["model"]:
        return ["the model"]
    return [one for one in places if not any(one.startswith(f"{other}.") for other in places)]


def _was_compiled() -> bool:
    """Whether torch.compile has compiled anything in this process."""
    frames = sys.modules.get("torch._dynamo.convert_frame")
    codes = getattr(frames, "input_codes", None)
    return bool(getattr(codes, "seen", None))
