"""The model of a folder with its weights, and the report of how they fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from inspector.engine.contracts import State
from inspector.engine.errors import InputError
from inspector.engine.opening.checkpoint_matching import not_finite, shape_in
from inspector.engine.opening.hugging_face.library import FROM_DISK, one_line
from inspector.engine.registries import LOADERS
from inspector.engine.wording import text_of
from inspector.records import CheckpointReport, Mismatch
from inspector.records.plain_text import shortened

LOADER = "hugging-face"
DTYPES = ("float32", "float64", "bfloat16", "float16", "auto")


def read_state(folder: Path) -> State:
    """The tensors of a folder. Raises InputError where it has none."""
    loader = LOADERS[LOADER]
    if not loader.sniff(folder, b""):
        raise InputError(
            f"{folder} has a config.json and no weights beside it; expected model.safetensors or pytorch_model.bin, "
            "whole or in several files with an index."
        )
    return loader.load(folder)


def read_config(transformers: Any, folder: Path, model_type: str) -> Any:
    """The configuration as transformers understands it. Raises InputError for a type of model that it lacks."""
    try:
        return transformers.AutoConfig.from_pretrained(str(folder), **FROM_DISK)
    except Exception as fault:  # noqa: BLE001 - its checks raise errors of many classes
        if model_type not in transformers.CONFIG_MAPPING:
            raise InputError(
                f"{folder} is of the model type {shortened(text_of(model_type), 40)!r}, which transformers "
                f"{transformers.__version__} does not have."
            ) from None
        raise InputError(f"The config.json of {folder} is not one of transformers' ({one_line(fault)}).") from None


def class_of(transformers: Any, folder: Path, config: Any, asked: str) -> Any:
    """The class of the model: the one asked for, else the first of config.architectures, else the type's own.

    Raises InputError where transformers has none of that name.
    """
    named = asked or next(iter(config.architectures or ()), "")
    if not named:
        return _plain_class(transformers, folder, config)
    found = getattr(transformers, named, None) if named.isidentifier() else None
    if not isinstance(found, type) or not issubclass(found, transformers.PreTrainedModel):
        raise InputError(
            f"{folder} has the architecture {shortened(text_of(named), 60)!r}, which transformers "
            f"{transformers.__version__} "
            "does not have."
        )
    return found


def _plain_class(transformers: Any, folder: Path, config: Any) -> Any:
    try:
        return transformers.MODEL_MAPPING[type(config)]
    except KeyError:
        raise InputError(
            f"The config.json of {folder} names no architecture, and {type(config).__name__} has no model of its own."
        ) from None


def dtype_of(config: Any, asked: Any, device: str) -> torch.dtype:
    """The type of the weights: the one asked for, else float32 on the CPU and the folder's own elsewhere.

    Raises InputError for an unknown one.
    """
    name = asked or ("float32" if device == "cpu" else "auto")
    if name not in DTYPES:
        raise InputError(
            f"The dtype asked for is {shortened(text_of(name), 40)!r}; expected one of {', '.join(DTYPES)}."
        )
    own = getattr(config, "dtype", None) or getattr(config, "torch_dtype", None)
    if name == "auto":
        name = str(own or "float32").removeprefix("torch.")
    found: torch.dtype = getattr(torch, name) if name in DTYPES else torch.float32
    return found


def build(kind: Any, config: Any, state: State, dtype: torch.dtype, folder: Path) -> tuple[Any, CheckpointReport]:
    """A model of a class with the tensors that fit it. transformers renames what older releases named otherwise.

    Raises InputError where transformers cannot build it.
    """
    given = set(state.tensors)
    try:
        model, found = kind.from_pretrained(
            None, config=config, state_dict=dict(state.tensors), dtype=dtype, ignore_mismatched_sizes=True,
            output_loading_info=True, **FROM_DISK,
        )  # fmt: skip
    except Exception as fault:  # noqa: BLE001 - a configuration may ask for anything: kernels that are not installed, widths that do not divide
        raise InputError(f"transformers cannot build {kind.__name__} of {folder} ({one_line(fault)}).") from None
    if not given.intersection(model.state_dict()) and len(found["missing_keys"]) >= len(model.state_dict()):
        raise InputError(f"The weights in {folder} fit none of the tensors of {kind.__name__}, so nothing was loaded.")
    return model, report_of(model, found, state, folder)


def report_of(model: nn.Module, found: Mapping[str, Any], state: State, folder: Path) -> CheckpointReport:
    """transformers' account of the loading, as a report like that of any checkpoint.

    Tensors that are left over do not count as a misfit: many folders hold another head beside the one that their
    config.json names. Counter-example: a config.json with fewer layers than were trained, which the report tells too.
    """
    own = model.state_dict()
    mismatches, total = (*_mismatches(found, own), *not_finite(state.tensors)), len(own)
    lacking = sum(one.problem in ("missing", "shape") for one in mismatches)
    return CheckpointReport(
        path=str(folder), layout=state.layout, removed_prefix="", matched=total - lacking, total=total,
        fits=not lacking, mismatches=mismatches, step=state.step,
    )  # fmt: skip


def _mismatches(found: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[Mismatch]:
    for name in sorted(found["missing_keys"]):
        yield Mismatch(name=name, problem="missing", detail=shape_in(own[name]) if name in own else "")
    yield from (Mismatch(name=name, problem="unexpected") for name in sorted(found["unexpected_keys"]))
    for name, given, wanted in sorted(found["mismatched_keys"], key=lambda one: str(one[0])):
        yield Mismatch(name=name, problem="shape", detail=f"checkpoint {tuple(given)}, model {tuple(wanted)}")
