"""What a model was called with, so that it can be called so again: the form as plain JSON, and the tensors by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from inspector.records.plain_text import shortened

DEPTH = 6
MOST_TEXT, MOST_PARTS = 1000, 1000


def tensors_in(value: Any, name: str, depth: int = DEPTH) -> Iterator[tuple[str, Tensor]]:
    """(path, tensor) of every tensor in what a model was called with."""
    if isinstance(value, Tensor):
        if value.layout == torch.strided and not value.is_nested:
            yield name, value.detach()
        return
    if depth and isinstance(value, dict):
        for key, one in value.items():
            yield from tensors_in(one, f"{name}/{key}", depth - 1)
    elif depth and isinstance(value, (tuple, list)):
        for n, one in enumerate(value):
            yield from tensors_in(one, f"{name}/{n}", depth - 1)


def form_of(value: Any, depth: int = DEPTH) -> Any:
    """The form of a value, whose tensors `tensors_in` finds by the same path: {"tensor": null}, {"plain": 3},
    {"dict": {…}}, {"list": […]}, {"tuple": […]}, or {"other": "its class"} for what is not kept."""
    if isinstance(value, Tensor):
        return {"tensor": None} if value.layout == torch.strided and not value.is_nested else {"other": "a tensor"}
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return {"plain": value} if not isinstance(value, int) or abs(value) < 1 << 53 else {"other": "int"}
    if isinstance(value, str) and len(value) <= MOST_TEXT:
        return {"plain": value}
    if depth and type(value) is dict and len(value) <= MOST_PARTS and all(isinstance(key, str) for key in value):
        return {"dict": {key: form_of(one, depth - 1) for key, one in value.items()}}
    if depth and type(value) in (list, tuple) and len(value) <= MOST_PARTS:
        return {type(value).__name__: [form_of(one, depth - 1) for one in value]}
    return {"other": type(value).__name__}


def of_form(form: Any, tensors: Mapping[str, Tensor], name: str, say: Callable[[str], None], depth: int = DEPTH) -> Any:
    """The value again. `say` is told of each part that was not kept, in whose place None stands."""
    kind, inside = next(iter(form.items())) if isinstance(form, dict) and len(form) == 1 else ("other", "nothing")
    if kind == "tensor" and name in tensors:
        return tensors[name]
    if kind == "plain" and (inside is None or isinstance(inside, (bool, int, float, str))):
        return inside
    if kind == "dict" and isinstance(inside, dict) and depth:
        return {key: of_form(one, tensors, f"{name}/{key}", say, depth - 1) for key, one in inside.items()}
    if kind in ("list", "tuple") and isinstance(inside, list) and depth:
        found = [of_form(one, tensors, f"{name}/{n}", say, depth - 1) for n, one in enumerate(inside)]
        return tuple(found) if kind == "tuple" else found
    say(f"{name} ({shortened(str(inside), 60) if kind == 'other' else kind})")
    return None
