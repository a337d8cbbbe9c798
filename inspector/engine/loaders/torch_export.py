"""Programs of torch.export: .pt2. Reading one runs code that it holds, so it is opened behind the question of trust.

`torch.export.load` unpickles example inputs without limits and evaluates expressions. Packages of AOTInductor are
machine code without a graph.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from inspector.capture.regular import open_regular
from inspector.engine.contracts import State
from inspector.engine.errors import InputError, model_error
from inspector.engine.model.one_directory import require_plain
from inspector.engine.model.subject import Subject
from inspector.engine.programs.exported import as_modules, call
from inspector.engine.programs.signature import ANY, Given, Size, check_arguments, subject_of
from inspector.engine.programs.told import told
from inspector.engine.registries import LOADERS
from inspector.records.unreadable import why_unreadable

MEMBERS = ("model_weights_config.json", "serialized_exported_program.json")
"""Files of a program, of this release's and of earlier ones' archives."""
COMPILED = "holds a program compiled by AOTInductor, machine code without a graph; open the program that it was made of"
CHECKPOINT = "{} is a program of torch.export, not a checkpoint; open it as the model."


class TorchExport:
    """Programs written by torch.export.save."""

    title = "torch.export"
    summary = "Programs of torch.export, run as modules; reading one runs its code."
    suffixes = (".pt2",)
    magic = ()
    form = "model"
    runs_code = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """A zip archive with a graph, or of that name."""
        return path.suffix.lower() in self.suffixes or (
            head.startswith(b"PK") and any(one in MEMBERS for one in _names(path))
        )

    def load(self, path: Path) -> State:
        """Raises InputError: its tensors alone are read by nobody."""
        raise InputError(CHECKPOINT.format(path.name))

    def program(self, path: Path, content: bytes, arguments: Mapping[str, Any]) -> Subject:
        """The Subject of a program, of the bytes that were agreed to. Raises InputError, ModelError."""
        check_arguments(arguments)
        exported = _load(path, content)
        inputs, values = _inputs(exported)
        flat = [one.example if isinstance(one, Given) else one for one in values]
        expected = _computed(path, exported, flat)
        model, found, why = as_modules(exported, flat, expected)

        def run(model: nn.Module, given: list[Any]) -> Any:
            ready = iter(given)
            return call(model, exported, [next(ready) if isinstance(one, Given) else one for one in values])

        subject = subject_of(model, path.name, inputs, run, arguments, _tokens(model))
        subject.rebuilt = told(path, "a program of torch.export", inputs, found, why)
        return subject


def _names(path: Path) -> frozenset[str]:
    """Names in an archive, without folders; none of a damaged one."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return frozenset(name.rpartition("/")[2] for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, IndexError, NotImplementedError):
        return frozenset()


def _load(path: Path, content: bytes) -> Any:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names, members = archive.namelist(), archive.infolist()
    except Exception as problem:  # noqa: BLE001 - a damaged directory raises many kinds
        raise InputError(f"{path.name} is damaged or cut short: {why_unreadable(problem)}.") from None
    require_plain(path, members)
    if not any(name.endswith(("models/model.json", *MEMBERS)) for name in names):
        compiled = any("aotinductor" in name for name in names)
        why = COMPILED if compiled else "is a zip archive, but no program of torch.export, or it is cut short"
        raise InputError(f"{path.name} {why}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.export.load(io.BytesIO(content))
    except Exception as fault:
        raise model_error(fault, f"Reading {path.name}") from fault


def _computed(path: Path, exported: Any, flat: list[Any]) -> Any:
    """What the program itself computes from its example. Raises ModelError."""
    args, kwargs = pytree.tree_unflatten(flat, exported.call_spec.in_spec)
    try:
        with torch.no_grad():
            return exported.module()(*args, **kwargs)
    except Exception as fault:
        raise model_error(fault, f"Running {path.name} on its example") from fault


def _inputs(exported: Any) -> tuple[list[Given], list[Any]]:
    """(inputs that are tensors, all inputs in order: these, or the values of the example that are none)."""
    shown = exported.example_inputs
    examples = pytree.tree_flatten(shown)[0] if isinstance(shown, tuple) else []
    placeholders = {node.name: node for node in exported.graph.nodes if node.op == "placeholder"}
    given: list[Given] = []
    values: list[Any] = []
    for at, name in enumerate(exported.graph_signature.user_inputs):
        node = placeholders.get(name) if isinstance(name, str) else None
        shape = node.meta.get("val") if node is not None else None
        example = examples[at] if at < len(examples) else None
        if not isinstance(shape, Tensor):
            values.append(example if node is not None else name)
            continue
        sizes = tuple(_size(one, exported.range_constraints) for one in shape.shape)
        values.append(Given(_identifier(str(name)), sizes, shape.dtype, _example(example, sizes, shape.dtype)))
        given.append(values[-1])
    return given, values


def _size(size: Any, ranges: Mapping[Any, Any]) -> Size:
    """One axis: a number, or the range of its symbol."""
    if isinstance(size, int):
        return Size(size, size)
    known = ranges.get(size.node.expr)
    if known is None:
        return ANY
    try:
        low, high = int(known.lower), int(known.upper)
    except (OverflowError, TypeError, ValueError):
        return Size(max(1, int(known.lower)), None)
    return Size(max(1, low), None if high >= 1 << 30 else high)


def _example(example: Any, sizes: Sequence[Size], dtype: torch.dtype) -> Tensor:
    """The program's own example, else numbers of its shape."""
    if isinstance(example, Tensor):
        return example.detach().clone()
    shape = [one.low if one.fixed else max(one.low, min(12, one.high or 12)) for one in sizes]
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator).to(dtype) if dtype.is_floating_point else torch.zeros(
        shape, dtype=dtype
    )  # fmt: skip


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "".join(c if c.isalnum() else "_" for c in f"x{name}")


def _tokens(model: nn.Module) -> int | None:
    """How many ids the first table of the program has."""
    for module in model.modules():
        graph = getattr(module, "graph", None)
        for node in graph.nodes if graph is not None else ():
            if node.target is torch.nn.functional.embedding and getattr(node.args[1], "op", "") == "get_attr":
                table: Any = module
                for part in str(node.args[1].target).split("."):
                    table = getattr(table, part)
                return len(table)
    return None


LOADERS.register("torch-export")(TorchExport())
