"""Calls of fused recurrent modules: what a hook stores of each, which calls are one chain, and all of it in one layout.

Everything downstream works in the layout (t, b, …), whatever batch_first, unbatched or packed input a call had.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from inspector.engine.cells.base import Cell
from inspector.engine.cells.family import Stack
from inspector.engine.cells.kept_gates import KeptGates
from inspector.engine.devices.random_state import CPU, State, drawing_as

OWN_BYTES = 4 << 20
"""Calls up to this size are copied, so that nothing the model does later can change what is shown; larger ones are
stored by reference and rejected if the model has written into them."""
MOST_NODES = 64
"""Nodes of autograd's graph between one call and the next that are examined."""


@dataclass(slots=True)
class FusedCall:
    """The inputs and outputs of one call of a fused module; gradients are added later, under the names of `returned`.

    Attributes:
        parts: names of the parts of a state; initial and final have as many tensors, or none where there were none.
        weights: the effective weights of this call, by their name in the module.
        random: the random state of its device at the call, where dropout between the layers was active; else {}.
        autocast: (device type, dtype) where the call ran under torch.autocast; else None.
        device: where the module computed; `fetch` copies from there.
        kept_gates: what its kernel kept of each layer and direction, lowest layer first; () where nothing is read.
        connected: parts of the given initial state from which gradients can flow into the computation before the call.
        memory: a number for the memory of its output, as long as something else refers to that.
        followed: its input needed a gradient, or the state that it begins a sequence with.
        upstream: ids of the leaves of autograd's graph from which these were computed; None: not known.
        watched: tensors stored by reference, and those whose gradient is requested, with their versions at the call.
    """

    given: Tensor | PackedSequence
    initial: tuple[Tensor, ...]
    output: Tensor | PackedSequence
    final: tuple[Tensor, ...]
    parts: tuple[str, ...]
    dropping: bool
    weights: dict[str, Tensor]
    random: State = field(default_factory=dict)
    autocast: tuple[str, torch.dtype] | None = None
    connected: frozenset[str] = frozenset()
    kept: list[tuple[Tensor, int]] = field(default_factory=list)
    asked: list[tuple[Tensor, int]] = field(default_factory=list)
    gradients: dict[str, Tensor] = field(default_factory=dict)
    memory: int = 0
    followed: bool = False
    upstream: frozenset[int] | None = None
    device: torch.device = CPU
    kept_gates: tuple[KeptGates, ...] = ()

    def overwritten(self) -> bool:
        """True when something stored by reference (an input, an output, a weight) was written to after the call."""
        return any(tensor._version != version for tensor, version in self.kept)

    def gradients_lost(self) -> bool:
        """True when an output was changed in place: its gradient is then that of the changed values."""
        return any(tensor._version != version for tensor, version in self.asked)

    def returned(self) -> list[tuple[str, Tensor]]:
        """The graph tensors that the call returned: "output", and the parts of the last state."""
        data = self.output.data if isinstance(self.output, PackedSequence) else self.output
        return [("output", data), *zip(self.parts, self.final, strict=False)]

    def receiver(self, name: str) -> Callable[[Tensor | None], None]:
        """A function that stores the gradient of a returned tensor."""

        def take(gradient: Tensor | None) -> None:
            if gradient is not None:
                self.gradients[name] = gradient.detach()

        return take

    def settle(self) -> None:
        """Copy small tensors; store the versions of the rest."""
        tensors = [_data(self.given), *self.initial, _data(self.output), *self.final]
        small = sum(tensor.nbytes for tensor in tensors) <= OWN_BYTES
        if small or any(tensor.is_inference() for tensor in tensors):
            self.given, self.output = _copied(self.given), _copied(self.output)
            self.initial, self.final = (
                tuple(item.detach().clone() for item in state) for state in (self.initial, self.final)
            )
            tensors = []
        self.kept = [(t, t._version) for t in (*tensors, *self.weights.values()) if not t.is_inference()]

    def fetch(self) -> None:
        """Take everything into main memory, where it is analysed: one copy a tensor, none of what lies there."""
        self.device = _data(self.output).device
        self.given, self.output = _fetched(self.given), _fetched(self.output)
        self.initial, self.final = (
            tuple(item.detach().cpu() for item in state) for state in (self.initial, self.final)
        )
        for held in (self.weights, self.gradients):
            held |= {name: value.detach().cpu() for name, value in held.items()}
        self.kept, self.asked = [], []

    def continues(self, last: FusedCall, given: tuple[Tensor, ...], returned: list[tuple[Tensor, int]]) -> bool:
        """True when this call continues where `last` ended: its initial state is what `last` returned, unchanged."""
        if not isinstance(self.given, Tensor) or not isinstance(last.given, Tensor) or self.dropping != last.dropping:
            return False
        if self.given.dim() != last.given.dim() or not _same_weights(self.weights, last.weights):
            return False
        pairs = list(zip(given, last.final, returned, strict=False))
        return bool(pairs) and all(
            (now is out and version >= 0 and now._version == version)
            or (now.shape == then.shape and torch.equal(now, then))
            for now, then, (out, version) in pairs
        )


def _data(value: Tensor | PackedSequence) -> Tensor:
    return value.data if isinstance(value, PackedSequence) else value


def _copied(value: Tensor | PackedSequence) -> Tensor | PackedSequence:
    """A detached copy; of a packed sequence's data only (its index tensors are never changed)."""
    copied = _data(value).detach().clone()
    return packed_like(value, copied) if isinstance(value, PackedSequence) else copied


def _fetched(value: Tensor | PackedSequence) -> Tensor | PackedSequence:
    return value.detach().cpu() if isinstance(value, Tensor) else packed_like(value, value.data).cpu()


def _same_weights(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return all(value is b[name] or torch.equal(value, b[name]) for name, value in a.items())


def returned_states(final: tuple[Tensor, ...]) -> list[tuple[Tensor, int]]:
    """The final states that a call returned to its caller, with their versions (−1 where torch counts none)."""
    return [(item, -1 if item.is_inference() else item._version) for item in final]


def connected_parts(
    names: tuple[str, ...], given: tuple[Tensor, ...], returned: list[tuple[Tensor, int]]
) -> frozenset[str]:
    """The parts of an initial state whose gradient flows into the call that returned the state.

    A state that was detached has equal values and may require a gradient all the same (`h.detach().requires_grad_()`),
    so the graph is followed. Counter-example: more than MOST_NODES operations, which change no value, lie in between;
    the gradient is then taken for cut, and the comparison with the model's own gradients rejects what is not right.
    """
    pairs = zip(names, given, returned, strict=False)
    return frozenset(
        name for name, now, (out, _) in pairs if now.requires_grad and (now is out or _leads(now.grad_fn, out.grad_fn))
    )


def _leads(begin: Any, end: Any) -> bool:
    """Whether a node of autograd's graph leads to another one."""
    waiting, seen = [begin], 0
    while waiting and end is not None and seen < MOST_NODES:
        node = waiting.pop(0)
        if node is end:
            return True
        seen += 1
        waiting += [] if node is None else [before for before, _ in node.next_functions]
    return False


def packed_like(packed: PackedSequence, data: Tensor) -> PackedSequence:
    """Other data in the order of a packed sequence."""
    return PackedSequence(data.detach(), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)


@dataclass(slots=True)
class Segment:
    """One call of a chain: its steps start … stop-1, the gradients of its outputs, h and c by name.

    `connected`: the parts of its initial state that were not detached from the call before.
    """

    start: int
    stop: int
    arriving_final: dict[str, Tensor]
    connected: frozenset[str]


@dataclass(slots=True)
class Unfolded:
    """A chain in the layout (t, b, …): inputs, steps of each sample, initial and final states by part, where known.

    `lengths` are real steps; `ran` the steps that the kernel computed: over padding too, unless the input was packed.
    `masks` are the factors by which dropout multiplied each lower layer's output, () where it was not active.
    `gates`: (t, b, 4h) what the kernel kept of each layer and direction, in processing order; () where nothing is read.
    """

    x: Tensor
    output: Tensor
    lengths: Tensor
    ran: Tensor
    initial: dict[str, Tensor]
    final: dict[str, Tensor]
    arriving: Tensor | None
    segments: list[Segment]
    masks: tuple[Tensor, ...] = ()
    base: int = 0
    gates: tuple[Tensor, ...] = ()

    def start(self, cell: Cell, number: int) -> dict[str, Tensor]:
        """The parts (b, ·) of the initial state of one layer in one direction; zeros where none was given."""
        if self.initial:
            return {name: value[number] for name, value in self.initial.items()}
        b = self.x.shape[1]
        return {name: self.output.new_zeros(b, part.stop - part.start) for name, part in cell.parts.items()}

    def one_sample(self, index: int, sample: int) -> Unfolded:
        """The same chain with column `index` only, which is sample `sample` of the batch."""
        cut = slice(index, index + 1)

        def state(parts: dict[str, Tensor]) -> dict[str, Tensor]:
            return {name: value[:, cut] for name, value in parts.items()}

        segments = [Segment(s.start, s.stop, state(s.arriving_final), s.connected) for s in self.segments]
        arriving = None if self.arriving is None else self.arriving[:, cut]
        masks = tuple(mask[:, cut] for mask in self.masks)
        return Unfolded(
            self.x[:, cut], self.output[:, cut], self.lengths[cut], self.ran[cut], state(self.initial),
            state(self.final), arriving, segments, masks, sample, tuple(one[:, cut] for one in self.gates),
        )  # fmt: skip


def unfold(stack: Stack, calls: list[FusedCall], lengths: Tensor) -> Unfolded:
    """A chain of one or several calls, padded with zeros, samples in the caller's order.

    `lengths` are those of the batch; they count where the chain has the batch's size and its number of steps.
    """
    parts = [_one_call(stack, call) for call in calls]
    whole = parts[0]
    if len(parts) > 1:
        whole.final = parts[-1].final
        if any(part.arriving is not None for part in parts):  # before `whole`, the first part, has the joined output
            whole.arriving = torch.cat(
                [torch.zeros_like(p.output) if p.arriving is None else p.arriving for p in parts]
            )
        whole.x = torch.cat([part.x for part in parts])
        whole.output = torch.cat([part.output for part in parts])
        whole.masks = tuple(torch.cat(masks) for masks in zip(*(part.masks for part in parts), strict=True))
        if all(part.gates for part in parts):
            whole.gates = tuple(torch.cat(gates) for gates in zip(*(part.gates for part in parts), strict=True))
        else:
            whole.gates = ()
        whole.segments = _one_after_another([part.segments[0] for part in parts])
        whole.ran = torch.full_like(whole.ran, whole.x.shape[0])
        whole.lengths = whole.ran.clone()
    t, b = whole.x.shape[:2]
    if not isinstance(calls[0].given, PackedSequence) and b and lengths.numel() == b and int(lengths.max()) == t:
        whole.lengths = lengths.clone()
    return whole


def _one_after_another(segments: list[Segment]) -> list[Segment]:
    """The calls of a chain, each beginning where the one before ended."""
    moved: list[Segment] = []
    for one in segments:
        start = moved[-1].stop if moved else 0
        moved.append(Segment(start, start + one.stop, one.arriving_final, one.connected))
    return moved


def _one_call(stack: Stack, call: FusedCall) -> Unfolded:
    packed = isinstance(call.given, PackedSequence)
    if packed:
        assert isinstance(call.given, PackedSequence) and isinstance(call.output, PackedSequence)
        given, batched = call.given, True

        def laid(data: Tensor) -> Tensor:
            return pad_packed_sequence(packed_like(given, data))[0]

        x, ran = pad_packed_sequence(packed_like(given, given.data))
        output_data = call.output.data
    else:
        assert isinstance(call.given, Tensor) and isinstance(call.output, Tensor)
        batched = call.given.dim() == 3

        def laid(data: Tensor) -> Tensor:
            data = data.detach()
            return (data.transpose(0, 1) if stack.batch_first else data) if batched else data[:, None]

        x = laid(call.given)
        ran = torch.full((x.shape[1],), x.shape[0])
        output_data = call.output
    final = _states(call.parts, call.final, batched)
    initial = _states(call.parts, call.initial, batched) if call.initial else {
        name: torch.zeros_like(value) for name, value in final.items()
    }  # fmt: skip
    late = {name: (g if batched else g[:, None]) for name, g in call.gradients.items() if name != "output"}
    output = laid(output_data)
    arriving = laid(call.gradients["output"]) if "output" in call.gradients else None
    if arriving is None and late:
        arriving = torch.zeros_like(output)
    masks = tuple(laid(mask) if packed else mask for mask in _masks(stack, call, output_data, x, packed))
    segment = Segment(0, x.shape[0], late, call.connected)
    gates = tuple(one.gates() for one in call.kept_gates)
    return Unfolded(x.detach(), output, ran.clone(), ran, initial, final, arriving, [segment], masks, gates=gates)


def _masks(stack: Stack, call: FusedCall, output: Tensor, x: Tensor, packed: bool) -> list[Tensor]:
    """The factors by which dropout multiplied the lower layers' outputs, drawn again from the same random state.

    The kernel draws one mask a layer, in the layout (t, b, h) or that of the packed data. The check shows whether they
    are the right ones: the layer above reproduces the module's output only with them.
    """
    if not call.random:
        return []
    shape = (*(output.shape[:1] if packed else x.shape[:2]), output.shape[-1])
    with drawing_as(call.random):
        ones = torch.ones(shape, dtype=output.dtype, device=call.device)
        return [torch.dropout(ones, stack.dropout, True).cpu() for _ in range(stack.layers - 1)]


def _states(parts: tuple[str, ...], state: tuple[Tensor, ...], batched: bool) -> dict[str, Tensor]:
    return {n: (v if batched else v[:, None]).detach() for n, v in zip(parts, state, strict=False)}


def column_of(sample: int, samples: int, columns: int) -> int | None:
    """Which of a call's `columns` belongs to a sample of a batch of `samples`; None where that cannot be known."""
    if columns == samples:
        return sample
    return 0 if columns == 1 or (samples == 1 and columns) else None


UNKNOWN_COLUMN = (
    "{place} ran on {columns} sequences at once while the batch has {samples}, so which of them belongs to the "
    "selected sequence is unknown; run one sequence alone to see it."
)


def flip_each(values: Tensor, lengths: Tensor) -> Tensor:
    """Each sample (t, b, …) reversed within its own length; padding stays where it is."""
    t = values.shape[0]
    steps = torch.arange(t)[:, None]
    index = torch.where(steps < lengths, lengths - 1 - steps, steps)
    return values[index.to(values.device), torch.arange(values.shape[1], device=values.device)]
