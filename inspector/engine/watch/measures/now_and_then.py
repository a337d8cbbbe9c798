"""Histograms of exponents, and spectra of recurrent weights: recorded now and then, over axes of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.cells.family import sequence_family, step_family
from inspector.engine.watch.gradients import BY_PARAMETER
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters, local, plain_name
from inspector.engine.watch.tables import About, on_axis

EVERY = 10
"""Recorded iterations from one time to the next; the first one always."""
LEAST, MOST = -40, 15
BINS = (
    "0", f"2^{LEAST} or less", *(f"2^{n}" for n in range(LEAST + 1, MOST)), f"2^{MOST} or more", "not finite",
)  # fmt: skip
GRADIENTS, WEIGHTS = "parameters:gradient/exponents", "parameters:weight/exponents"
SINGULAR, ORTHOGONAL = "modules:recurrent/singular", "modules:recurrent/orthogonality"
WIDEST = 2048
"""Recurrent matrices up to this width are decomposed."""


class NowAndThen(Measure):
    """Does its work at every tenth recorded iteration."""

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._count = 0

    def ends(self, moment: Moment) -> None:
        """Count recorded iterations."""
        self._count += 1
        if self._count % EVERY == 1:
            self.now(moment)

    def now(self, moment: Moment) -> None:
        """It is time."""


class Exponents(NowAndThen):
    """How many entries have which binary exponent."""

    tables = tuple(
        on_axis(
            About(
                name=name, title=f"exponents of {what}", kind="histogram", unit="entries", column=BY_PARAMETER,
                bins=BINS, formula="number of entries x with floor(log2 |x|) = n", dtype="float64",
            ),
            "histograms",
        )
        for name, what in ((GRADIENTS, "gradients"), (WEIGHTS, "weights"))
    )  # fmt: skip

    def now(self, moment: Moment) -> None:
        """Gradients as they are after the step (after clipping), and weights."""
        counted = set(self.counted())
        for column, tensor in enumerate(self.parameters.tensors):
            moment.put(WEIGHTS, column, exponents(local(tensor)).tolist())
            if tensor.grad is not None and column in counted:
                moment.put(GRADIENTS, column, exponents(local(tensor.grad)).tolist())


def exponents(values: Tensor) -> Tensor:
    """(bins,) counts in the order of BINS. Exponents are read from the bits of float32, so they are exact; numbers that
    are denormal there count as the smallest."""
    bits = values.detach().reshape(-1).float().view(torch.int32)
    exponent = ((bits >> 23) & 255) - 127
    places = (exponent.clamp(LEAST, MOST) - LEAST + 1).where((bits & 0x7FFFFFFF) != 0, 0)
    places = places.where(exponent < 128, len(BINS) - 1)
    return torch.bincount(places.long(), minlength=len(BINS))


class Spectra(NowAndThen):
    """Singular values of every matrix through which a state is fed back."""

    tables = (
        on_axis(
            About(
                name=SINGULAR, title="largest singular value of recurrent weights", column=("statistic", "matrix"),
                formula="σ₁(W)",
            ),
            "spectra",
        ),
        on_axis(
            About(
                name=ORTHOGONAL, title="distance of recurrent weights from orthogonal", column=("statistic", "matrix"),
                formula="‖WᵀW − I‖_F", scale="log",
            ),
            "spectra",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters, model: nn.Module) -> None:
        super().__init__(parameters)
        named = [(plain_name(name) or "model", part) for name, part in model.named_modules()]
        self._recurrent = [(place, part) for place, part in named if sequence_family(part) or step_family(part)]

    def now(self, moment: Moment) -> None:
        """After the step."""
        for place, module in self._recurrent:
            for name, matrix in recurrent_matrices(place, module):
                if max(matrix.shape) > WIDEST or not bool(matrix.isfinite().all()):
                    continue
                column = self.column("matrix", name)
                moment.put(SINGULAR, column, float(torch.linalg.matrix_norm(matrix, 2)))
                gram = matrix.T @ matrix - torch.eye(matrix.shape[1], device=matrix.device)
                moment.put(ORTHOGONAL, column, float(torch.linalg.matrix_norm(gram)))


def recurrent_matrices(place: str, module: nn.Module) -> list[tuple[str, Tensor]]:
    """(name, matrix (h, h) in float32) of every gate of every layer and direction."""
    sequence = sequence_family(module)
    family: Any = sequence or step_family(module)
    weights = family.weights(module)
    if sequence is None:
        layers = [("", 0, 0)]
    else:
        stack = sequence.stack(module)
        layers = [
            (f".l{n}" + (".reverse" if d else ""), n, d) for n in range(stack.layers) for d in range(stack.directions)
        ]
    found = []
    for name, layer, direction in layers:
        for one in family.from_module(module, weights, layer, direction).recurrent_weights():
            found.append((f"{place}{name} {one.symbol}", one.matrix.detach().float()))
    return found
