"""Parametrised weights in a checkpoint, folded to the plain weights: weight norm and spectral norm.

Formulas: w = g v / ‖v‖ (Salimans and Kingma 2016), norms over every axis on which g has length 1;
w = w₀ / (uᵀ W₀ v) with the stored power-iteration vectors, as torch uses in eval mode (Miyato et al. 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor

Parts = tuple[str, ...]
NEW = "parametrizations."


def fold(tensors: dict[str, Tensor], own: dict[str, Tensor]) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """The tensors with every parametrised weight folded that the model has as a plain weight, and the names folded."""
    out, folded = dict(tensors), []
    for name, parts, make in _found(tensors):
        if name in own and name not in tensors and not any(part in own for part in parts):
            weight = make(*(tensors[part] for part in parts))
            if weight is not None and weight.shape == own[name].shape:
                folded.append(name)
                out[name] = weight
                for part in parts:
                    out.pop(part, None)
    return out, tuple(folded)


def _found(tensors: dict[str, Tensor]) -> Iterator[tuple[str, Parts, Callable[..., Tensor | None]]]:
    """(plain name, names of its parts, how to combine them) in both of torch's spellings."""
    for key in tensors:
        place, mark, rest = key.rpartition(NEW)
        weight, _, last = rest.rpartition(".")
        stem = f"{place}{NEW}{weight}"
        if mark and last == "original0":
            yield from _whole(tensors, place + weight, (key, f"{stem}.original1"), weight_norm)
        elif mark and last == "original":
            yield from _whole(tensors, place + weight, (key, f"{stem}.0._u", f"{stem}.0._v"), spectral_norm)
        elif key.endswith("_g"):
            yield from _whole(tensors, key[:-2], (key, f"{key[:-2]}_v"), weight_norm)
        elif key.endswith("_orig"):
            stem = key.removesuffix("_orig")
            yield from _whole(tensors, stem, (key, f"{stem}_u", f"{stem}_v"), spectral_norm)


def _whole(
    tensors: dict[str, Tensor], name: str, parts: Parts, make: Callable[..., Tensor | None]
) -> Iterator[tuple[str, Parts, Callable[..., Tensor | None]]]:
    if all(part in tensors for part in parts):
        yield name, parts, make


def weight_norm(g: Tensor, v: Tensor) -> Tensor | None:
    """g v / ‖v‖; g is a scalar (one norm for all) or has v's axes with length 1 where the norm is taken."""
    if g.dim() == 0:
        g = g.reshape([1] * v.dim())
    if g.dim() != v.dim() or any(a not in (1, b) for a, b in zip(g.shape, v.shape, strict=True)):
        return None
    axes = [axis for axis, length in enumerate(g.shape) if length == 1]
    norms: Tensor = v.norm(dim=axes, keepdim=True) if axes else v.abs()
    return v * (g / norms)


def spectral_norm(original: Tensor, u: Tensor, v: Tensor) -> Tensor | None:
    """original / σ, σ = uᵀ W v with W the weight as a matrix whose rows are the axis that u belongs to."""
    for axis in range(original.dim()):
        matrix = original.movedim(axis, 0).reshape(original.shape[axis], -1)
        if matrix.shape == (u.numel(), v.numel()):
            weight: Tensor = original / (u @ matrix @ v)
            return weight
    return None
