"""Programs of TorchScript: archives of torch.jit.save. Running one runs its code, behind the question of trust."""

from __future__ import annotations

import io
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from inspector.capture.regular import open_regular
from inspector.engine.contracts import State
from inspector.engine.errors import InputError, model_error
from inspector.engine.model.one_directory import require_plain
from inspector.engine.model.subject import Subject
from inspector.engine.programs.agreement import difference
from inspector.engine.programs.graphs import Rewritten
from inspector.engine.programs.scripted.example import examples_of
from inspector.engine.programs.scripted.functions import Torch
from inspector.engine.programs.scripted.modules import modules_of
from inspector.engine.programs.signature import Given, Size, check_arguments, subject_of
from inspector.engine.programs.told import told
from inspector.engine.registries import LOADERS
from inspector.records.unreadable import why_unreadable

MEMBER = "constants.pkl"
FEWER, MOST_EXAMPLES = 5, 24
CHECKPOINT = (
    "{} is a TorchScript program, not a checkpoint; open it as the model, or save the state dict instead: "
    "torch.save(model.state_dict(), path)."
)


class TorchScript:
    """Programs written by torch.jit.save."""

    title = "TorchScript"
    summary = "Programs of torch.jit.save, their code run by Python; opening one runs that code."
    suffixes = (".ts", ".jit", ".torchscript", ".ptl")
    magic = ()
    form = "model"
    runs_code = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """A zip archive with constants of code, or one of these names."""
        return path.suffix.lower() in self.suffixes or (
            head.startswith(b"PK") and any(name.rpartition("/")[2] == MEMBER for name in _names(path))
        )

    def load(self, path: Path) -> State:
        """Raises InputError: its tensors alone are read by nobody."""
        raise InputError(CHECKPOINT.format(path.name))

    def program(self, path: Path, content: bytes, arguments: Mapping[str, Any]) -> Subject:
        """The Subject of a program, of the bytes that were agreed to. Raises InputError, ModelError."""
        check_arguments(arguments)
        scripted = _load(path, content)
        inputs, model, own, why = _first_that_runs(scripted, content, path.name, arguments)
        if own is not None and own.rows is not None:
            inputs = [_of_tokens(one, own.rows) for one in inputs]
        inputs, differs = _checked(model, scripted, inputs)
        if differs:
            model, own, why = Opaque(scripted), None, "run by Python it computed other numbers"
        found = _found(model, own)
        subject = subject_of(model, path.name, inputs, _run, arguments, None if own is None else own.rows)
        subject.rebuilt = told(path, "a program of TorchScript", inputs, found, why)
        if own is not None:
            own.growing = False
        return subject


class Opaque(nn.Module):
    """A program that is run as it is; its weights are here, so that they are seen."""

    def __init__(self, scripted: Any) -> None:
        super().__init__()
        self._scripted = (scripted,)  # not a module of this one: a scripted module takes no hooks
        for name, value in scripted.named_parameters():
            self._parameters[name.replace(".", "_")] = value  # the script's own, which are no nn.Parameter

    def forward(self, *args: Any) -> Any:
        """What the program computes."""
        return self._scripted[0](*args)


def _names(path: Path) -> list[str]:
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, IndexError, NotImplementedError):
        return []


def _load(path: Path, content: bytes) -> Any:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names, members = archive.namelist(), archive.infolist()
    except (zipfile.BadZipFile, zlib.error, ValueError, IndexError, NotImplementedError) as problem:
        raise InputError(f"{path.name} is damaged, or no TorchScript program: {why_unreadable(problem)}.") from None
    require_plain(path, members)
    if not any(name.rpartition("/")[2] == MEMBER for name in names):
        raise InputError(f"{path.name} is a zip archive without code, no TorchScript program.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.jit.load(io.BytesIO(content), map_location="cpu").eval()
    except Exception as fault:
        raise model_error(fault, f"Reading {path.name}") from fault


def _as_modules(
    scripted: Any, content: bytes, title: str, inputs: Sequence[Given]
) -> tuple[nn.Module, Torch | None, str]:
    """The program as modules of Python, else as it is with the reason."""
    try:
        model, own = modules_of(scripted, content, title)
        model.eval()
        with torch.no_grad():
            model(*(one.example for one in inputs))
        return model, own, ""
    except Exception as fault:  # noqa: BLE001 - code that is not understood; the program itself still runs
        said = " ".join(str(fault).split())[:80]
        return Opaque(scripted), None, f"its code could not be run by Python ({type(fault).__name__}: {said})"


def _first_that_runs(
    scripted: Any, content: bytes, title: str, arguments: Mapping[str, Any]
) -> tuple[list[Given], nn.Module, Torch | None, str]:
    """(an example, the modules that run on it, their operators, why they are none); of the first example where none
    does. Raises InputError where the program itself runs on nothing."""
    first: tuple[list[Given], nn.Module, Torch | None, str] | None = None
    for inputs in islice(examples_of(scripted, title, arguments), MOST_EXAMPLES):
        found = (inputs, *_as_modules(scripted, content, title, inputs))
        if found[3] == "":
            return found
        first = first or found
    assert first is not None
    return first


def _of_tokens(one: Given, rows: int) -> Given:
    """An example of ids of the whole table."""
    if one.dtype.is_floating_point:
        return one
    generator = torch.Generator().manual_seed(0)
    return replace(one, example=torch.randint(rows, one.example.shape, generator=generator))


def _checked(model: nn.Module, scripted: Any, inputs: list[Given]) -> tuple[list[Given], bool]:
    """(inputs, with sizes that turned out to be fixed; whether the modules compute other numbers than the program)."""
    for shorter in (False, True):
        given = [one.example[:, :FEWER] if shorter else one.example for one in inputs]
        with torch.no_grad():
            try:
                expected = scripted(*given)
            except Exception:
                if not shorter:
                    raise
                return [_fixed(one) for one in inputs], False
            try:
                apart = difference(model(*given), expected)
            except Exception:  # noqa: BLE001 - where the program itself runs, that is a difference
                apart = torch.inf
        if apart > 1:
            return inputs, True
    return inputs, False


def _fixed(one: Given) -> Given:
    length = one.example.shape[1]
    return replace(one, sizes=(one.sizes[0], Size(length, length), *one.sizes[2:]))


def _found(model: nn.Module, own: Torch | None) -> Rewritten:
    found = Rewritten()
    if own is not None:
        places = {id(module): place for place, module in model.named_modules()}
        found.layers = [(places[id(one)], one) for one in own.layers.values() if one is not None and id(one) in places]
        found.left = [f"{name} is run as one operation, without gates." for name in sorted(own.opaque)]
    return found


def _run(model: nn.Module, given: list[Tensor]) -> Any:
    return model(*given)


LOADERS.register("torchscript")(TorchScript())
