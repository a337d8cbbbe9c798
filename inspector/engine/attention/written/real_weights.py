"""Weights that are whole numbers (of one_hot), or complex beside complex values, as real ones."""

from __future__ import annotations

from dataclasses import replace

import torch

from inspector.engine.attention.written.contraction import Contraction, Operand
from inspector.engine.attention.written.facts import FactTable


def with_real_weights(table: FactTable, contraction: Contraction) -> Contraction:
    """A contraction whose left operand has floating-point numbers. Complex ones with an imaginary part stay."""
    weights = contraction.left.tensor
    if weights.is_floating_point():
        return contraction
    if not weights.is_complex():
        return replace(contraction, left=Operand(weights.to(contraction.out.tensor.dtype), contraction.left.axes))
    if bool(weights.detach().imag.any()):
        return contraction
    with torch.enable_grad():  # a model's own graph tells of which sequence the keys are
        real = weights.real.clone()
    known = table.of(weights)
    if known is not None:
        table.note(real, known)
    return replace(contraction, left=Operand(real, contraction.left.axes))
