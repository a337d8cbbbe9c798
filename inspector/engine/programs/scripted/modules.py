"""From a scripted module to modules of Python that run its code, with its weights, names and layers."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.programs.scripted.code import Code
from inspector.engine.programs.scripted.functions import Torch, ops


class Constants:
    """`CONSTANTS.c0`: tensors that the code names."""

    def __init__(self, tensors: Any) -> None:
        for n, one in enumerate(tensors):
            setattr(self, f"c{n}", one)


def modules_of(scripted: Any, content: bytes, title: str) -> tuple[nn.Module, Torch]:
    """The tree of modules of a scripted one, and its operators. Raises whatever code that is not understood raises."""
    own = Torch()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {}
        for name in archive.namelist():
            _, found, path = name.partition("/code/")
            if found and path.endswith(".py"):
                files[path] = archive.read(name).decode("utf-8")
        constants = _constants(archive)
    code = Code(files, {"torch": own, "ops": ops(own), "CONSTANTS": Constants(constants)}, title)
    parameters: dict[Any, Tensor] = {}
    return _module(scripted._c, code, own, parameters), own


def _constants(archive: zipfile.ZipFile) -> Any:
    """The tensors in `constants.pkl`."""
    name = next(one for one in archive.namelist() if one.endswith("constants.pkl"))
    folder = name.removesuffix(".pkl")

    def stored(key: Any) -> Any:
        _, kind, number, *_ = key
        data = bytearray(archive.read(f"{folder}/{number}"))
        dtype = kind if isinstance(kind, torch.dtype) else kind.dtype
        held = torch.frombuffer(data, dtype=torch.uint8).untyped_storage() if data else torch.UntypedStorage(0)
        return torch.storage.TypedStorage(wrap_storage=held, dtype=dtype, _internal=True)

    reader = torch._weights_only_unpickler.Unpickler(io.BytesIO(archive.read(name)), encoding="utf-8")
    reader.persistent_load = stored  # type: ignore[method-assign]
    return reader.load()


def _items(found: Any) -> dict[str, Any]:
    return dict(found.items())


def _module(script: Any, code: Code, own: Torch, known: dict[Any, Tensor]) -> nn.Module:
    qualified = script._type().qualified_name()
    made = code.class_of(qualified)()
    parameters = _items(torch._C.ParameterDict(script))
    buffers = _items(torch._C.BufferDict(script))
    children = _items(torch._C.ModuleDict(script))
    for name, value in parameters.items():
        made.register_parameter(name, _shared(value, known, parameter=True))
        own.owners.setdefault(id(made._parameters[name]), made)
    for name, value in buffers.items():
        made.register_buffer(name, _shared(value, known, parameter=False))
    for name, child in children.items():
        made.add_module(name, _module(child, code, own, known))
    for name in code.classes[qualified]["attributes"]:
        if name in parameters or name in buffers or name in children or name == "training":
            continue
        object.__setattr__(made, name, _mapped(script.getattr(name), known))
    made.train(bool(script.getattr("training")) if script.hasattr("training") else False)
    return made


def _shared(value: Tensor, known: dict[Any, Tensor], *, parameter: bool) -> Any:
    """A tensor of the script, once for all places that share it."""
    key = value.data_ptr(), tuple(value.shape), tuple(value.stride()), value.dtype
    if key not in known or (parameter and not isinstance(known[key], nn.Parameter)):
        copied = value.detach().clone()
        floating = copied.is_floating_point()
        known[key] = nn.Parameter(copied, requires_grad=floating) if parameter else copied
    return known[key]


def _mapped(value: Any, known: dict[Any, Tensor]) -> Any:
    """An attribute; tensors in it that are parameters are the module's."""
    if isinstance(value, Tensor):
        return _shared(value, known, parameter=False)
    if isinstance(value, list):
        return [_mapped(one, known) for one in value]
    if isinstance(value, tuple):
        return tuple(_mapped(one, known) for one in value)
    return value
