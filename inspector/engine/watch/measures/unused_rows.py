"""Parts of a layer that get no gradient at all: one of two, three or four equal blocks of its rows, as gates are laid
out one below the other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from inspector.engine.watch.backward_calls import Scaled
from inspector.engine.watch.gradients import BY_PARAMETER
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters, local
from inspector.engine.watch.tables import About

UNUSED = "parameters:gradient/unused_block"
BLOCKS = (4, 3, 2)
FEWEST_ROWS = 8
"""Of a block: a few rows of rectified units may be dead by chance."""
EVERY = 4
"""Recorded iterations from one time to the next."""


class UnusedRows(Measure):
    """Of the weights of nn.Linear, which compute several things at once where their rows are cut apart afterwards."""

    tables = (
        About(
            name=UNUSED, title="blocks of rows without a gradient", column=BY_PARAMETER,
            formula="0 where every block has one; else 100 k + 10 i + n: of k equal blocks of rows n have a gradient "
            "of exactly 0, the first of them block i (from 0)",
            method=f"every {EVERY}th recorded iteration; blocks of at least {FEWEST_ROWS} rows, k of "
            + ", ".join(map(str, BLOCKS)),
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters, model: nn.Module) -> None:
        super().__init__(parameters)
        self._linear = {id(one.weight) for one in model.modules() if isinstance(one, nn.Linear)}
        self._seen = 0

    def backward_ended(self, moment: Moment, roots: Sequence[Tensor], scaled: Scaled | None) -> None:
        """After each backward pass, so that the last one counts, with all that was accumulated."""
        if UNUSED not in moment.extra:
            moment.extra[UNUSED] = self._seen % EVERY == 0
            self._seen += 1
        if not moment.extra[UNUSED]:
            return
        columns, codes = list[int](), list[Tensor]()
        for column, tensor in enumerate(self.parameters.tensors):
            gradient = tensor.grad
            if id(tensor) in self._linear and gradient is not None and gradient.layout == torch.strided:
                own = local(gradient)
                if own.shape == tensor.shape and (code := unused(own)) is not None:
                    columns.append(column)
                    codes.append(code)
        for device in {one.device for one in codes}:
            there = [n for n, one in enumerate(codes) if one.device == device]
            moment.pack.add(UNUSED, [columns[n] for n in there], torch.stack([codes[n] for n in there]))


def unused(gradient: Tensor) -> Tensor | None:
    """() the code of a gradient (o, i); None where its rows make no blocks."""
    rows = len(gradient)
    kinds = [k for k in BLOCKS if rows % k == 0 and rows // k >= FEWEST_ROWS]
    if not kinds:
        return None
    there = (gradient != 0).any(1)  # NaN is no 0
    code = torch.zeros((), device=gradient.device)
    for k in reversed(kinds):
        empty = ~there.view(k, -1).any(1)
        count = empty.sum()
        first = empty.to(torch.int32).argmax()
        code = torch.where((count > 0) & (count < k), (100 * k + 10 * first + count).float(), code)
    return code
