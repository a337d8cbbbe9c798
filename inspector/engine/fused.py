"""Laying a call of a fused recurrent module open: layers, directions, states, gates, and the check on them.

Everything here works in the layout (t, b, …), whatever batch_first, unbatched or packed input the call had.
Reference for the order of gates and states: torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from inspector.engine.emitter import Emitter
from inspector.engine.steps.cell import Cell, Check
from inspector.engine.steps.gru import GruStep
from inspector.engine.steps.lstm import LstmStep
from inspector.engine.steps.rnn import RnnStep
from inspector.engine.steps.sweep import sweep
from inspector.engine.trace import KEPT_BYTES, Recurrence


@dataclass(slots=True)
class FusedCall:
    """What went into a fused module and what came out; gradients come later, under the names of `returned`."""

    given: Tensor | PackedSequence
    initial: Any
    output: Tensor | PackedSequence
    final: Any
    dropping: bool
    gradients: dict[str, Tensor] = field(default_factory=dict)

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor that later in-place operations of the user could change."""
        for value in (self.given, self.initial, self.output, self.final):
            for item in value if isinstance(value, tuple) and not isinstance(value, PackedSequence) else (value,):
                if isinstance(item, PackedSequence):
                    yield item.data
                elif isinstance(item, Tensor):
                    yield item

    def returned(self) -> list[tuple[str, Tensor]]:
        """The graph tensors that the call returned: "output", "h", and "c" for an LSTM."""
        data = self.output.data if isinstance(self.output, PackedSequence) else self.output
        final = self.final if isinstance(self.final, tuple) else (self.final,)
        return [("output", data), *zip(("h", "c"), final, strict=False)]

    def receiver(self, name: str) -> Callable[[Tensor | None], None]:
        """What to do with the gradient of a returned tensor: keep it."""

        def take(gradient: Tensor | None) -> None:
            if gradient is not None:
                self.gradients[name] = gradient.detach()

        return take


@dataclass(slots=True)
class Unfolded:
    """A call in the layout (t, b, …): inputs, steps of each sample, initial and final states by part.

    `lengths` are real steps; `ran` the steps that the kernel computed: over padding too, unless the input was packed.
    """

    x: Tensor
    output: Tensor
    lengths: Tensor
    ran: Tensor
    initial: dict[str, Tensor]
    final: dict[str, Tensor]
    arriving: Tensor | None
    arriving_final: dict[str, Tensor]
    base: int = 0


def lay_open(
    place: str, module: nn.RNNBase, call: FusedCall, lengths: Tensor, emit: Emitter, only: int | None = None
) -> list[Recurrence]:
    """One Recurrence for every layer and direction of the call, lowest layer first; of sample `only`, if given."""
    plain = unfold(module, call, lengths)
    if only is not None and plain.x.shape[1] > 1:
        plain = one_sample(plain, only)
    directions = 2 if module.bidirectional else 1
    hidden = call.dropping and module.dropout > 0
    layers: list[list[Recurrence]] = []
    below = plain.x
    for layer in range(module.num_layers):
        if layer and hidden:
            _refuse_dropped(place, layer, emit)
            break
        row = [_direction(place, module, plain, below, layer, d) for d in range(directions)]
        layers.append([item.recurrence for item in row])
        below = torch.cat([forward_order(item.h, item.recurrence) for item in row], dim=-1)
    if plain.arriving is not None and len(layers) == module.num_layers:
        _gradients(layers, plain)
    return [recurrence for row in layers for recurrence in row]


def _refuse_dropped(place: str, layer: int, emit: Emitter) -> None:
    emit.refuse(
        f"{place}.l{layer}:h",
        f"Dropout between the layers of {place} is active (training mode) and its mask is not returned by the fused "
        "kernel; run the model in eval mode to see the upper layers and the gradients.",
    )


def one_sample(plain: Unfolded, sample: int) -> Unfolded:
    """The same call with one sample of the batch."""
    cut = slice(sample, sample + 1)
    return Unfolded(
        plain.x[:, cut],
        plain.output[:, cut],
        plain.lengths[cut],
        plain.ran[cut],
        {name: value[:, cut] for name, value in plain.initial.items()},
        {name: value[:, cut] for name, value in plain.final.items()},
        None if plain.arriving is None else plain.arriving[:, cut],
        {name: value[:, cut] for name, value in plain.arriving_final.items()},
        base=sample,
    )


def unfold(module: nn.RNNBase, call: FusedCall, lengths: Tensor) -> Unfolded:
    """The call's tensors in one layout, padded with zeros, samples in the caller's order."""
    wide = dict(call.gradients)
    packed = isinstance(call.given, PackedSequence)
    if packed:
        assert isinstance(call.given, PackedSequence) and isinstance(call.output, PackedSequence)
        x, real = pad_packed_sequence(_plain(call.given))
        output, _ = pad_packed_sequence(_plain(call.output))
        if "output" in wide:
            wide["output"] = pad_packed_sequence(_plain(call.output, wide["output"]))[0]
    else:
        assert isinstance(call.given, Tensor) and isinstance(call.output, Tensor)
        single = call.given.dim() == 2
        x, output = (_time_first(value, module, single) for value in (call.given, call.output))
        if "output" in wide:
            wide["output"] = _time_first(wide["output"], module, single)
        real = _real_lengths(x, lengths)
    ran = real if packed else torch.full_like(real, x.shape[0])
    batched = packed or (isinstance(call.given, Tensor) and call.given.dim() == 3)
    final = _states(call.final, batched)
    initial = _states(call.initial, batched) if call.initial is not None else {
        name: torch.zeros_like(value) for name, value in final.items()
    }  # fmt: skip
    late = {name: (g if batched else g[:, None]) for name, g in wide.items() if name != "output"}
    arriving = wide.get("output")
    if arriving is None and late:
        arriving = torch.zeros_like(output)
    return Unfolded(x.detach(), output.detach(), real, ran, initial, final, arriving, late)


def _plain(packed: PackedSequence, data: Tensor | None = None) -> PackedSequence:
    value = packed.data if data is None else data
    return PackedSequence(value.detach(), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)


def _time_first(value: Tensor, module: nn.RNNBase, single: bool) -> Tensor:
    value = value.detach()
    if single:
        return value[:, None]
    return value.transpose(0, 1) if module.batch_first else value


def _real_lengths(x: Tensor, lengths: Tensor) -> Tensor:
    """The fused kernel ran over padding too, so a padded forward direction is real for `lengths` steps at most."""
    t, b = x.shape[:2]
    if lengths.numel() == b and int(lengths.max()) <= t:
        return lengths.clone()
    return torch.full((b,), t)


def _states(value: Any, batched: bool) -> dict[str, Tensor]:
    items = value if isinstance(value, tuple) else (value,)
    return {name: (v if batched else v[:, None]).detach() for name, v in zip(("h", "c"), items, strict=False)}


@dataclass(slots=True)
class _Opened:
    """A Recurrence and the h part of its states after each step, in processing order."""

    recurrence: Recurrence
    h: Tensor


def class_name(module: nn.Module) -> str:
    """The class as the user wrote it: parametrisations make a subclass of their own."""
    return type(module).__name__.removeprefix("Parametrized")


def make_cell(module: nn.RNNBase, layer: int, reverse: bool) -> Cell:
    """The step of one layer in one direction with the module's effective weights."""
    suffix = f"_l{layer}" + ("_reverse" if reverse else "")

    def weight(kind: str) -> Tensor:
        found: Tensor = getattr(module, kind + suffix)
        return found

    w_ih, w_hh = weight("weight_ih"), weight("weight_hh")
    b_ih, b_hh = (weight("bias_ih"), weight("bias_hh")) if module.bias else (None, None)
    if isinstance(module, nn.LSTM):
        return LstmStep(w_ih, w_hh, b_ih, b_hh, weight("weight_hr") if module.proj_size else None)
    if isinstance(module, nn.GRU):
        return GruStep(w_ih, w_hh, b_ih, b_hh)
    return RnnStep(w_ih, w_hh, b_ih, b_hh, "relu" if "RELU" in module.mode else "tanh")


def _direction(place: str, module: nn.RNNBase, plain: Unfolded, below: Tensor, layer: int, direction: int) -> _Opened:
    """One layer in one direction on its input: the module's own output (top layer) or one more fused run of it."""
    reverse = direction == 1
    directions = 2 if module.bidirectional else 1
    number = layer * directions + direction
    cell = make_cell(module, layer, reverse)
    lengths = plain.ran if reverse else plain.lengths
    x = flip_each(below, lengths) if reverse else below
    start = {name: value[number] for name, value in plain.initial.items()}
    if layer == module.num_layers - 1:
        h = plain.output.chunk(directions, dim=-1)[direction]
        h = flip_each(h, lengths) if reverse else h
    else:
        h = _run_layer(module, layer, direction, x, start)
    dtype = cell_dtype(cell)
    states, known, error = _states_and_error(
        cell, x.to(dtype), {name: value.to(dtype) for name, value in start.items()}, h.to(dtype), lengths
    )
    steps = x.shape[0]
    for name, final in plain.final.items():
        last = states[plain.ran, torch.arange(plain.ran.numel())][:, cell.parts[name]]
        error = max(error, _distance(last, final[number]) / max(1, steps) ** 0.5)
    name = f"{place}.l{layer}" + (".reverse" if reverse else "")
    size = float(states.abs().nan_to_num(0.0, 0.0, 0.0).max()) if states.numel() else 1.0
    check = Check(error, allowed_error(plain.output.dtype, size))
    recurrence = Recurrence(
        name,
        class_name(module),
        cell,
        x.to(dtype),
        states,
        lengths.clone(),
        reverse,
        check,
        base=plain.base,
        known=known,
    )
    return _Opened(recurrence, h)


def _states_and_error(
    cell: Cell, x: Tensor, start: dict[str, Tensor], h: Tensor, lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, ...], float]:
    """(states (t + 1, b, s), what was computed on the way, largest difference between h and one recomputed step)."""
    before = torch.cat((start["h"][None], h[:-1]))
    known: tuple[Tensor, ...] = ()
    if isinstance(cell, LstmStep):
        gates = cell.gates(x, before)
        c = cell.cells(gates, start["c"])
        made, known = cell.exposed_state(gates, c), tuple(gates.values())
        states = torch.cat((torch.cat((start["h"], start["c"]), -1)[None], torch.cat((h, c), dim=-1)))
    else:
        states = torch.cat((start["h"][None], h))
        if isinstance(cell, GruStep):
            known = cell.compute(x, before)
            made = torch.lerp(known[2], before, known[1])
        else:
            assert isinstance(cell, RnnStep)
            made = cell.outputs(x, before)
    if sum(value.nbytes for value in known) > KEPT_BYTES:
        known = ()
    real = torch.arange(h.shape[0])[:, None] < lengths
    return states, known, _distance(made, h) if bool(real.all()) else _distance(made[real], h[real])


def cell_dtype(cell: Cell) -> torch.dtype:
    """The dtype in which a cell computes."""
    weight: Tensor = getattr(cell, "w_hh")  # noqa: B009 - every fused family has it
    return weight.dtype


def flip_each(values: Tensor, lengths: Tensor) -> Tensor:
    """Each sample (t, b, …) reversed within its own length; padding stays where it is."""
    t = values.shape[0]
    steps = torch.arange(t)[:, None]
    index = torch.where(steps < lengths, lengths - 1 - steps, steps)
    return values[index.to(values.device), torch.arange(values.shape[1], device=values.device)]


def forward_order(values: Tensor, recurrence: Recurrence) -> Tensor:
    """Values in processing order brought back to sequence order."""
    return flip_each(values, recurrence.lengths) if recurrence.reverse else values


def _run_layer(module: nn.RNNBase, layer: int, direction: int, x: Tensor, start: dict[str, Tensor]) -> Tensor:
    """h of one layer in one direction, by torch's own fused kernel with the layer's weights: (t, b, h)."""
    suffix = f"_l{layer}" + ("_reverse" if direction else "")
    names = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if module.bias else [])]
    if getattr(module, "proj_size", 0):
        names.append("weight_hr")
    weights = [getattr(module, name + suffix).detach() for name in names]
    states = [value[None].contiguous() for value in start.values()]
    options = (module.bias, 1, 0.0, False, False, False)
    kind = {"LSTM": torch.lstm, "GRU": torch.gru, "RNN_TANH": torch.rnn_tanh, "RNN_RELU": torch.rnn_relu}[module.mode]
    run: Any = kind
    result = run(x.contiguous(), states if module.mode == "LSTM" else states[0], weights, *options)
    output: Tensor = result[0]
    return output


def allowed_error(dtype: torch.dtype, size: float) -> float:
    """How far one recomputed step in this dtype may be off, for states of a size: some units of rounding."""
    units = {torch.float64: 64 * 2**-52, torch.float32: 64 * 2**-23, torch.float16: 8 * 2**-10}
    return units.get(dtype, 8 * 2**-7) * max(1.0, size)


def _distance(a: Tensor, b: Tensor) -> float:
    """Largest absolute difference; entries that are not finite in both (an exploding run) count as equal."""
    same = ~torch.isfinite(a) & ~torch.isfinite(b)
    difference = torch.where(same, torch.zeros_like(a), (a - b.to(a.dtype)).abs())
    return float(difference.max()) if difference.numel() else 0.0


def _gradients(layers: list[list[Recurrence]], plain: Unfolded) -> None:
    """Fill `arriving` and `delta` from the top layer down: a layer's input gradient arrives at the layer below."""
    from_above = plain.arriving
    assert from_above is not None
    for layer in range(len(layers) - 1, -1, -1):
        row = layers[layer]
        parts = from_above.chunk(len(row), dim=-1)
        totals = []
        for direction, item in enumerate(row):
            item.arriving = _arriving(item, parts[direction], plain, layer * len(row) + direction)
            item.delta, to_input, _ = sweep(item.cell, item.x, item.states, item.arriving)
            totals.append(forward_order(to_input, item))
        from_above = torch.stack(totals).sum(0)


def _arriving(item: Recurrence, at_h: Tensor, plain: Unfolded, number: int) -> Tensor:
    """(t, b, s): the gradient at the outputs, plus that of h_n and c_n at the last step that the kernel ran."""
    arriving = item.states.new_zeros(item.states[1:].shape)
    arriving[..., item.cell.parts["h"]] = (flip_each(at_h, item.lengths) if item.reverse else at_h).to(arriving.dtype)
    samples, last = torch.arange(plain.ran.numel()), (plain.ran - 1).clamp(min=0)
    for name, gradient in plain.arriving_final.items():
        part = item.cell.parts[name]
        arriving[last, samples, part] += gradient[number].to(arriving.dtype)
    return arriving
