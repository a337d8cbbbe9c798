"""Fitting a checkpoint to a model: prefixes removed where that makes it fit, and a report before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from inspector.engine.contracts import State
from inspector.engine.errors import InputError
from inspector.engine.opening.parametrizations import fold
from inspector.records import CheckpointReport, Mismatch, counted
from inspector.records.plain_text import shortened
from inspector.records.report import BAD

PREFIXES = ("module.", "_orig_mod.", "model.", "net.", "network.", "ema_model.", "encoder_model.")
MAX_ROUNDS = 4
NAMED = 3
BOOKKEEPING = ("n_averaged",)
"""What torch's AveragedModel adds to a state dict beside the weights."""


@dataclass(slots=True)
class MatchedTensors:
    """The tensors that would be loaded, by the model's own names."""

    tensors: dict[str, Tensor]

    def apply(self, model: nn.Module) -> None:
        """Copy them into the model; everything else keeps its value. Raises InputError if the model rejects them."""
        try:
            model.load_state_dict(self.tensors, strict=False)
        except RuntimeError as problem:  # a model may have its own way of loading
            text = " ".join(str(problem).split())[:200]
            raise InputError(f"The model does not take the checkpoint's tensors: {text}.") from None


def fit(model: nn.Module, state: State, path: Path) -> tuple[CheckpointReport, MatchedTensors]:
    """What a checkpoint would do to a model, and the plan to do it. Nothing is changed yet.

    Raises InputError where not one tensor fits: loading a part of it would load nothing; and where tensors have no
    values.
    """
    _require_values(state.tensors, path)
    own = model.state_dict()
    found, removed, folded = _made_to_fit(state.tensors, own)
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
            problem, detail = ("tied", f"shares its values with {twin}") if twin else ("missing", shape_in(own[name]))
            mismatches.append(Mismatch(name=name, problem=problem, detail=detail))
    bad = any(m.problem in BAD for m in mismatches)
    if bad and not good:
        raise InputError(
            f"{path.name} fits none of the model's {len(own)} tensors, so there is nothing to load. It holds "
            f"{_first(state.tensors)}; the model has {_first(own)}."
        )
    report = CheckpointReport(
        path=str(path), layout=_layout(state, folded), removed_prefix=removed, matched=len(good), total=len(own),
        fits=not bad, mismatches=tuple(mismatches), step=state.step, folded=folded, others=state.others,
    )  # fmt: skip
    return report, MatchedTensors(good)


def shape_in(wanted: Tensor) -> str:
    """What the model has where the checkpoint has nothing; "" of a parameter that has no shape yet."""
    return "" if is_lazy(wanted) else f"model {tuple(wanted.shape)}"


def _require_values(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Raises InputError where tensors were saved on the device meta, which keeps shapes and no values."""
    empty = [name for name, tensor in tensors.items() if tensor.is_meta]
    if empty:
        raise InputError(
            f"{path.name} has {len(empty)} of {counted(len(tensors), 'tensor')} without values, saved on the device "
            f"'meta' (the first: {shortened(empty[0], 60)}); give a checkpoint saved from a model on the CPU or "
            "an accelerator."
        )


def _first(tensors: Mapping[str, Tensor]) -> str:
    """The first names with their shapes."""
    named = [f"{shortened(name, 60)} {tuple(tensor.shape)}" for name, tensor in list(tensors.items())[:NAMED]]
    return ", ".join(named) + (" …" if len(tensors) > NAMED else "") if named else "none"


def _layout(state: State, folded: tuple[str, ...]) -> str:
    """The layout as text, with what was folded and what else the file contains."""
    layout = state.layout
    if folded:
        layout += f", {len(folded)} parametrised weights folded"
    if state.others:
        layout += f"; the file also holds {', '.join(state.others[:4])}"
    return layout


def _remarks(name: str, tensor: Tensor, own: Tensor) -> list[Mismatch]:
    remarks = []
    if tensor.dtype != own.dtype:
        remarks.append(Mismatch(name=name, problem="dtype", detail=f"checkpoint {tensor.dtype}, model {own.dtype}"))
    return [*remarks, *not_finite({name: tensor})]


def not_finite(tensors: Mapping[str, Tensor]) -> list[Mismatch]:
    """One for each tensor that has NaN or infinity, with how many: it is loaded as it is."""
    found = []
    for name, tensor in tensors.items():
        numbers = (tensor.is_floating_point() or tensor.is_complex()) and not tensor.is_meta
        if numbers and not bool(torch.isfinite(tensor).all()):
            count = int((~torch.isfinite(tensor)).sum())
            found.append(Mismatch(name=name, problem="non-finite", detail=f"{count} of {tensor.numel()} values"))
    return found


def _tied(model: nn.Module, name: str, good: dict[str, Tensor]) -> str:
    """Another name of the same parameter that the checkpoint does hold, or ""."""
    named = dict(model.named_parameters(remove_duplicate=False))
    mine = named.get(name)
    if mine is None:
        return ""
    return next((other for other in good if other != name and named.get(other) is mine), "")


def _made_to_fit(tensors: dict[str, Tensor], own: dict[str, Tensor]) -> tuple[dict[str, Tensor], str, tuple[str, ...]]:
    """The tensors with those prefixes removed that make most of them fit, and with parametrised weights folded.

    Returns the tensors, the prefixes removed, and the names of the weights that were folded.
    """
    current, so_far = {name: t for name, t in tensors.items() if name in own or name not in BOOKKEEPING}, ""
    removed, best = "", fold(current, own)
    score = _score(best[0], own)
    for _ in range(MAX_ROUNDS):
        prefixes = {prefix for prefix in PREFIXES if any(prefix in name for name in current)} | _common(current)
        tried = [(prefix, _strip(current, prefix)) for prefix in sorted(prefixes)]
        if not tried:
            break
        prefix, current = max(tried, key=lambda item: _score(fold(item[1], own)[0], own))
        so_far += prefix
        made = fold(current, own)
        if _score(made[0], own) > score:
            best, removed, score = made, so_far, _score(made[0], own)
    return best[0], removed, best[1]


def _common(tensors: dict[str, Tensor]) -> set[str]:
    """The first part of the name that all tensors share, if there is one: a wrapper's own attribute."""
    firsts = {name.partition(".")[0] for name in tensors}
    return {f"{firsts.pop()}."} if len(firsts) == 1 and all("." in name for name in tensors) else set()


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
