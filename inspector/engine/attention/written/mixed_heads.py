"""Heads whose weights are mixed before they multiply values: A'_g = Σ_h A_h P_hg (talking heads, Shazeer 2020)."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.attention.written.contraction import Contraction, Operand
from inspector.engine.attention.written.facts import Facts, FactTable, Origin


def note_mixed(table: FactTable, contraction: Contraction, known: Facts, origin: Origin) -> None:
    """Note that the result of a contraction may be weights again: the left operand is a softmax, whose own axis stays.

    A key is masked in the mixture where it is in every head.
    """
    left, out = contraction.left, contraction.out
    own = left.axes[origin.axis]
    if (
        origin.kind != "softmax"
        or own not in out.axes
        or any(axis not in left.axes + contraction.right.axes for axis in out.axes)
    ):
        return
    masked = None if known.masked is None else _in_every_head(known.masked.expand(left.tensor.shape), contraction)
    mixed = Origin(
        "mixed", origin.place, origin.module, tuple(out.tensor.shape), out.axes.index(own), origin.features,
        origin.fixed, parts=(origin,),
    )  # fmt: skip
    table.note(out.tensor, Facts(masked=masked, origin=mixed))


def _in_every_head(masked: Tensor, contraction: Contraction) -> Tensor:
    left, out = contraction.left, contraction.out
    summed = [number for number, axis in enumerate(left.axes) if axis not in out.axes]
    every = masked.all(tuple(summed)) if summed else masked
    kept = Operand(every, "".join(axis for axis in left.axes if axis in out.axes))
    ordered = kept.ordered("".join(axis for axis in out.axes if axis in kept.axes))
    sizes = [kept.size(axis) if axis in kept.axes else 1 for axis in out.axes]
    return ordered.reshape(sizes).expand(out.tensor.shape)
