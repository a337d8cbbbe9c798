"""Fitting a checkpoint to a model: prefixes removed where that makes it fit, and a report before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from inspector.engine.loaders import State
from inspector.records import CheckpointReport, Mismatch

PREFIXES = ("module.", "_orig_mod.", "model.", "net.", "network.", "ema_model.", "encoder_model.")
MAX_ROUNDS = 4


@dataclass(slots=True)
class Plan:
    """The tensors that would be loaded, by the model's own names."""

    tensors: dict[str, Tensor]

    def apply(self, model: nn.Module) -> None:
        """Copy them into the model; everything else keeps its value."""
        model.load_state_dict(self.tensors, strict=False)


def fit(model: nn.Module, state: State, path: Path) -> tuple[CheckpointReport, Plan]:
    """What a checkpoint would do to a model, and the plan to do it. Nothing is changed yet."""
    own = model.state_dict()
    found, removed = _without_prefix(state.tensors, own)
    mismatches: list[Mismatch] = []
    good: dict[str, Tensor] = {}
    for name, tensor in found.items():
        if name not in own:
            mismatches.append(Mismatch(name=name, problem="unexpected", detail=f"shape {tuple(tensor.shape)}"))
        elif tensor.shape != own[name].shape:
            detail = f"checkpoint {tuple(tensor.shape)}, model {tuple(own[name].shape)}"
            mismatches.append(Mismatch(name=name, problem="shape", detail=detail))
        else:
            good[name] = tensor
            mismatches += _remarks(name, tensor, own[name])
    for name in own:
        if name not in found:
            twin = _tied(model, name, good)
            problem, detail = ("tied", f"shares its values with {twin}") if twin else ("missing", "")
            mismatches.append(Mismatch(name=name, problem=problem, detail=detail))
    bad = any(m.problem in ("missing", "unexpected", "shape") for m in mismatches)
    report = CheckpointReport(
        path=str(path), layout=state.layout, removed_prefix=removed, matched=len(good), total=len(own), fits=not bad,
        mismatches=tuple(mismatches), step=state.step,
    )  # fmt: skip
    return report, Plan(good)


def _remarks(name: str, tensor: Tensor, own: Tensor) -> list[Mismatch]:
    remarks = []
    if tensor.dtype != own.dtype:
        remarks.append(Mismatch(name=name, problem="dtype", detail=f"checkpoint {tensor.dtype}, model {own.dtype}"))
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        count = int((~torch.isfinite(tensor)).sum())
        remarks.append(Mismatch(name=name, problem="non-finite", detail=f"{count} of {tensor.numel()} values"))
    return remarks


def _tied(model: nn.Module, name: str, good: dict[str, Tensor]) -> str:
    """Another name of the same parameter that the checkpoint does hold, or ""."""
    named = dict(model.named_parameters(remove_duplicate=False))
    mine = named.get(name)
    if mine is None:
        return ""
    return next((other for other in good if other != name and named.get(other) is mine), "")


def _without_prefix(tensors: dict[str, Tensor], own: dict[str, Tensor]) -> tuple[dict[str, Tensor], str]:
    """The names with the prefixes removed (or the model's own added) that make the most of them fit."""
    best, removed = tensors, ""
    score = _score(tensors, own)
    current, so_far = tensors, ""
    for _ in range(MAX_ROUNDS):
        candidates = {prefix: _strip(current, prefix) for prefix in PREFIXES if any(prefix in name for name in current)}
        if not candidates:
            break
        prefix, current = max(candidates.items(), key=lambda item: _score(item[1], own))
        so_far += prefix
        if _score(current, own) > score:
            best, removed, score = current, so_far, _score(current, own)
    return best, removed


def _strip(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Every name without the first occurrence of the prefix, at its beginning or after a dot."""
    out = {}
    for name, tensor in tensors.items():
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
        elif f".{prefix}" in name:
            name = name.replace(f".{prefix}", ".", 1)
        out[name] = tensor
    return out if len(out) == len(tensors) else tensors


def _score(tensors: dict[str, Tensor], own: dict[str, Tensor]) -> int:
    """How many tensors fit by name and shape."""
    return sum(name in own and own[name].shape == tensor.shape for name, tensor in tensors.items())
