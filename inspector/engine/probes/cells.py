"""Cells that take one step a call, in the user's own loop: recorded step by step, written as they are computed.

nn.RNNCell, nn.GRUCell, nn.LSTMCell, and those of other families (engine/cells/).

Calls belong to one chain as long as each is given the state that the one before returned; where a user changes it for
some sequences of a batch (masks, ended sequences), the chain continues for the others. Everything is copied at once.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from inspector.engine.cells.family import CellFamily, sequence_family, step_family
from inspector.engine.cells.module_family import model_weights
from inspector.engine.errors import CancelledError
from inspector.engine.hooks.recorder import AfterHook, CallRecorder
from inspector.engine.recurrent.cell_calls import CellCallChain, recurrence_of, rows_of
from inspector.engine.recurrent.fused.calls import UNKNOWN_COLUMN, column_of
from inspector.engine.recurrent.fused.layers import CHANGED, GRADIENT, OVERWRITTEN, class_name
from inspector.engine.recurrent.verification import NO_GRADIENT
from inspector.engine.registries import PROBES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import dtype_name
from inspector.engine.trace.trace import Trace
from inspector.engine.wording import error_text
from inspector.records import Channel, Log

LIVE_STEPS, LIVE_SECONDS = 32, 0.05
LIVE_FEWEST = 8
"""Steps before which nothing is written: the calls may turn out to be part of a larger recurrence."""
MOST_CHAINS = 16
CHANGING = (
    "The state given to {} is repeatedly not the one it returned (something changes it between the calls), so "
    "only its first {} stretches are shown."
)
ANEW = (
    "{} is given a new state at every call, not the one that it returned before, so it carries no state from step to "
    "step and there is no recurrence to show. Is the state reset in the loop?"
)
ENTANGLED = (
    "The state of {} has several parts ({}) and its family does not say which of them are computed from each other, so "
    "the gradient of each with the others held fixed is not known."
)
PART = (
    "{0} is a part of the step of a larger recurrence, which is shown as a whole; of the states that {0} returned "
    "only the first {1} were written, before that was known."
)
FEWEST = 3
"""How many calls must each begin a new sequence before that is reported."""
FOREIGN = "{} takes or returns something other than the class it derives from, so it cannot be followed."


class _Recorder(CallRecorder):
    """The recorder to which the hooks of the cells write; a copy of a recorded model gets one that records nothing."""

    def __init__(self, trace: Trace | None = None, emit: Emitter | None = None) -> None:
        super().__init__(trace, emit)
        self.chains: dict[str, list[CellCallChain]] = {}
        self.cut: set[str] = set()

    def keep(self, place: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        family = step_family(module)
        assert family is not None and self.trace is not None
        x, given = family.arguments(module, args, kwargs)
        made = (family.results(module, output) or (None, ()))[1]
        tensors = all(isinstance(item, Tensor) for item in (x, *given, *made))
        if not tensors or x is None or len(made) != len(family.parts) or len(given) not in (0, len(made)):
            self.give_up(place, FOREIGN.format(place))
            return
        chain, rows = self._find(place, given)
        if chain is None:
            chain = self._begin(place, module, family, given, made)
            if chain is None:
                return
            rows = chain.alive
        else:
            chain.link(given, rows)
        step = len(chain.states)
        chain.step(x, made, rows)
        for number, part in enumerate(made):
            if part.requires_grad:
                self.trace.want_gradient(part, chain.receiver(step, number))
                chain.asked.append((part, part._version))
            else:
                chain.without.append((step, number))
        self.draw(chain)

    def _find(self, place: str, given: tuple[Tensor, ...]) -> tuple[CellCallChain | None, Tensor]:
        """The chain that continues from this state (several may be open: two sequences in turns), newest first."""
        nothing = torch.zeros(0)
        if given:
            for chain in reversed(self.chains.get(place, [])):
                rows = chain.following(given)
                if rows is not None:
                    return chain, rows
        return None, nothing

    def _begin(
        self,
        place: str,
        module: nn.Module,
        family: CellFamily,
        given: tuple[Tensor, ...],
        made: tuple[Tensor, ...],
    ) -> CellCallChain | None:
        assert self.trace is not None
        chains = self.chains.setdefault(place, [])
        if len(chains) == MOST_CHAINS:
            self.broken.add(place)
            self.cut.add(place)
            return None
        columns, samples = rows_of(made[0]).shape[0], self.trace.batch.lengths.numel()
        column = column_of(self.trace.look_at, samples, columns)
        if column is None:
            self.give_up(place, UNKNOWN_COLUMN.format(place=place, columns=columns, samples=samples))
            return None
        one = self.trace.only_looked_at or columns == 1
        cut = slice(column, column + 1) if one else slice(0, columns)
        start = given or tuple(torch.zeros_like(part) for part in made)
        weights: list[tuple[torch.Tensor, int]] = [
            (weight, weight._version) for weight in module.parameters() if not weight.is_inference()
        ]
        cell = family.from_module(module, family.weights(module))
        self.trace.parameter_gradients.ask(self.trace.want_gradient, module.parameters())
        self.trace.parameter_gradients.ask_made(self.trace.want_gradient, vars(module).values())
        chain = CellCallChain(
            f"{place}#{len(chains) + 1}" if chains else place, module, cell,
            partial(model_weights, family, module), weights,
            tuple(rows_of(item).detach()[cut].clone() for item in start), cut, 0 if one else column,
            self.trace.look_at if one else 0, torch.ones(columns, dtype=torch.bool),
            torch.zeros(columns, dtype=torch.int64), sent_at=time.monotonic(),
        )  # fmt: skip
        chain.followed = any(one.requires_grad for one in given)
        chain.upstream.add(given)
        chains.append(chain)
        return chain

    def draw(self, chain: CellCallChain, *, last: bool = False) -> None:
        """Write the states that came since the last page, every 32 steps or 50 ms."""
        assert self.emit is not None and self.trace is not None
        if self.trace.subject.answer is not None or self.trace.batch.others():
            return  # their step axis is known only when the model has returned
        count = chain.count
        waiting, now = count - chain.sent, time.monotonic()
        late = count >= LIVE_FEWEST and now - chain.sent_at > LIVE_SECONDS
        if not waiting or not (last or waiting >= LIVE_STEPS or late):
            return
        if self.emit.cancelled():
            return
        for number, part in enumerate(chain.parts):
            values = torch.stack([state[number][chain.column] for state in chain.states[chain.sent : count]])
            name = f"{chain.place}:{part}"
            self.emit.channel(state_channel(name, part, values, class_name(chain.module)))
            self.emit.page(name, (chain.sent, 0), values)
        chain.sent, chain.sent_at = count, now


def state_channel(name: str, part: str, values: Tensor, module: str) -> Channel:
    """The channel of a state that grows step by step."""
    title = {"h": "hidden state", "c": "cell state"}.get(part, part)
    return Channel(
        name=name, kind="state", dims=("step", "unit"), shape=(None, values.shape[1]), dtype=dtype_name(values),
        title=title, formula=f"{part}_t", scale="diverging", module=module,
    )  # fmt: skip


@PROBES.register("cells")
class Cells:
    """Records every cell of a model that belongs to a known family."""

    summary = "nn.RNNCell, nn.GRUCell, nn.LSTMCell in a user's own loop: every step, written as it is computed"

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []
        self._recorder = _Recorder()
        self._compiled: list[str] = []

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """One forward hook on each cell; those inside a module that runs whole sequences are shown with that one."""
        self._recorder = _Recorder(trace, emit)
        named = list(model.named_modules())
        whole = [f"{name}.".lstrip(".") for name, module in named if sequence_family(module) is not None]
        for name, module in named:
            if step_family(module) is not None and not any(name.startswith(outer) for outer in whole):
                place = name.replace("_orig_mod.", "") or class_name(module).lower()
                if "_orig_mod" in name:
                    self._compiled.append(place)
                self._handles.append(module.register_forward_hook(AfterHook(self._recorder, place), with_kwargs=True))

    def detach(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Write the last pages and put every chain into the trace."""
        recorder = self._recorder
        for place in self._compiled:
            if place not in recorder.chains and place not in recorder.broken:
                emit.refuse(f"{place}:h", COMPILED.format(place))
        for place in trace.cells_within:
            for chain in recorder.chains.pop(place, []):
                if 0 < chain.sent < chain.count:
                    emit.refuse(f"{chain.place}:h", PART.format(chain.place, chain.sent))
        for place, chains in list(recorder.chains.items()):
            if len(chains) >= FEWEST and all(len(chain.states) == 1 for chain in chains):
                del recorder.chains[place]
                emit.refuse(f"{place}:h", ANEW.format(place))
            elif place in recorder.cut:
                emit.refuse(f"{place}:h", CHANGING.format(place, MOST_CHAINS))
        for chain in [chain for chains in recorder.chains.values() for chain in chains if chain.states]:
            emit.check()
            try:
                with torch.no_grad():
                    self._open(chain, trace, emit)
            except CancelledError:
                raise
            except Exception as fault:  # noqa: BLE001 - a failure of one cell must not affect the others
                emit.refuse(f"{chain.place}:h", f"Opening {chain.place} failed ({error_text(fault)}).")
        recorder.chains.clear()

    def _open(self, chain: CellCallChain, trace: Trace, emit: Emitter) -> None:
        self._recorder.draw(chain, last=True)
        if chain.overwritten():
            emit.refuse(f"{chain.place}:gate", OVERWRITTEN.format(chain.place))
            return
        recurrence = recurrence_of(chain, trace.batch.lengths)
        if recurrence.unfollowed is not None:
            emit.sink.write(Log(NO_GRADIENT.format(chain.place), "warning", "engine"))
        if chain.sent == chain.count:
            recurrence.shown = set(chain.parts)
        if chain.gradients and chain.gradients_lost():
            emit.refuse(f"{chain.place}:{GRADIENT}", CHANGED.format(chain.place))
        elif chain.gradients and recurrence.delta is None:
            emit.refuse(f"{chain.place}:{GRADIENT}", ENTANGLED.format(chain.place, ", ".join(chain.parts)))
        trace.recurrences.append(recurrence)


COMPILED = (
    "{} runs inside torch.compile and its hooks were not called, so nothing of it is recorded; open the model without "
    "torch.compile."
)
