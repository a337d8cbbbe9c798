"""Health of activations by module, and norms of the states that recurrent modules return."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.cells.family import sequence_family
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import local
from inspector.engine.watch.tables import About

ZERO = "modules:activation/zero"
MEAN = "modules:activation/mean_abs"
BAD = "modules:activation/non_finite"
STATE = "modules:state/norm"
MOST_ENTRIES = 16_384
"""Entries of an output that are looked at: all up to so many, else that many evenly spaced ones."""
_BY_MODULE = ("module", "module")
_METHOD = (
    f"of at most {MOST_ENTRIES:,} evenly spaced entries of the output, over all calls of the iteration in training mode"
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

    def called(self, moment: Moment, place: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Add a call."""
        values = first_tensor(output)
        if values is None or not values.is_floating_point() or not values.numel():
            return
        part = spaced(local(values))
        size = torch.linalg.vector_norm(part, 1, dtype=torch.float32)
        zero = part.numel() - torch.count_nonzero(part)
        if size.device.type == "cpu" and bool(size.isfinite()):
            bad = torch.zeros((), dtype=torch.int64)
        else:
            bad = (~part.isfinite()).sum()
        sums = torch.stack([zero.to(torch.float32), size, bad.to(torch.float32)])
        held: dict[str, tuple[Tensor, int]] = moment.extra.setdefault(ZERO, {})
        before = held.get(place)
        held[place] = (
            sums if before is None else before[0] + sums,
            part.numel() + (0 if before is None else before[1]),
        )

    def ends(self, moment: Moment) -> None:
        """Shares and means."""
        held: dict[str, tuple[Tensor, int]] = moment.extra.pop(ZERO, {})
        for place, (sums, count) in held.items():
            column = self.column("module", place)
            for table, value in zip((ZERO, MEAN, BAD), sums / count, strict=True):
                moment.pack.add(table, (column,), value)


class States(Measure):
    """The last state that a recurrent module returned in the iteration."""

    tables = (
        About(
            name=STATE, title="norm of the last state", scale="log", column=("state", "state"),
            formula="sqrt(mean over the batch of ‖state after the last step‖²)",
        ),
    )  # fmt: skip

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
            norms = torch.linalg.vector_norm(held, dim=(1, 2), dtype=torch.float32) / math.sqrt(held.shape[1])
            names = [f"{place}.{layer_name(n, stack.directions)} {part}" for n in range(len(norms))]
            moment.pack.add(STATE, [self.column("state", name) for name in names], norms)


def layer_name(number: int, directions: int) -> str:
    """Of a layer and direction by its place among the states: "l0", "l0.reverse"."""
    return f"l{number // directions}" + (".reverse" if number % directions else "")


def first_tensor(output: Any) -> Tensor | None:
    """The first tensor in what a module returned."""
    if isinstance(output, Tensor):
        return output
    if hasattr(output, "data") and isinstance(output.data, Tensor):
        return output.data  # a packed sequence
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, (tuple, list)) else ()
    return next((found for one in parts if (found := first_tensor(one)) is not None), None)


def spaced(values: Tensor) -> Tensor:
    """At most MOST_ENTRIES entries: every n-th, n chosen to share no factor with the last axis, so that all its
    positions take part. Of a tensor with gaps in memory the first sample."""
    if not values.is_contiguous():
        values = values[0] if values.dim() > 1 and values.numel() > MOST_ENTRIES else values
        values = values.contiguous()
    step = -(-values.numel() // MOST_ENTRIES)
    while step > 1 and math.gcd(step, values.shape[-1]) > 1:
        step += 1
    return values.view(-1)[::step]
