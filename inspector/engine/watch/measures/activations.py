"""Health of activations by module, and norms of the states that recurrent modules return."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.cells.family import sequence_family
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters, local
from inspector.engine.watch.tables import About
from inspector.engine.watch.turns import APART

ZERO = "modules:activation/zero"
MEAN = "modules:activation/mean_abs"
BAD = "modules:activation/non_finite"
STATE = "modules:state/norm"
FEWEST_ROWS = 8
"""Rows of an output that are looked at, at least; of longer ones single entries are."""
ROWS = 32
"""Calls whose entries are summed together: a megabyte of float32."""
MOST_ENTRIES = 8192
"""Entries of an output that are looked at: all up to so many, else that many evenly spaced ones."""
DEEPEST = 16
"""Lists inside each other in which an output is looked for; a list may be a part of itself."""
_BY_MODULE = ("module", "module")
_METHOD = (
    f"of at most {MOST_ENTRIES:,} entries in evenly spaced rows of the output, over all calls of the iteration in "
    f"training mode; iterations are at least {APART} apart in the preset normal, unless a condition decides"
)


class Activations(Measure):
    """Sums over the output of each module, on its device."""

    tables = (
        About(
            name=ZERO, title="activations that are zero", formula="share of entries = 0", limits=(0, 1),
            column=_BY_MODULE, method=_METHOD,
        ),
        About(
            name=MEAN, title="mean |activation|", formula="mean |a|", scale="log", column=_BY_MODULE, method=_METHOD,
        ),
        About(
            name=BAD, title="activations that are not finite", formula="share of NaN and infinite entries",
            limits=(0, 1), column=_BY_MODULE, method=_METHOD,
        ),
    )  # fmt: skip

    _rooms: dict[tuple[torch.device, torch.dtype], list[Tensor]]

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._rooms = {}

    def reads(self, module: nn.Module) -> bool:
        """Every module."""
        return True

    def called(self, moment: Moment, place: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Add a call."""
        values = first_tensor(output)
        if values is None or not values.is_floating_point() or not values.numel():
            return
        part = spaced(local(values))
        kept: dict[tuple[torch.device, torch.dtype], _Copies] = moment.extra.setdefault(ZERO, {})
        kind = part.device, part.dtype
        copies = kept.get(kind)
        if copies is None:
            copies = kept[kind] = _Copies(self._rooms.setdefault(kind, []))
        copies.take(place, part)

    def ends(self, moment: Moment) -> None:
        """Shares and means."""
        kept: dict[tuple[torch.device, torch.dtype], _Copies] = moment.extra.pop(ZERO, {})
        for copies in kept.values():
            places, shares = copies.shares()
            columns = [self.column("module", place) for place in places]
            for table, values in zip((ZERO, MEAN, BAD), shares.unbind(1), strict=True):
                moment.pack.add(table, columns, values)


class _Copies:
    """Entries of the outputs of an iteration's calls, of one device and dtype: rows of a room that is used again."""

    def __init__(self, rooms: list[Tensor]) -> None:
        self.rooms, self.places, self.counts = rooms, list[str](), list[int]()
        self._sums: list[Tensor] = []

    def take(self, place: str, part: Tensor) -> None:
        """A call; what was copied is summed when the room is full."""
        at, count = len(self.places) % ROWS, part.numel()
        if not at and self.places:
            self._sums.append(self._summed(ROWS))
        if not self.rooms:
            with torch.inference_mode(False):  # it is used again outside too
                self.rooms.append(torch.zeros(ROWS, MOST_ENTRIES, dtype=part.dtype, device=part.device))
        row = self.rooms[0][at]
        row[:count].view(part.shape).copy_(part)
        if count < MOST_ENTRIES:
            row[count:].zero_()
        self.places.append(place)
        self.counts.append(count)

    def shares(self) -> tuple[list[str], Tensor]:
        """(places, (place, 3) share of zeros, mean |a|, share of entries that are not finite)."""
        rows = torch.cat([*self._sums, self._summed((len(self.places) - 1) % ROWS + 1)])
        counts = torch.tensor(self.counts, dtype=rows.dtype, device=rows.device)
        rows = torch.cat((rows, counts[:, None]), 1)
        rows[:, 0] -= MOST_ENTRIES - counts  # what is behind the entries
        names = list(dict.fromkeys(self.places))
        if len(names) < len(rows):
            which = torch.tensor([names.index(place) for place in self.places], device=rows.device)
            rows = rows.new_zeros(len(names), 4).index_add_(0, which, rows)
        return names, rows[:, :3] / rows[:, 3:]

    def _summed(self, count: int) -> Tensor:
        """(n, 3) zeros, Σ |a|, entries that are not finite, of so many rows of the room."""
        rows = self.rooms[0][:count]
        kind = at_least_float32(rows)
        if rows.device.type == "cpu":
            sizes = rows.abs_().sum(1, dtype=kind)  # the rows are ours, and are not read again
            if bool(sizes.isfinite().all()):  # signs are counted four times as fast as what is not zero
                others = rows.sign_().sum(1, dtype=kind)
                return torch.stack((MOST_ENTRIES - others, sizes, torch.zeros_like(sizes)), 1)
        sizes = torch.linalg.vector_norm(rows, 1, dim=1, dtype=kind)
        zeros = MOST_ENTRIES - torch.count_nonzero(rows, dim=1)
        bad = (~rows.isfinite()).sum(1)
        return torch.stack((zeros.to(kind), sizes, bad.to(kind)), 1)


class States(Measure):
    """The last state that a recurrent module returned in the iteration."""

    tables = (
        About(
            name=STATE, title="norm of the last state", scale="log", column=("state", "state"),
            formula="sqrt(mean over the batch of ‖state after the last step‖²)",
        ),
    )  # fmt: skip

    def reads(self, module: nn.Module) -> bool:
        """Modules that return a state."""
        return sequence_family(module) is not None

    def called(self, moment: Moment, place: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Norms by layer and direction, of each part of the state."""
        family = sequence_family(module)
        results = None if family is None else family.results(module, output)
        if family is None or results is None:
            return
        stack = family.stack(module)
        for part, state in zip(family.parts, results[1], strict=False):
            if state.dim() not in (2, 3):
                continue
            held = state.detach() if state.dim() == 3 else state.detach()[:, None]
            norms = torch.linalg.vector_norm(held, dim=(1, 2), dtype=at_least_float32(held)) / math.sqrt(held.shape[1])
            names = [f"{place}.{layer_name(n, stack.directions)} {part}" for n in range(len(norms))]
            moment.pack.add(STATE, [self.column("state", name) for name in names], norms)


def at_least_float32(values: Tensor) -> torch.dtype:
    """The precision of a sum over entries: float64 of float64, which torch sums in nothing narrower."""
    return torch.promote_types(values.dtype, torch.float32)


def layer_name(number: int, directions: int) -> str:
    """Of a layer and direction by its place among the states: "l0", "l0.reverse"."""
    return f"l{number // directions}" + (".reverse" if number % directions else "")


def first_tensor(output: Any, depth: int = DEEPEST) -> Tensor | None:
    """The first tensor in what a module returned."""
    if isinstance(output, Tensor):
        return output
    with suppress(Exception):  # a property of an object of anybody's may raise anything
        if isinstance(found := getattr(output, "data", None), Tensor):
            return found  # of a packed sequence
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, (tuple, list)) else ()
    below = (first_tensor(one, depth - 1) for one in (parts if depth else ()))
    return next((found for found in below if found is not None), None)


def spaced(values: Tensor) -> Tensor:
    """At most MOST_ENTRIES entries: every n-th row of the last axis, n chosen to share no factor with the axis before
    it, so that all its positions take part; of long rows every n-th entry. A view, of one or two axes; of a tensor
    with gaps in memory that of its first sample."""
    if not values.is_contiguous():
        values = values[0] if values.dim() > 1 and values.numel() > MOST_ENTRIES else values
        values = values.contiguous()
    width, step = spacing(tuple(values.shape))
    return values.view(-1, width)[::step] if width else values.view(-1)[::step]


@lru_cache(maxsize=1024)
def spacing(shape: tuple[int, ...]) -> tuple[int, int]:
    """(width of the rows, or 0 for single entries; from one row or entry that is looked at to the next)."""
    entries = math.prod(shape)
    width = shape[-1] if len(shape) > 1 else entries
    if entries <= MOST_ENTRIES or width > MOST_ENTRIES // FEWEST_ROWS:
        return 0, apart(-(-entries // MOST_ENTRIES), width)
    return width, apart(-(-(entries // width) // (MOST_ENTRIES // width)), shape[-2])


def apart(step: int, size: int) -> int:
    """The step, or the next one that shares no factor with the size."""
    while step > 1 and math.gcd(step, size) > 1:
        step += 1
    return step
