"""Whether masks of attention show padding alone and hide what is real: a padding mask of the opposite meaning.

What is padding is known where the model declares an id for it, as in padding.py; the mask is that of a call of
`F.scaled_dot_product_attention` (see attending.py), or the `key_padding_mask` of torch's own attention.

Index letters: b sequence, q query, k key.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.model.tensors_within import tensors_within
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.measures.padding import at_ends, padding_ids
from inspector.engine.watch.parameters import Parameters
from inspector.engine.watch.tables import PLACE, About

SHOWN, COUNT = f"{PLACE}:padding/keys_shown", f"{PLACE}:padding/sequences_masked"
TIMES = 8
"""Recorded iterations that are looked at: a mask is made by the same code in each."""
HIDES = -1000.0
"""An added number below which a key counts as hidden, as for drawn maps. Counter-example: an added bias by distance
that falls lower; the nearest key of some query has 0, so it counts as shown."""


class HiddenKeys(Measure):
    """Of models that read ids (b, t), for attention whose keys are the steps of such an input."""

    tables = (
        About(
            name=SHOWN, title="sequences of which attention may read the padding alone", limits=(0, 1),
            formula="of the sequences with padding and a mask that hides some key: the share whose mask shows every "
            "key that is padding and no other, for the attention where that is largest",
            method=f"of the first call of the model, in {TIMES} recorded iterations with such a mask at most",
        ),
        About(name=COUNT, title="sequences with padding and a mask", formula="those that the share is of"),
    )  # fmt: skip

    def __init__(self, parameters: Parameters, model: nn.Module) -> None:
        super().__init__(parameters)
        self._ids, self._made = padding_ids(model), 0
        self._padding: list[Tensor] = []
        self._found: list[tuple[int, int]] = []

    def forward_begins(self, moment: Moment, model: nn.Module, args: Any, kwargs: Any) -> None:
        """Find the padding in what is read."""
        self._padding, self._found = [], []
        if not self._ids or self._made >= TIMES or SHOWN in moment.extra:
            return
        whole = [one for one in tensors_within((*args, *kwargs.values()))
                 if one.dim() == 2 and one.dtype in (torch.int64, torch.int32)]  # fmt: skip
        self._padding = [lies for lies in (at_ends(one, self._ids) for one in whole) if bool(lies.any())]

    def masked(self, mask: Tensor, *, hides: bool = False) -> None:
        """A mask (b, …, q, k) or (b, k) of one attention: True where a key is shown (where it is hidden: `hides`), or
        a number that is added."""
        if not self._padding:
            return
        shown = (mask > HIDES) if mask.is_floating_point() else ~mask if hides else mask
        keys = shown.flatten(1, -2).any(1) if shown.dim() > 2 else shown
        padding = [lies for one in self._padding for lies in (one, one.T) if lies.shape == keys.shape]
        if padding:
            rows = torch.stack([lies.any(1) for lies in padding]).all(0) & ~keys.all(1)
            turned = torch.stack([(lies == keys).all(1) for lies in padding]).all(0) & rows
            self._found.append((int(turned.sum()), int(rows.sum())))

    def reads(self, module: nn.Module) -> bool:
        """Torch's own attention."""
        return isinstance(module, nn.MultiheadAttention)

    def called(self, moment: Moment, place: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """The mask that it was given: True hides."""
        mask = args[3] if len(args) > 3 else kwargs.get("key_padding_mask")
        if isinstance(mask, Tensor) and mask.dim() == 2:
            self.masked(mask.detach(), hides=True)

    def forward_ended(self, moment: Moment, model: nn.Module, output: Any) -> None:
        """The attention of which most sequences show padding alone."""
        found = [(turned / rows, rows) for turned, rows in self._found if rows]
        self._padding, self._found = [], []
        if found:
            self._made += 1
            moment.extra[SHOWN] = True
            share, rows = max(found)
            moment.put(SHOWN, 0, share)
            moment.put(COUNT, 0, float(rows))
