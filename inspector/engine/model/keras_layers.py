"""Layers of a Keras file: their variables, their configuration, and both as torch's layers have them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inspector.engine.model.keras_child import read_keras
from inspector.engine.model.named_arrays import dotted
from inspector.records.plain_text import shortened

RECURRENT = {"LSTM": 4, "GRU": 3, "SimpleRNN": 1}
Variables = dict[str, Tensor]
RESET_BEFORE = "its reset gate is before the product (reset_after=False), of which torch has no layer"
KNOWN = frozenset({*RECURRENT, "InputLayer", "Embedding", "Dense", "Dropout", "SpatialDropout1D"})
WRAPPERS = ("Bidirectional", "TimeDistributed")
SMALL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where words begin in the name of a class."""
RUN = ("tanh", "sigmoid", "relu", "linear")
"""Activations of layers that are run as Keras has them; `hard_sigmoid` too, where the version is known."""
UNKNOWN_RESET = "it has no bias, and no configuration says where its reset gate is (reset_after)"
ORDINARY = {"activation": ("tanh",), "recurrent_activation": ("sigmoid",)}


@dataclass(frozen=True, slots=True)
class KerasLayers:
    """Of a file: {layer: variables by name}, {layer: configuration} in order, and "2" or "3" where Keras' version is
    told."""

    variables: dict[str, Variables]
    config: dict[str, Any]
    version: str = ""


def read_layers(path: Path) -> KerasLayers:
    """The layers of a file. Raises InputError, and what a damaged archive raises."""
    read = read_keras(path)
    variables: dict[str, Variables] = {}
    for (layer, *rest), tensor in read.variables.items():
        variables.setdefault(layer, {})["/".join(rest) or layer] = tensor
    return KerasLayers(
        variables, _configured(read.config), read.version[:1] if read.version[:2] in ("2.", "3.") else ""
    )


def _configured(config: Any) -> dict[str, Any]:
    """{name of the layer in the file: its configuration}, in order; empty where there is none."""
    layers = config.get("config", {}) if isinstance(config, dict) else {}
    layers = layers.get("layers", []) if isinstance(layers, dict) else []
    found: dict[str, Any] = {}
    for one in layers if isinstance(layers, list) else []:
        if isinstance(one, dict) and isinstance(one.get("config"), dict) and isinstance(one.get("class_name"), str):
            found[str(one["config"].get("name", one["class_name"]))] = one
    return found


@dataclass(slots=True)
class Converted:
    """All variables under the names of a State, hints for rebuilding (`contracts.REBUILDING`), and a name that occurs
    twice."""

    tensors: dict[str, Tensor]
    hints: dict[str, Any]
    twice: str = ""


def converted(read: KerasLayers) -> Converted:
    """The variables in the order of the configuration; without one embeddings first, then recurrent layers."""
    layers, config = read.variables, read.config
    of_file = _by_file(layers, config)
    place_of = {of_file[name]: name for name in of_file}
    order = [place_of[one] for one in config if one in place_of]
    order += sorted((name for name in layers if name not in order), key=lambda name: _usual(name, layers[name]))
    said: dict[str, Any] = {}
    cells: dict[str, Any] = {}
    tensors: dict[str, Tensor] = {}
    twice = ""
    for name in order:
        own = config.get(of_file.get(name, ""), {})
        as_it_is = _cell(layers[name], own, read.version)
        if as_it_is is not None:
            cells[dotted(name)] = as_it_is[0]
        named = (
            as_torch(name, layers[name], own, said)
            if as_it_is is None
            else {f"{dotted(name)}.{part}": one for part, one in as_it_is[1].items()}
        )
        for key, tensor in named.items():
            twice = key if key in tensors else twice
            tensors[key] = tensor
    hints: dict[str, Any] = {"not_run": {}, "remarks": [], "guessed": [], "cells": cells}
    relu = [place for place, one in said.items() if one == "relu"]
    kept = {place: f"{place} is kept as Keras has it: {one}" for place, one in said.items() if one != "relu"}
    plain = [name for name in layers if dotted(name) not in relu and f"{dotted(name)}.weight_hh_l0" in tensors]
    if relu and any(_gates(tensors, name) == 1 for name in plain):
        kept |= {place: f"{place} has relu, where another layer has tanh" for place in relu}
    elif relu:
        hints["nonlinearity"] = "relu"
    if config:
        _cut(config, place_of, kept, hints)
    hints["remarks"] += [f"{why}." for place, why in kept.items() if why not in hints["not_run"].values()]
    if layers and not config:
        hints["guessed"].append("tanh and sigmoid as the activations, which the file does not tell")
    return Converted(tensors, hints, twice)


def _by_file(layers: Mapping[str, Variables], config: Mapping[str, Any]) -> dict[str, str]:
    """{name in the file: name in the configuration}: the same in Keras 2; in Keras 3 the class in small letters, with a
    number for each further one of the class (keras.src.saving.saving_lib)."""
    found, counts = {}, Counter[str]()
    for name, one in config.items():
        own = SMALL.sub("_", str(one.get("class_name", ""))).lower()
        number = counts[own]
        counts[own] += 1
        by_class = f"{own}_{number}" if number else own
        for known in (name, by_class) if name in layers and by_class not in layers else (by_class, name):
            if known in layers and known not in found:
                found[known] = name
                break
    return found


def _usual(name: str, variables: Variables) -> int:
    return 0 if "embedding" in name.lower() else 1 if _sides(variables) is not None else 2


def _gates(tensors: Mapping[str, Tensor], name: str) -> int:
    rows, columns = tensors[f"{dotted(name)}.weight_hh_l0"].shape
    return int(rows) // max(1, int(columns))


def _cut(
    config: Mapping[str, Any], place_of: Mapping[str, str], kept: Mapping[str, str], hints: dict[str, Any]
) -> None:
    """From the first layer on that is not rebuilt, nothing is run: what follows would be given something else."""
    why = ""
    for name, one in config.items():
        kind, own = str(one.get("class_name", "")), one["config"]
        inner = own.get("layer", {}) if kind in WRAPPERS and isinstance(own.get("layer"), dict) else one
        within = str(inner.get("class_name", ""))
        why = why or (
            ""
            if within in KNOWN
            else f"{shortened(name, 60)} ({shortened(within, 40) or shortened(kind, 40)}) is not rebuilt"
        )
        if name in place_of:
            why = why or kept.get(dotted(place_of[name]), "")
        if why and name in place_of:
            hints["not_run"][dotted(place_of[name])] = why
        activation = inner.get("config", {}).get("activation", "linear") if within == "Dense" else "linear"
        if activation not in ("linear", None):
            why = why or (
                f"what follows {shortened(name, 60)} is given its {shortened(str(activation), 40)}, which is "
                "not rebuilt"
            )
        if own.get("mask_zero"):
            hints["remarks"].append(
                f"{shortened(name, 60)} masks token 0 in Keras (mask_zero); here its steps are run."
            )
        if name not in place_of and within in RECURRENT:
            why = why or f"the variables of {shortened(name, 60)} were not found"


def _cell(variables: Variables, config: Mapping[str, Any], version: str) -> tuple[dict[str, Any], Variables] | None:
    """(settings, weights by Keras' names) of a layer in one direction that is run as Keras has it, since torch has no
    such layer; None for another."""
    sides = _sides(variables)
    if sides is None or set(sides) != {""} or config.get("class_name") == "Bidirectional":
        return None
    own = sides[""]
    kind, settings = _kind(own, config), _settings(config)
    why = _unlike(kind, own, config)
    if not why or settings.get("go_backwards"):
        return None
    told: dict[str, Any] = {"kind": kind, "activation": settings.get("activation", "tanh"), "keras": version}
    if kind != "SimpleRNN":
        told["recurrent_activation"] = settings.get("recurrent_activation", "sigmoid")
    if kind == "GRU":
        after = _resets_after(own, settings)
        if after is None:
            return None
        told["reset_after"] = after
    known = {told["activation"], told.get("recurrent_activation", "linear")}
    if not known <= {*RUN, *(["hard_sigmoid"] if version else [])}:
        return None
    return told, dict(zip(("kernel", "recurrent_kernel", "bias"), own, strict=False))


def as_torch(name: str, variables: Variables, config: Mapping[str, Any], said: dict[str, Any]) -> Variables:
    """The variables of a layer under torch's names and in its order, as far as torch has such a layer; others as they
    are. `said` gets, by layer, why one is not, and "relu" where that is the nonlinearity."""
    place = dotted(name)
    plain = {f"{place}.{dotted(key)}": one for key, one in variables.items()}
    sides = _sides(variables)
    if sides is not None:
        found: Variables = {}
        for suffix, own in sides.items():
            kind = _kind(own, config)
            why = _unlike(kind, own, config)
            if why:
                said[place] = why
                return plain
            found |= {f"{place}.{key}_l0{suffix}": one for key, one in _recurrent(kind, own).items()}
        if _settings(config).get("activation") == "relu":
            said[place] = "relu"
        return found
    matrices = [one for one in variables.values() if one.dim() == 2]
    if len(variables) == 1 and matrices and (config.get("class_name") == "Embedding" or "embedding" in name.lower()):
        return {f"{place}.weight": matrices[0]}
    rest = [one for one in variables.values() if one.dim() == 1]
    if len(matrices) == 1 and len(variables) <= 2 and all(len(one) == matrices[0].shape[1] for one in rest):
        return {f"{place}.weight": matrices[0].T.contiguous(), **({f"{place}.bias": rest[0]} if rest else {})}
    return plain


def _sides(variables: Variables) -> dict[str, list[Tensor]] | None:
    """{"" or "_reverse": kernel, recurrent kernel and bias} of a recurrent layer; None for another."""
    sides: dict[str, dict[str, Tensor]] = {}
    for key, one in variables.items():
        side = "_reverse" if "backward" in key else ""
        sides.setdefault(side, {})[key] = one
    found = {side: [own[key] for key in sorted(own, key=_rank)] for side, own in sides.items()}
    if not found or any(not _is_recurrent(own) for own in found.values()):
        return None
    return dict(sorted(found.items()))


def _rank(key: str) -> tuple[int, str]:
    """Kernel, recurrent kernel, bias; in Keras 3 they are numbered so."""
    last = key.rpartition("/")[2].partition(":")[0]
    order = {"kernel": 0, "recurrent_kernel": 1, "bias": 2}
    return order.get(last, 3), last


def _is_recurrent(own: list[Tensor]) -> bool:
    if len(own) not in (2, 3) or own[0].dim() != 2 or own[1].dim() != 2:
        return False
    units, columns = own[1].shape
    return own[0].shape[1] == columns and columns in (units, 3 * units, 4 * units)


def _kind(own: list[Tensor], config: Mapping[str, Any]) -> str:
    gates = own[1].shape[1] // own[1].shape[0]
    return next(kind for kind, count in RECURRENT.items() if count == gates)


def _settings(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of the layer itself, also inside Bidirectional."""
    own = config.get("config", {})
    inner = own.get("layer", {}).get("config") if isinstance(own, dict) and isinstance(own.get("layer"), dict) else None
    return inner if isinstance(inner, dict) else own if isinstance(own, dict) else {}


def _resets_after(own: list[Tensor], settings: Mapping[str, Any]) -> bool | None:
    """Whether the reset gate of a GRU is behind the product: as its bias shows, or its configuration says."""
    if len(own) == 3:
        return own[2].dim() == 2
    return bool(settings["reset_after"]) if "reset_after" in settings else None


def _unlike(kind: str, own: list[Tensor], config: Mapping[str, Any]) -> str:
    """Why torch has no such layer, or ""."""
    settings = _settings(config)
    if kind == "GRU" and _resets_after(own, settings) is None:
        return UNKNOWN_RESET
    if kind == "GRU" and not _resets_after(own, settings):
        return RESET_BEFORE
    for key, ordinary in ORDINARY.items():
        known = (*ordinary, "relu") if kind == "SimpleRNN" and key == "activation" else ordinary
        if key in settings and settings[key] not in known and not (kind == "SimpleRNN" and key != "activation"):
            return f"its {key} is {shortened(str(settings[key]), 40)!r}, where torch's layer has {' or '.join(known)}"
    if settings.get("go_backwards"):
        return "it reads its sequence backwards (go_backwards)"
    if config.get("class_name") == "Bidirectional" and config["config"].get("merge_mode", "concat") != "concat":
        return (
            f"its directions are put together by {shortened(str(config['config'].get('merge_mode')), 20)!r}, "
            "not side by side"
        )
    return ""


def _recurrent(kind: str, own: list[Tensor]) -> Variables:
    kernel, recurrent = own[0].T, own[1].T
    units = recurrent.shape[1]
    bias = own[2] if len(own) == 3 else None
    given = state = None
    if bias is not None:
        given, state = (bias[0], bias[1]) if bias.dim() == 2 else (bias, torch.zeros_like(bias))

    def ordered(one: Tensor) -> Tensor:
        if kind != "GRU":
            return one.contiguous()
        z, r, h = one.split(units)
        return torch.cat([r, z, h])

    found = {"weight_ih": ordered(kernel), "weight_hh": ordered(recurrent)}
    if given is not None and state is not None:
        found |= {"bias_ih": ordered(given), "bias_hh": ordered(state)}
    return found
