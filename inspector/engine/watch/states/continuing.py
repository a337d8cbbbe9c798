"""Whether a state that is handed on from one batch to the next belongs there: do the sequences of the next batch go on
where those of this one ended?

Compared are a recorded call of the model and the one after it, which need not be recorded: the first state of each
recurrent module (or among the arguments of the model, or in attributes that the call reads) with the last one of the
call before, row by row; and what the rows begin with, with what the rows ended with whose state they got.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from inspector.engine.analyses.neighbouring_steps import LAGS, Neighbours
from inspector.engine.cells.family import sequence_family, step_family
from inspector.engine.model.tensors_within import tensors_within
from inspector.engine.watch.called import called
from inspector.engine.watch.hooks import Passing
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters, plain_name
from inspector.engine.watch.states.kept_by_model import KeptByModel
from inspector.engine.watch.states.kept_states import by_rows
from inspector.engine.watch.states.state_sources import MOST_ROWS, sources
from inspector.engine.watch.tables import PLACE, About
from inspector.engine.wording import error_text

ROWS, FOLLOWS, OTHERS, WITHIN = (f"{PLACE}:carried/{word}" for word in ("rows", "follows", "others", "within"))
MOST_STEPS = 64
"""Neighbouring steps of a row that are compared."""
TIMES = 120
"""Comparisons of a training. They are made at its beginning: how batches follow each other does not change."""
LAG = "lag"
CALLER = ""
"""The place of what the loop itself hands to the model."""
_METHOD = f"of a recorded call and the one after it, {TIMES} times at most; at the next recorded iteration"
_SCORE = "mean ln p(b | a) / p(b), by pairs of steps `lag` apart in the batches before; of vectors −‖a − b‖²"


@dataclass(slots=True)
class Call:
    """A call of the model: what it read, (b, t) ids or (b, t, i), and states by place; `shapes` of what the loop itself
    handed in beside the data, and what the model keeps in attributes."""

    data: Tensor | None = None
    states: dict[str, list[Tensor]] = field(default_factory=dict)
    shapes: set[torch.Size] = field(default_factory=set)
    kept: dict[str, list[Tensor]] = field(default_factory=dict)


class Continuing(Measure):
    """Of models with recurrent modules, or whose calls return a state that the next one is given."""

    tables = (
        About(
            name=ROWS, title="rows that begin with the last state of the batch before", limits=(0, 1), method=_METHOD,
            formula="share of the rows whose first state is one that the call before ended with, or a multiple of "
            "it; or differs from row to row as a multiple of their own last ones does",
        ),
        About(
            name=FOLLOWS, title="first steps after what their state saw", unit="nat", method=_METHOD, column=(LAG, LAG),
            formula=f"{_SCORE}: what a row begins with, after what the row ended with whose state it got",
        ),
        About(
            name=OTHERS, title="first steps after what other rows saw", unit="nat", method=_METHOD, column=(LAG, LAG),
            formula=f"{_SCORE}: what a row begins with, after what the other rows ended with",
        ),
        About(
            name=WITHIN, title="steps after those before in a sequence", unit="nat", method=_METHOD, column=(LAG, LAG),
            formula=f"{_SCORE}: steps of the sequences that are so far apart",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters, model: nn.Module) -> None:
        super().__init__(parameters)
        named = [(plain_name(name) or "model", part) for name, part in model.named_modules()]
        self._recurrent = {part: place for place, part in named if _family(part) is not None}
        self._roots = called(model)
        self._handles: list[RemovableHandle] = []
        self._before: Call | None = None
        self._next: Call | None = None
        self._kept = KeptByModel(model)
        self._neighbours = [Neighbours(lag) for lag in LAGS]
        self._made = 0
        self._found: dict[str, dict[str, float]] = {}

    def forward_begins(self, moment: Moment, model: nn.Module, args: Any, kwargs: Any) -> None:
        """Put the hooks on that read the last states, and remember what is read."""
        for table, values in self._found.items():
            for name, value in values.items():
                moment.put(table, self.column(LAG, name) if table != ROWS else 0, value)
        self._found = {}
        if self._before is not None or self._made >= TIMES:  # the call after the last one is still awaited
            return
        data = data_of(args, kwargs)
        if data is None:
            return
        shapes = {one.shape for one in _states_in((args, kwargs)) if one is not data}
        if self._recurrent or shapes or not self._kept.is_over:
            self._kept.begins(data)
            self._before = Call(data.detach().clone(), shapes=shapes)
            after = self._hook(self._ended)
            for part in self._recurrent:
                self._handles.append(part.register_forward_hook(after, with_kwargs=True))

    def forward_ended(self, moment: Moment, model: nn.Module, output: Any) -> None:
        """Wait for the next call."""
        before = self._before
        if before is None or self._next is not None:
            return
        self._remove()
        if model in self._recurrent:  # its own hook was put on during the call, and torch calls that one after this one
            self._ended(model, (), output)
        returned = (one for one in _states_in(output) if one.shape in before.shapes)
        before.states[CALLER] = [_of_rows(one, before.data) for one in returned]
        before.kept = {} if before.data is None else self._kept.ended(before.data)
        if not any(before.states.values()) and not before.kept:
            self._before = None
            return
        begins, ended, first = (self._hook(one) for one in (self._next_begins, self._next_ended, self._first_state))
        for root in self._roots:
            self._handles.append(root.register_forward_pre_hook(begins, with_kwargs=True))
            self._handles.append(root.register_forward_hook(ended, always_call=True))
        for part in self._recurrent:
            self._handles.append(part.register_forward_pre_hook(first, with_kwargs=True))

    def over(self) -> None:
        """Take the hooks off."""
        self._kept.over()
        self._remove()

    def _hook(self, action: Callable[..., None]) -> Passing:
        return Passing(partial(self.guard, self._safely, action))

    def _safely(self, action: Callable[..., None], *arguments: Any) -> None:
        """Modules and data of all sorts: what cannot be read ends these series, and nothing else."""
        try:
            action(*arguments)
        except Exception as fault:  # noqa: BLE001
            self.over()
            self._before, self._next, self._made = None, None, TIMES
            self.say(f"Whether states go on with their sequences is not compared any more ({error_text(fault)}).")

    def _remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _ended(self, module: nn.Module, args: Any, *rest: Any) -> None:
        """The state after a call of a recurrent module: of several calls the last one counts. `rest` ends with what it
        returned; torch leaves out the keywords where the hook is taken off during the call."""
        output = rest[-1]
        family = _family(module)
        results = None if family is None else family.results(module, output)
        if self._before is not None and results is not None and results[1]:
            self._before.states[self._recurrent[module]] = [results[1][0].detach().clone()]

    def _next_begins(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if self._before is None or self._next is not None or not module.training:
            return
        data = data_of(args, kwargs)
        given = [one for one in _states_in((args, kwargs)) if one is not data and one.shape in self._before.shapes]
        self._next = Call(data, {CALLER: [_of_rows(one, data) for one in given]})
        self._kept.next_begins(data, self._before.kept)  # the last that is done: from now on operations are followed

    def _first_state(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """The state before the first call of a recurrent module."""
        family, place = _family(module), self._recurrent[module]
        if self._next is not None and family is not None and place not in self._next.states:
            initial = family.arguments(module, args, kwargs)[1]
            self._next.states[place] = [one.detach().clone() for one in initial[:1]]

    def _next_ended(self, module: nn.Module, args: Any, output: Any) -> None:
        before, following = self._before, self._next
        if before is None or following is None:
            return
        self._remove()
        self._before = self._next = None
        kept = self._kept.next_ended(following.data, output)
        if before.data is not None and output is not None:
            before.states.update(before.kept)
            following.states.update(kept)
            self._compare(before, before.data, following)

    def _compare(self, before: Call, data: Tensor, following: Call) -> None:
        """The numbers of two calls, for the next recorded iteration."""
        self._made += 1
        source = sources(before.states, following.states)
        if source is None or following.data is None:
            return
        self._found = {ROWS: {"": float((source >= 0).float().mean())}}
        sizes = {one.shape[-2] for states in following.states.values() for one in states}
        rows = {one for one in sizes if min(one, MOST_ROWS) == len(source)}
        here, there = self._by_rows(data, rows), self._by_rows(following.data, rows)
        if here is None or there is None or here.dtype != there.dtype or here.shape[2:] != there.shape[2:]:
            return
        at, steps, first = source.cpu().numpy(), here.cpu().numpy(), there[:, 0].cpu().numpy()
        for lag, neighbours in zip(LAGS, self._neighbours, strict=True):
            scores = neighbours.add(at, steps, first)
            for table, value in zip((FOLLOWS, OTHERS, WITHIN), scores or (), strict=False):
                self._found.setdefault(table, {})[f"lag {lag}"] = value

    def _by_rows(self, data: Tensor, rows: set[int]) -> Tensor | None:
        """(b, t, …) of the rows that are compared, the last steps of each; None where no axis has these sizes."""
        axes = [axis for axis in (0, 1) if data.shape[axis] in rows]
        if not axes:
            return None
        first = len(axes) == 1 or not self._time_first()
        turned = data if axes[0] == 0 and first else data.transpose(0, 1)
        return turned[:MOST_ROWS, -MOST_STEPS:].detach()

    def _time_first(self) -> bool:
        families = [(sequence_family(part), part) for part in self._recurrent]
        return any(one is not None and not one.stack(part).batch_first for one, part in families)


def data_of(args: Any, kwargs: Any) -> Tensor | None:
    """What a call reads: the first ids (b, t) among its arguments, else the first vectors (b, t, i)."""
    given = list(tensors_within((args, kwargs)))
    ids = (one for one in given if one.dim() == 2 and one.dtype in (torch.int64, torch.int32) and one.numel())
    vectors = (one for one in given if one.dim() == 3 and one.is_floating_point() and one.numel())
    found = next(ids, None)
    return next(vectors, None) if found is None else found


def _of_rows(state: Tensor, data: Tensor | None) -> Tensor:
    """A copy of what is handed on, all that is of one row in the last axis."""
    return by_rows(state, data).detach().clone()


def _states_in(given: Any) -> Iterator[Tensor]:
    """What may be a state: of numbers that are no ids, by rows."""
    return (one for one in tensors_within(given) if one.is_floating_point() and one.dim() in (2, 3, 4) and one.numel())


def _family(module: nn.Module) -> Any:
    return sequence_family(module) or step_family(module)
