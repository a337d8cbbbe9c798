"""nn.RNNCell, nn.GRUCell and nn.LSTMCell called in the user's own loop: collected step by step, drawn as they come."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from inspector.engine.emitter import Emitter
from inspector.engine.quantity import dtype_name
from inspector.engine.shelves import PROBES
from inspector.engine.steps.cell import Cell, Check
from inspector.engine.steps.gru import GruStep
from inspector.engine.steps.lstm import LstmBlock, LstmStep
from inspector.engine.steps.rnn import RnnStep
from inspector.engine.trace import Recurrence, Trace
from inspector.records import Channel

LIVE_STEPS, LIVE_SECONDS = 32, 0.05
MOST_SEQUENCES = 16
PARTS = ("h", "c")


@dataclass(slots=True)
class _Sequence:
    """One walk of a cell over a sequence: inputs, the state before the first step, the state after each."""

    place: str
    module: nn.RNNCellBase
    first: tuple[Tensor, ...]
    x: list[Tensor] = field(default_factory=list)
    states: list[tuple[Tensor, ...]] = field(default_factory=list)
    gradients: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    newest: tuple[Tensor, ...] = ()
    sent: int = 0
    sent_at: float = 0.0


class Recorder:
    """What the hooks of the cells write to; a copy of a watched model gets one that keeps nothing."""

    def __init__(self, trace: Trace | None, emit: Emitter | None) -> None:
        self.trace, self.emit = trace, emit
        self.open: dict[str, _Sequence] = {}
        self.all: list[_Sequence] = []
        self.counts: dict[str, int] = {}
        self.broken: set[str] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> Recorder:
        return Recorder(None, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return Recorder, (None, None)

    def hook(self, place: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """Keep one step. Never raises into the user's model."""
        if self.trace is None or self.emit is None or place in self.broken:
            return
        try:
            assert isinstance(module, nn.RNNCellBase)
            self._keep(place, module, args, kwargs, output)
        except Exception as fault:  # noqa: BLE001 - a probe may not end the user's run
            self.broken.add(place)
            self.emit.refuse(f"{place}:h", f"Watching {place} failed ({type(fault).__name__}: {fault}).")

    def _keep(
        self, place: str, module: nn.RNNCellBase, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> None:
        assert self.trace is not None and self.emit is not None
        x = args[0] if args else kwargs["input"]
        given = args[1] if len(args) > 1 else kwargs.get("hx")
        made: tuple[Tensor, ...] = output if isinstance(output, tuple) else (output,)
        sequence = self.open.get(place)
        if sequence is None or not _continues(given, sequence.newest):
            sequence = self._begin(place, module, given, made)
            if sequence is None:
                return
        step = len(sequence.states)
        sequence.x.append(_rows(x).detach().clone())
        sequence.states.append(tuple(_rows(part).detach().clone() for part in made))
        sequence.newest = made
        for number, part in enumerate(made):
            if part.requires_grad:
                self.trace.wants_gradient.append((part, _receiver(sequence, step, number)))
        self._draw(sequence)

    def _begin(self, place: str, module: nn.RNNCellBase, given: Any, made: tuple[Tensor, ...]) -> _Sequence | None:
        assert self.emit is not None
        number = self.counts[place] = self.counts.get(place, 0) + 1
        if number > MOST_SEQUENCES:
            self.broken.add(place)
            self.emit.refuse(
                f"{place}:h",
                f"The state given to {place} is again and again not the one it returned (something changes it between "
                f"the calls), so only its first {MOST_SEQUENCES} stretches are shown.",
            )
            return None
        items = given if isinstance(given, tuple) else (given,) * (given is not None)
        first = tuple(_rows(item).detach().clone() for item in items) or tuple(
            torch.zeros_like(_rows(part)).detach() for part in made
        )
        sequence = _Sequence(place if number == 1 else f"{place}#{number}", module, first, sent_at=time.monotonic())
        self.open[place] = sequence
        self.all.append(sequence)
        return sequence

    def _draw(self, sequence: _Sequence, *, last: bool = False) -> None:
        """Write the states that came since the last page, every 32 steps or 50 ms."""
        assert self.trace is not None and self.emit is not None
        waiting = len(sequence.states) - sequence.sent
        now = time.monotonic()
        if not waiting or not (last or waiting >= LIVE_STEPS or now - sequence.sent_at > LIVE_SECONDS):
            return
        sample = self.trace.look_at
        if sequence.first[0].shape[0] <= sample or self.emit.cancelled():
            return
        for number, part in enumerate(PARTS[: len(sequence.first)]):
            values = torch.stack([state[number][sample] for state in sequence.states[sequence.sent :]])
            name = f"{sequence.place}:{part}"
            self.emit.channel(state_channel(name, part, values, type(sequence.module).__name__))
            self.emit.page(name, (sequence.sent, 0), values)
        sequence.sent, sequence.sent_at = len(sequence.states), now


def state_channel(name: str, part: str, values: Tensor, module: str) -> Channel:
    """The channel of a state that grows step by step."""
    title = "hidden state" if part == "h" else "cell state"
    return Channel(
        name=name, kind="state", dims=("step", "unit"), shape=(None, values.shape[1]), dtype=dtype_name(values),
        title=title, formula=f"{part}_t", scale="diverging", module=module,
    )  # fmt: skip


def _receiver(sequence: _Sequence, step: int, number: int) -> Callable[[Tensor | None], None]:
    def take(gradient: Tensor | None) -> None:
        if gradient is not None:
            sequence.gradients[step, number] = _rows(gradient).detach()

    return take


def _rows(value: Tensor) -> Tensor:
    return value if value.dim() == 2 else value[None]


def _continues(given: Any, newest: tuple[Tensor, ...]) -> bool:
    """True when the state given is the one returned last: the same tensor, or one with the same numbers."""
    items = given if isinstance(given, tuple) else (given,)
    if given is None or len(items) != len(newest):
        return False
    return all(a is b or (a.shape == b.shape and torch.equal(a, b)) for a, b in zip(items, newest, strict=True))


@PROBES.register("cells")
class Cells:
    """Watches every nn.RNNCell, nn.GRUCell and nn.LSTMCell of a model."""

    summary = "nn.RNNCell, nn.GRUCell, nn.LSTMCell in a user's own loop: every step, drawn as it comes"

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []
        self._recorder = Recorder(None, None)

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """One forward hook on each cell."""
        self._recorder = Recorder(trace, emit)
        for name, module in model.named_modules():
            if isinstance(module, (nn.RNNCell, nn.GRUCell, nn.LSTMCell)):
                place = name.removeprefix("_orig_mod.") or type(module).__name__.lower()
                self._handles.append(module.register_forward_hook(_Hook(self._recorder, place), with_kwargs=True))

    def detach(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Write the last pages and put every sequence into the trace."""
        for sequence in self._recorder.all:
            try:
                with torch.no_grad():
                    self._recorder._draw(sequence, last=True)
                    trace.recurrences.append(_recurrence(sequence, trace))
            except Exception as fault:  # noqa: BLE001 - one cell may not take the others along
                emit.refuse(
                    f"{sequence.place}:h", f"Opening {sequence.place} failed ({type(fault).__name__}: {fault})."
                )


class _Hook:
    """A copyable forward hook; a copy of the watched model does not record."""

    def __init__(self, recorder: Recorder, place: str) -> None:
        self.recorder, self.place = recorder, place

    def __deepcopy__(self, memo: dict[int, Any]) -> _Hook:
        return _Hook(copy.deepcopy(self.recorder, memo), self.place)

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        self.recorder.hook(self.place, module, args, kwargs, output)


def _recurrence(sequence: _Sequence, trace: Trace) -> Recurrence:
    cell = make_cell(sequence.module)
    dtype: torch.dtype = cell.w_ih.dtype  # type: ignore[attr-defined]
    x = torch.stack(sequence.x).to(dtype)
    states = torch.stack([torch.cat(state, -1) for state in (sequence.first, *sequence.states)]).to(dtype)
    made = torch.stack([cell.step(x[t], states[t]) for t in range(min(len(x), 64))])
    error = float((made - states[1 : len(made) + 1]).abs().nan_to_num(0.0).max())
    size = max(1.0, float(states.abs().nan_to_num(0.0, 0.0, 0.0).max()))
    resolution = torch.finfo(sequence.states[0][0].dtype).eps
    t, b = x.shape[:2]
    lengths = trace.batch.lengths if trace.batch.lengths.numel() == b else torch.full((b,), t)
    recurrence = Recurrence(
        sequence.place, type(sequence.module).__name__, cell, x, states, lengths.clamp(max=t).clone(),
        check=Check(error, 64 * resolution * size), shown=set(PARTS[: len(sequence.first)]),
    )  # fmt: skip
    recurrence.delta = _delta(sequence, recurrence)
    return recurrence


def make_cell(module: nn.RNNCellBase) -> Cell:
    """The step of a cell with its effective weights."""
    bias_ih, bias_hh = (module.bias_ih, module.bias_hh) if module.bias else (None, None)
    weights = (module.weight_ih, module.weight_hh, bias_ih, bias_hh)
    if isinstance(module, nn.LSTMCell):
        return LstmStep(*weights)
    if isinstance(module, nn.GRUCell):
        return GruStep(*weights)
    return RnnStep(*weights, str(module.nonlinearity))


def _delta(sequence: _Sequence, recurrence: Recurrence) -> Tensor | None:
    """(t, b, s) total gradients from autograd; None when the run had no loss.

    On the unrolled graph ∂L/∂c_t may include the way through h_t (it does where h is computed from the returned
    c): that part is taken off, so that c_t's gradient holds h_t fixed, as everywhere else.
    """
    if not sequence.gradients:
        return None
    delta = torch.zeros_like(recurrence.states[1:])
    for (step, number), gradient in sequence.gradients.items():
        delta[step, :, recurrence.cell.parts[PARTS[number]]] = gradient.to(delta.dtype)
    if isinstance(recurrence.cell, LstmStep) and _cell_feeds_output(sequence.module):
        block = recurrence.block(0, recurrence.steps)
        assert isinstance(block, LstmBlock)
        h, c = recurrence.cell.parts["h"], recurrence.cell.parts["c"]
        delta[..., c] -= block.leak * delta[..., h]
    return delta


def _cell_feeds_output(module: nn.RNNCellBase) -> bool:
    """Whether autograd sees h computed from the c that an LSTMCell returns (composite kernel) or not (fused one)."""
    with torch.enable_grad():
        one = torch.ones(1, 1, requires_grad=True)
        weight = torch.ones(4, 1)
        h, c = torch.lstm_cell(one, (one, one), weight, weight)
        return torch.autograd.grad(h.sum(), c, allow_unused=True)[0] is not None
