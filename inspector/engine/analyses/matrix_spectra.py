"""Singular values and eigenvalues of one matrix, and their channels."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe

SOURCE = "Pascanu, Mikolov & Bengio 2013; Arjovsky, Shah & Bengio 2016; Henrici 1962"


def write_spectra(place: str, symbol: str, module: str, singular: Tensor, eigen: Tensor, emit: Emitter) -> None:
    """Write `PLACE/singular_values` (rank,) and `PLACE/eigenvalues` (eigenvalue, part) of a matrix, by its symbol."""
    about = Describe(
        kind="spectrum", compare="separate",
        title=f"{symbol}: singular values", formula=f"σ_i({symbol}); all 1: orthogonal", source=SOURCE, scale="log",
    )  # fmt: skip
    emit.array(
        about.channel(f"{place}/singular_values", ("rank",), (len(singular),), "float64", module=module), singular
    )
    about = Describe(
        kind="spectrum", compare="separate",
        title=f"{symbol}: eigenvalues", formula=f"det({symbol} − λI) = 0, by |λ|",
        source=SOURCE, labels={"part": ("re", "im")},
    )  # fmt: skip
    emit.array(
        about.channel(f"{place}/eigenvalues", ("eigenvalue", "part"), tuple(eigen.shape), "float64", module=module),
        eigen,
    )


def spectra(matrix: Tensor) -> tuple[Tensor, Tensor, dict[str, float]]:
    """(singular values (h,), eigenvalues (h, 2) by modulus, {name: number}) of one matrix (h, h), in float64."""
    matrix = matrix.cpu().double()
    singular = torch.linalg.svdvals(matrix)
    values = torch.linalg.eigvals(matrix)
    values = values[values.abs().argsort(descending=True)]
    moduli = values.abs()
    beyond = (singular.square().sum() - moduli.square().sum()).clamp(min=0)  # rounding may leave −1e-16
    identity = torch.eye(len(matrix), dtype=matrix.dtype)
    numbers = {
        "spectral_radius": float(moduli[0]),
        "spectral_norm": float(singular[0]),
        "non_normality": float(beyond.sqrt()),
        "orthogonality_defect": float((matrix.T @ matrix - identity).norm()),
    }
    return singular, torch.view_as_real(values), numbers
