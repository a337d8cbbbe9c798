"""What a file of a kept iteration has, checked: it may come from anywhere. Nothing in it is unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from inspector.capture.spike_files import metadata_of
from inspector.engine.errors import InputError
from inspector.engine.watch.kept.call_form import of_form

MOST_CALLS = 256


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the model.

    Attributes:
        module: the name of the module that was called, "" for the model itself.
        args, kwargs: what it was called with. random: state of the generator of each device before it.
        gradient: ∂L/∂output, of the first tensor that it returned; None where none was kept.
        training: whether it was in training mode. autocast: precision by kind of device.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    random: Mapping[torch.device, Tensor]
    gradient: Tensor | None
    training: bool = True
    module: str = ""
    autocast: Mapping[str, torch.dtype] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptStep:
    """An iteration.

    Attributes:
        parameters: by name, as they were before the step; buffers: of the last snapshot. exact: whether the parameters
            are those of this iteration. snapshot: the iteration of which the buffers are (and else the parameters).
        evaluation: names of modules in evaluation mode.
    """

    path: Path
    iteration: int
    text: str
    calls: tuple[Call, ...]
    parameters: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]
    exact: bool
    snapshot: int | None
    evaluation: frozenset[str] | None


def read_step(path: Path) -> KeptStep:
    """Read a file. Raises InputError with what is wrong with it."""
    try:
        about = metadata_of(path)
        with safe_open(path, "pt") as file:  # no code is run: safetensors has numbers only
            named = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except Exception as problem:  # noqa: BLE001 - safetensors has exceptions of its own for what it cannot read
        raise InputError(f"{path} is no iteration that a watched training kept ({_line(problem)}).") from None
    named = {name: _laid_out(one, about.get("strides"), name) for name, one in named.items()}
    iteration = int(about["iteration"])
    try:
        calls = _calls(about, named, iteration)
    except (RuntimeError, ValueError, TypeError, AttributeError) as problem:
        raise InputError(f"{path.name} describes no calls of a model ({_line(problem)}).") from None
    if not calls:
        raise InputError(f"{path.name} kept no call of the model in iteration {iteration}: nothing can be run again.")
    exact = about.get("parameters before the step") is True
    before = _under(named, "before/")
    snapshot = about.get("snapshot")
    modes = about.get("in evaluation mode")
    return KeptStep(
        path, iteration, str(about.get("text", ""))[:500], calls, {**_under(named, "snapshot/parameters/"), **before},
        _under(named, "snapshot/buffers/"), exact, snapshot if type(snapshot) is int else None,
        frozenset(map(str, modes)) if isinstance(modes, list) else None,
    )  # fmt: skip


def _calls(about: dict[str, Any], named: Mapping[str, Tensor], iteration: int) -> tuple[Call, ...]:
    told = about.get("calls")
    plain = told.get(str(iteration), {}) if isinstance(told, dict) else {}
    plain = plain if isinstance(plain, dict) else {}
    found = []
    for number in range(MOST_CALLS):
        lead = f"call {number}"
        own = _under(named, f"iteration {iteration}/{lead}/")
        if not own:
            break
        found.append(_call(own, {key.removeprefix(f"{lead}/"): one for key, one in plain.items()}, number))
    return tuple(found)


def _call(own: Mapping[str, Tensor], plain: Mapping[str, Any], number: int) -> Call:
    lost: list[str] = []
    form = plain.get("form")
    form = form if isinstance(form, dict) else _form_by_names(own)
    args = of_form(form.get("args"), own, "args", lost.append)
    kwargs = of_form(form.get("kwargs"), own, "kwargs", lost.append)
    if lost:
        raise InputError(
            f"Call {number} of the model was given {', '.join(lost[:4])}, which is not kept: it cannot be made again."
        )
    random = {
        torch.device("cpu" if name == "random" else name.removeprefix("random ")): state
        for name, state in own.items()
        if name.partition(" ")[0] == "random"
    }
    told = plain.get("autocast")
    autocast = {
        str(device): dtype
        for device, name in (told.items() if isinstance(told, dict) else ())
        if isinstance(dtype := getattr(torch, str(name), None), torch.dtype)
    }
    module = plain.get("module", "")
    return Call(
        tuple(args or ()), dict(kwargs or {}), random, own.get("output gradient"), plain.get("training") is not False,
        module if isinstance(module, str) else "", autocast,
    )  # fmt: skip


def _form_by_names(own: Mapping[str, Tensor]) -> dict[str, Any]:
    """Of a file without forms: the tensors that the model was called with, nothing else."""
    count = sum(1 for n in range(MOST_CALLS) if f"args/{n}" in own)
    names = [name.removeprefix("kwargs/") for name in own if name.startswith("kwargs/")]
    return {"args": {"tuple": [{"tensor": None}] * count}, "kwargs": {"dict": {n: {"tensor": None} for n in names}}}


def _laid_out(tensor: Tensor, strides: Any, name: str) -> Tensor:
    """The tensor in the layout that it had, where that is one without gaps: a permutation of its dims."""
    told = strides.get(name) if isinstance(strides, dict) else None
    if not isinstance(told, list) or len(told) != tensor.dim() or not all(type(one) is int for one in told):
        return tensor
    order = sorted(range(tensor.dim()), key=lambda dim: (-told[dim], dim))
    laid = tensor.permute(order).contiguous().permute([order.index(dim) for dim in range(tensor.dim())])
    return laid if list(laid.stride()) == told else tensor


def _under(named: Mapping[str, Tensor], lead: str) -> dict[str, Tensor]:
    return {name.removeprefix(lead): one for name, one in named.items() if name.startswith(lead)}


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:200]
