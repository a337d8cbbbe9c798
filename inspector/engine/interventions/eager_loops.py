"""Recurrent modules written out as loops, so that a value in the middle of a step can be changed.

Only edited runs use them: what is changed inside a fused kernel cannot be seen outside it. The recorder treats this
file, and the step that each family of cells defines (`Cell.eager_step`), as a user's code; the local names there are
the names of the channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from inspector.engine.cells.base import Cell
from inspector.engine.cells.family import CellFamily
from inspector.engine.errors import InputError


@dataclass(eq=False)
class Layer:
    """One layer in one direction, or one cell: its place and its step, on the module's own weights.

    `within`: the unedited run shows the module's calls for one step as parts of the user's own loop.
    """

    place: str
    cell: Cell
    within: bool = False


def run(
    self: Layer, x: Tensor, *state: Tensor, sequence: int, cut: Sequence[bool] = ()
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """x (t, b, i) and the parts of the state (b, ·) → the layer's output (t, b, o) and the last state.

    The calls of one `sequence` follow each other, each from the state with which the one before ended; `cut`: the parts
    that the model has detached in between. The recorder reads `self` and `sequence` (traced/loops/written_out.py).
    """
    cell = self.cell
    main = list(cell.parts).index(cell.main)
    out: list[Tensor] = []
    for x_t in x.unbind(0):
        if any(cut) and not out:
            state = _detached(state, cut)
        state = cell.eager_step(x_t, *state)
        out.append(state[main] if cell.gives_state else cell.emit(x_t, torch.cat(state, -1)))
    return torch.stack(out), state


def _detached(state: Sequence[Tensor], cut: Sequence[bool]) -> tuple[Tensor, ...]:
    return tuple(part.detach() if own else part for part, own in zip(state, cut, strict=True))


@dataclass(eq=False)
class Sequences:
    """Which call of a module continues the one before: its initial state is the last state that was returned.

    The steps then go on from the very tensors of the steps before, so that the recorder sees one recurrence.

    Attributes:
        number: of the sequence that the last call is a part of; continued: some call has continued another one.
        within: no call continues another one: the user's loop around them is the recurrence.
    """

    layers: list[list[Layer]]
    number: int = 0
    continued: bool = False
    within: bool = False
    returned: tuple[Tensor, ...] = ()
    finals: list[tuple[Tensor, ...]] = field(default_factory=list)
    output: int = 0

    def forget(self) -> None:
        """A new run begins."""
        self.continued, self.number = False, 0
        self.let_go()

    def let_go(self) -> None:
        """Release what the run returned."""
        self.returned, self.finals, self.output = (), [], 0

    def continues(self, given: Sequence[Tensor], *, chained: bool) -> bool:
        """Whether a call with this initial state goes on; otherwise it begins the next sequence.

        Not where the state is the output of the call before: in the unedited run, too, the loop around the module is
        then the recurrence. Counter-example: a copy of the output counts as the last state.
        """
        chained = chained and not self.within and all(part.untyped_storage()._cdata != self.output for part in given)
        same = bool(given) and chained and len(given) == len(self.returned) and all(
            now is then or (now.shape == then.shape and torch.equal(now, then))
            for now, then in zip(given, self.returned, strict=True)
        )  # fmt: skip
        self.number += not same
        self.continued |= same
        return same

    def leave_to_the_loop(self) -> None:
        """Calls for one step are parts of the user's loop from now on."""
        self.within = True
        for layer in chain.from_iterable(self.layers):
            layer.within = True

    def keep(self, output: Tensor, returned: tuple[Tensor, ...], finals: list[tuple[Tensor, ...]]) -> None:
        """What a call returned, its output and its last state, and the state of every layer."""
        self.returned, self.finals, self.output = returned, finals, output.untyped_storage()._cdata


def layers_of(family: CellFamily, module: nn.Module, place: str) -> list[list[Layer]]:
    """Layers from below, each with its directions."""
    stack = family.stack(module)
    return [
        [
            Layer(f"{place}.l{layer}" + (".reverse" if direction else ""), family.live(module, layer, direction))
            for direction in range(stack.directions)
        ]
        for layer in range(stack.layers)
    ]


def forward_of(family: CellFamily, module: nn.Module, calls: Sequences) -> Callable[..., Any]:
    """What replaces the module's forward."""
    stack, layers = family.stack(module), calls.layers

    def forward(*args: Any, **kwargs: Any) -> Any:
        given, parts = family.arguments(module, args, kwargs)
        given, sizes = _unpacked(given, stack.batch_first)
        batched = given.dim() == 3
        x = given if batched else given[:, None] if not stack.batch_first else given[None]
        x = x.transpose(0, 1) if stack.batch_first else x
        if not batched:
            parts = tuple(part[:, None] for part in parts)
        goes_on = calls.continues(parts, chained=stack.directions == 1 and sizes is None)
        cut = [goes_on and torch.is_grad_enabled() and not part.requires_grad for part in parts]
        finals: list[tuple[Tensor, ...]] = []
        for n, row in enumerate(layers):
            if n and stack.dropout and module.training:
                x = nn.functional.dropout(x, stack.dropout, True)
            sides = []
            for d, layer in enumerate(row):
                number = n * len(row) + d
                given = list(calls.finals[number]) if goes_on else [part[number] for part in parts]
                first = _first(layer, x, given)
                out, final = run(layer, x.flip(0) if d else x, *first, sequence=calls.number, cut=cut)
                sides.append(out.flip(0) if d else out)
                finals.append(final)
            x = torch.cat(sides, -1) if len(sides) > 1 else sides[0]
        last = tuple(torch.stack(values) for values in zip(*finals, strict=True))
        x = x.transpose(0, 1) if stack.batch_first else x
        if sizes is not None:
            x = PackedSequence(x.reshape(-1, x.shape[-1]), sizes)
        calls.keep(x.data if sizes is not None else x, last, finals)
        if not batched:
            x, last = x.squeeze(0 if stack.batch_first else 1), tuple(part[:, 0] for part in last)
        return family.returned(module, x, last)

    return forward


def _unpacked(given: Any, batch_first: bool) -> tuple[Any, Tensor | None]:
    """A packed sequence as a batch of one, with its batch sizes; anything else as it is. Raises InputError."""
    if not isinstance(given, PackedSequence):
        return given, None
    if int(given.batch_sizes[0]) > 1:
        raise InputError("Packed sequences of a batch cannot be edited; run one sequence alone.")
    return given.data[None] if batch_first else given.data[:, None], given.batch_sizes


def _first(layer: Layer, x: Tensor, given: list[Tensor]) -> list[Tensor]:
    """The initial state: as it was given, or zeros."""
    return given or [x.new_zeros(x.shape[1], part.stop - part.start) for part in layer.cell.parts.values()]


def cell_forward_of(family: CellFamily, module: nn.Module, place: str) -> tuple[Callable[..., Any], Layer]:
    """The same for a cell, and its layer."""
    layer = Layer(place, family.live(module))

    def forward(*args: Any, **kwargs: Any) -> Any:
        given, state = family.arguments(module, args, kwargs)
        if not state:
            widths = [part.stop - part.start for part in layer.cell.parts.values()]
            state = tuple(given.new_zeros(*given.shape[:-1], width) for width in widths)
        return family.returned(module, None, layer.cell.eager_step(given, *state))

    return forward, layer
