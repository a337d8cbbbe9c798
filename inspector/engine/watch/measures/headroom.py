"""How much room float16 has left in a training: outputs near its largest number, gradients below its smallest ones.

A gradient that was computed in float16 may lie in a parameter of float32 (autocast). It is known by its entries: all of
them are numbers of float16, which of entries that were computed in float32 one in thousands is. Looked for where a
module has returned numbers of float16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.watch.backward_calls import Scaled
from inspector.engine.watch.gradients import BY_PARAMETER
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.measures.activations import first_tensor
from inspector.engine.watch.parameters import Parameters, local
from inspector.engine.watch.tables import About

USED, SUBNORMAL, ZERO = (
    "modules:activation/float16_used", "parameters:gradient/float16_subnormal", "parameters:gradient/float16_zero",
)  # fmt: skip
LARGEST, NORMAL = 65504.0, 2.0**-14
FEWEST, MOST = 8, 4096
"""Entries of a gradient: fewer may be numbers of float16 by chance; so many are looked at, evenly spaced."""
EVERY = 4
"""Recorded iterations from one time to the next, where no module is read that gives float16."""
READ = 2
"""Of iterations in which one is read, from one time to the next: counted by themselves, as others never coincide with
them where every second iteration is recorded."""
_METHOD = (
    f"of gradients whose entries are all numbers of float16, up to {MOST:,} evenly spaced ones, after the first "
    f"backward pass of every {READ}nd iteration in which modules are read (without such that give float16, of every "
    f"{EVERY}th recorded one), with the factor of a GradScaler"
)


class Headroom(Measure):
    """Of outputs of modules as of gradients."""

    tables = (
        About(
            name=USED, title="largest activation beside float16's largest number", scale="log", limits=(0, 1),
            column=("module", "module"), formula="max |a| / 65504 of outputs in float16; −∞ and ±65504, which mask, "
            "are left out",
        ),
        About(
            name=SUBNORMAL, title="gradients with fewer bits than float16 has", limits=(0, 1), column=BY_PARAMETER,
            formula="share of entries ≠ 0 with |g| < 2⁻¹⁴", method=_METHOD,
        ),
        About(
            name=ZERO, title="gradients in float16 that are 0", limits=(0, 1), column=BY_PARAMETER,
            formula="share of entries = 0", method=_METHOD,
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._seen = self._read = 0

    def reads(self, module: nn.Module) -> bool:
        """Every module."""
        return True

    def called(self, moment: Moment, place: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """The largest of a call's output."""
        values = first_tensor(output)
        if values is not None and values.dtype == torch.float16 and values.numel():
            moment.extra.setdefault(USED, {}).setdefault(place, []).append(largest(local(values)))

    def ends(self, moment: Moment) -> None:
        """The largest of all calls."""
        for place, found in moment.extra.pop(USED, {}).items():
            moment.pack.add(USED, [self.column("module", place)], torch.stack(found).max() / LARGEST)

    def backward_ended(self, moment: Moment, roots: Sequence[Tensor], scaled: Scaled | None) -> None:
        """After the first pass: sums of several are no numbers of float16."""
        if SUBNORMAL in moment.extra:
            return
        if USED in moment.extra:
            moment.extra[SUBNORMAL] = self._read % READ == 0
            self._read += 1
        else:
            moment.extra[SUBNORMAL] = self._seen % EVERY == 0
            self._seen += 1
        if not moment.extra[SUBNORMAL]:
            return
        for column in self.counted():
            gradient = self.parameters.tensors[column].grad
            if gradient is None or gradient.layout != torch.strided or gradient.numel() < FEWEST:
                continue
            if gradient.dtype == torch.float16 or (gradient.dtype == torch.float32 and USED in moment.extra):
                shares = of_float16(local(gradient))
                moment.pack.add(SUBNORMAL, [column], shares[0])
                moment.pack.add(ZERO, [column], shares[1])


def largest(values: Tensor) -> Tensor:
    """() float32: the largest |value|; infinity only where one is above 0, NaN left out."""
    size = values.detach().abs().float()
    size = torch.where((values == -torch.inf) | (size == LARGEST) | size.isnan(), 0.0, size)
    return size.amax()


def of_float16(gradient: Tensor) -> Tensor:
    """(2,) share of entries ≠ 0 below the smallest normal number (NaN without any), share of zeros; both NaN where the
    entries are no numbers of float16, as where they were computed in another precision."""
    flat = gradient.detach().reshape(-1)
    some = flat[:: max(1, flat.numel() // MOST)][:MOST].float()
    own = (some.half().float() == some).all()
    there = some != 0
    small = ((some.abs() < NORMAL) & there).sum() / there.sum()
    return torch.where(own, torch.stack((small, (~there).float().mean())), torch.nan)
