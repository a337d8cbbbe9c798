"""Graphs of ONNX: .onnx, run by onnxruntime on an example and by torch from then on. No code of a file runs."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from inspector.capture.regular import open_regular
from inspector.engine.contracts import State
from inspector.engine.errors import InputError
from inspector.engine.model.named_arrays import dotted
from inspector.engine.model.subject import Subject
from inspector.engine.programs.agreement import difference
from inspector.engine.programs.onnx.inputs import inputs_of, lengths_in, tokens_in
from inspector.engine.programs.onnx.layout import time_first
from inspector.engine.programs.onnx.model import Assembly, assemble
from inspector.engine.programs.onnx.protobuf import check_and_gather, libraries, parse, tensor_of
from inspector.engine.programs.onnx.session import session_of, values_of, with_all_values
from inspector.engine.programs.signature import STEPS, Given, Size, check_arguments, subject_of
from inspector.engine.programs.told import told
from inspector.engine.registries import LOADERS

FIELDS = (b"\x12", b"\x1a", b"\x3a", b"\x42")
"""What may follow the version in a file: producer, its version, the graph, the operator sets."""
FEWER = 5
"""Steps of a second example, where their number is free."""


class OnnxFile:
    """Graphs of ONNX."""

    title = "ONNX"
    summary = "Graphs of ONNX, run by torch and checked with onnxruntime (extra [onnx])."
    suffixes = (".onnx",)
    magic = ()
    form = "model"
    runs_code = False

    def sniff(self, path: Path, head: bytes) -> bool:
        """The version of the format and a field that may follow it, or that name."""
        begins = head[:1] == b"\x08" and 1 <= (head[1] if len(head) > 1 else 0) <= 20 and head[2:3] in FIELDS
        return begins or path.suffix.lower() == ".onnx"

    def load(self, path: Path) -> State:
        """The tensors that the graph begins with, by name. Raises InputError."""
        onnx, _ = libraries(path)
        with open_regular(path) as file:
            model = parse(onnx, path, file.read())
        check_and_gather(onnx, model, path)
        made = {dotted(one.name): tensor_of(onnx, one, path) for one in model.graph.initializer}
        tensors = {name: one for name, one in made.items() if one is not None and name}
        if not tensors:
            raise InputError(f"{path.name} holds no tensors of numbers.")
        return State(tensors, "ONNX")

    def program(self, path: Path, content: bytes, arguments: Mapping[str, Any]) -> Subject:
        """The Subject of a graph. Raises InputError, with the reason, where it cannot be run."""
        check_arguments(arguments)
        onnx, onnxruntime = libraries(path)
        model = parse(onnx, path, content)
        check_and_gather(onnx, model, path)
        model = _inlined(onnx, model, path)
        time_first(onnx, model)
        outputs = [one.name for one in model.graph.output]
        session = session_of(onnxruntime, _serialized(with_all_values(onnx, model), path), path.name)
        names, inputs, shown = _example(onnx, model, session, path)
        work = Assembly(onnx, onnxruntime, model, path, _with_inputs(shown, names, inputs))
        module = assemble(work, names, outputs)
        inputs = _checked(module, session, path, names, inputs, outputs)
        ids = tokens_in(model)
        subject = subject_of(
            module, path.name, inputs, _run, arguments, next((ids[n] for n in names if n in ids), None)
        )
        parts = told(path, "a graph of ONNX", inputs, work.found, "")
        subject.rebuilt = " ".join([parts, *_foreign(work.foreign)])
        return subject


def _example(onnx: Any, model: Any, session: Any, path: Path) -> tuple[list[str], list[Given], dict[str, Tensor]]:
    """(names of inputs, what they are, every value that onnxruntime computes from their example). Raises InputError.

    Exporters also say that an axis is free where operations inside have the length with which it was exported: lengths
    among the constants of the graph are then tried, and the one that runs is the only one.
    """
    refused: InputError | None = None
    for steps in (STEPS, *lengths_in(onnx, model)):
        names, inputs = inputs_of(model, path, steps)
        try:
            shown = values_of(session, dict(zip(names, (one.example for one in inputs), strict=True)), path.name)
        except InputError as problem:
            refused = refused or problem
            continue
        return names, inputs if steps == STEPS else [_fixed(one, steps) for one in inputs], shown
    assert refused is not None
    raise refused


def _run(module: nn.Module, given: list[Any]) -> Any:
    output = module(*given)
    return output[0] if len(output) == 1 else output


def _with_inputs(shown: dict[str, Tensor], names: Sequence[str], inputs: Sequence[Given]) -> dict[str, Tensor]:
    return {**shown, **dict(zip(names, (one.example for one in inputs), strict=True))}


def _inlined(onnx: Any, model: Any, path: Path) -> Any:
    """A model without functions of its own, which exporters put operators into."""
    if not len(model.functions):
        return model
    try:
        return importlib.import_module("onnx.inliner").inline_local_functions(model)
    except Exception as problem:  # noqa: BLE001 - the library raises several kinds for a damaged file
        raise InputError(f"{path.name} has functions that cannot be read ({type(problem).__name__}).") from None


def _serialized(model: Any, path: Path) -> bytes:
    try:
        content: bytes = model.SerializeToString()
    except Exception:  # noqa: BLE001 - more than 2 GiB
        raise InputError(
            f"{path.name} and its tensors are more than a message of 2 GiB; such a graph is not run."
        ) from None
    return content


def _checked(
    module: nn.Module, session: Any, path: Path, names: Sequence[str], inputs: list[Given], outputs: Sequence[str]
) -> list[Given]:
    """Compare the module with onnxruntime on the example and on a shorter one. Raises InputError where they differ.

    Sizes that only the second one shows to be fixed are returned as fixed.
    """
    for shorter in (False, True):
        given = [one.example if not shorter else _shorter(one) for one in inputs]
        if shorter and all(a.shape == b.example.shape for a, b in zip(given, inputs, strict=True)):
            return inputs
        try:
            shown = values_of(session, dict(zip(names, given, strict=True)), path.name)
        except InputError:
            if shorter:  # the graph says that the axis is free, and it is not
                return [_fixed(one) for one in inputs]
            raise
        with torch.no_grad():
            made = module(*given)
        pairs = [(one, shown[name]) for one, name in zip(made, outputs, strict=True) if name in shown]
        if max((difference(a, b) for a, b in pairs), default=0.0) > 1:
            raise InputError(
                f"{path.name} was not opened: torch computes other numbers from its operations than onnxruntime does."
            )
    return inputs


def _shorter(one: Given) -> Tensor:
    """An example with fewer steps, where these are free."""
    value = one.example
    for axis, size in enumerate(one.sizes[:2]):
        if not size.fixed and value.shape[axis] == STEPS:
            value = value.narrow(axis, 0, FEWER)
    lengths = value.dim() < 2 and not value.is_floating_point() and bool((value == STEPS).all())
    return torch.full_like(value, FEWER) if lengths else value


def _fixed(one: Given, steps: int = STEPS) -> Given:
    sizes = tuple(Size(n, n) if n == steps else size for size, n in zip(one.sizes, one.example.shape, strict=True))
    return Given(one.name, sizes, one.dtype, one.example)


def _foreign(found: Sequence[tuple[str, str]]) -> list[str]:
    """Sentences on the nodes that are left to onnxruntime."""
    counted = Counter(found)
    said = [
        f"{kind}{f' ({many} times)' if many > 1 else ''} is computed by onnxruntime, since {why}; no gradient comes "
        "through it, none is shown of what it is made of, and what happens inside is not seen."
        for (kind, why), many in counted.most_common(6)
    ]
    return [*said, f"So are {len(counted) - 6} other kinds of operations."] if len(counted) > 6 else said


LOADERS.register("onnx")(OnnxFile())
