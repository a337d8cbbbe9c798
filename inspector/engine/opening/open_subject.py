"""Opening a model: a sample by name, `file.py:callable`, `package.module:callable`, a folder of Hugging Face's; and
fitting a checkpoint to it."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from inspector.capture.regular import in_words, is_a_folder, path_of, regular_stat
from inspector.engine.contracts import Loader, State
from inspector.engine.devices.present import checked
from inspector.engine.errors import InputError, ModelError, model_error
from inspector.engine.model.subject import Subject, adopt
from inspector.engine.model.training_mode import in_training
from inspector.engine.model.uncompiled import unwrap_
from inspector.engine.opening.beside import append_folder, require_own_modules
from inspector.engine.opening.checkpoint_files import read_and_hashed
from inspector.engine.opening.checkpoint_matching import fit
from inspector.engine.opening.hugging_face.description import is_model_folder
from inspector.engine.opening.hugging_face.folder_subject import open_folder
from inspector.engine.opening.programs import open_program
from inspector.engine.opening.read_checkpoint import (
    checkpoints_in,
    few,
    known_suffixes,
    loader_of,
    loader_of_folder,
    read_checkpoint,
)
from inspector.engine.opening.refused_formats import by_name
from inspector.engine.opening.user_code import UserCode
from inspector.engine.opening.weights_alone.open_weights import open_weights
from inspector.engine.opening.weights_alone.tensors_alone import tensors_alone
from inspector.engine.process_state import put_back
from inspector.engine.wording import a_class
from inspector.records import CheckpointReport, Load, Place, counted
from inspector.registry import instead
from inspector.workspace.samples import OWN, Sample, find_sample, list_samples


@dataclass(slots=True)
class Opened:
    """A subject with its checkpoint's report.
    `pending` is a checkpoint that does not fit and waits for confirmation.
    `tensors`: of a file of which nothing is run, all that it is; `why_tensors`: why nothing is."""

    subject: Subject
    title: str
    checkpoint: str = ""
    report: CheckpointReport | None = None
    pending: bool = False
    tensors: State | None = None
    why_tensors: str = ""


def open_subject(load: Load, code: UserCode | None = None) -> Opened:
    """The subject of a Load, in eval mode, with its checkpoint. Raises InputError or ModelError.

    `code` decides whether a file of code may run; without it, `load.trusted` allows everything or nothing.
    """
    torch.manual_seed(load.seed)
    opened, path = _without_checkpoint(load, code)
    if opened.tensors is not None:
        return opened
    subject = opened.subject
    subject.model = unwrap_(subject.model)
    _check_ready(subject)
    subject.set_to_eval = in_training(subject.model)
    subject.model.eval()
    if path is not None:
        opened.checkpoint = str(path)
        _fit_checkpoint(opened, path, partial=load.partial)
    subject.checkpoint = opened.checkpoint
    _move(subject, load.device)
    return opened


def _without_checkpoint(load: Load, code: UserCode | None) -> tuple[Opened, Path | None]:
    """What a Load names, and the checkpoint that is to be fitted to it."""
    sample, wanted = _sample(load)
    if sample is not None:
        subject = _call(_import_sample(sample, code), "build", load.arguments, sample.name)
        return Opened(subject, sample.title), _sample_checkpoint(sample, wanted)
    opened = _from_files(load, code)
    if opened is None:
        subject = _named(load, code)
        opened = Opened(subject, subject.name)
    return opened, path_of(load.checkpoint) if load.checkpoint else None


def _from_files(load: Load, code: UserCode | None) -> Opened | None:
    """A model that files describe by themselves: a folder of Hugging Face's, a program, weights; else None."""
    folder = _model_folder(load.subject)
    program = program_of(load.subject) if folder is None else None
    if program is not None:
        return _with_report(*open_program(*program, load, code), program[0], load)
    weights = folder or _weights_alone(load.subject)
    if weights is None:
        return None
    found = _weights(weights, load, is_folder=folder is not None)
    return found if isinstance(found, Opened) else _with_report(*found, weights, load)


def _with_report(subject: Subject, report: CheckpointReport, path: Path, load: Load) -> Opened:
    return Opened(subject, subject.name, str(path), report, pending=not (report.fits or load.partial))


def _fit_checkpoint(opened: Opened, path: Path, *, partial: bool) -> None:
    """Load a checkpoint into the model, unless it does not fit and that has to be confirmed."""
    state, sha256 = read_and_hashed(path, read_checkpoint)
    report, plan = fit(opened.subject.model, state, path)
    opened.report = replace(report, sha256=sha256)
    opened.pending = not (report.fits or partial)
    if not opened.pending:
        plan.apply(opened.subject.model)


def _weights(path: Path, load: Load, *, is_folder: bool) -> tuple[Subject, CheckpointReport] | Opened:
    """The model that weights describe, or, where that is asked for or they describe none, their tensors alone."""
    try:
        return _tensors(path, load) or _without_code(path, load, is_folder=is_folder)
    except (InputError, ModelError) as problem:
        try:
            only = _tensors(path, load, problem)
        except InputError:  # neither a model nor a checkpoint: the first reason says more
            only = None
        if only is None:
            raise
        return only


def _without_code(path: Path, load: Load, *, is_folder: bool) -> tuple[Subject, CheckpointReport]:
    """What a folder of Hugging Face's describes, or what is rebuilt of a file of weights."""
    if is_folder:
        return open_folder(path, load.arguments, load.device)
    state, sha256 = read_and_hashed(path, read_checkpoint)
    subject, own = open_weights(state, path, load.arguments)
    return subject, replace(own, sha256=sha256)


def _tensors(path: Path, load: Load, why: InputError | ModelError | None = None) -> Opened | None:
    """A checkpoint as its tensors alone, where that is asked for, or a model was and it is none, which `why` says."""
    if load.tensors == "never" or (load.tensors == "if needed" and (why is None or load.arguments)):
        return None
    state, sha256 = read_and_hashed(path, read_checkpoint)
    subject, report = tensors_alone(state, path, sha256)
    said = str(why or "")
    return Opened(subject, path.name, str(path), replace(report, guess={"why": said}), tensors=state, why_tensors=said)


def _sample(load: Load) -> tuple[Sample | None, str]:
    """The sample by its name or by one of its checkpoint files, and which checkpoint of it."""
    named = find_sample(load.subject)
    if named is None and not load.checkpoint and Path(load.subject).suffix == ".safetensors":
        path = Path(os.path.realpath(path_of(load.subject)))  # resolve() raises at links in a circle
        named = next((s for s in list_samples() if path in (own.resolve() for own in s.checkpoints)), None)
        return named, str(path)
    return named, load.checkpoint


def _model_folder(subject: str) -> Path | None:
    """The folder of Hugging Face's that a subject names; None where it names something else."""
    path = path_of(subject)
    return path if subject and is_a_folder(path) and is_model_folder(path) else None


def program_of(subject: str) -> tuple[Path, Loader] | None:
    """The file that a subject names and its loader, where the file is a model by itself; else None."""
    path = path_of(subject)
    if not subject or not os.path.lexists(path) or is_a_folder(path) or path.suffix.lower() == ".py":
        return None
    try:
        loader = loader_of(path)
    except InputError:
        return None  # whatever opens it as something else says why not
    return (path, loader) if hasattr(loader, "program") else None


def _weights_alone(subject: str) -> Path | None:
    """The checkpoint that a subject names, or the only one in a folder; None where it names something else."""
    path = path_of(subject)
    if not subject or not os.path.lexists(path):
        return None
    if is_a_folder(path):
        held = checkpoints_in(path)
        return path if loader_of_folder(path) is not None else path / held[0] if len(held) == 1 else None
    return path if path.suffix.lower() in known_suffixes() or _begins_as_checkpoint(path) else None


def checkpoint_at(path: Path) -> Path:
    """A checkpoint, or the only one in a folder; any other path as it is."""
    return _weights_alone(str(path)) or path


def _begins_as_checkpoint(path: Path) -> bool:
    """Whether a file that is not called like a checkpoint, nor like code, is one by its first bytes."""
    if path.suffix.lower() == ".py" or by_name(path) is not None:
        return False
    try:
        loader_of(path)
    except InputError:
        return False
    return True


def _sample_checkpoint(sample: Sample, wanted: str) -> Path | None:
    """One of the sample's own checkpoints, or any file. Raises InputError listing what exists."""
    chosen = sample.checkpoint(wanted)
    if chosen is not None or not wanted:
        return chosen
    path = path_of(wanted)
    if not os.path.lexists(path):
        own = ", ".join(known.name for known in sample.checkpoints) or "none"
        raise InputError(f"{sample.name} has no checkpoint {wanted!r}, and no such file exists; it has {own}.")
    return path


def _check_ready(subject: Subject) -> None:
    for name, parameter in subject.model.named_parameters():
        if torch.nn.parameter.is_lazy(parameter):
            raise InputError(
                f"{subject.name} has parameters without a shape yet ({name}); let the callable run the lazy model once "
                "before it returns it."
            )

    empty = [name for name, value in _values(subject.model) if value.is_meta]
    if empty:
        raise InputError(
            f"{subject.name} has {counted(len(empty), 'tensor')} without values, on the device 'meta' (the first: "
            f"{empty[0]}); make the model on the CPU, or load its weights before the callable returns it."
        )


def _values(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _move(subject: Subject, device: str) -> None:
    if device == "cpu":
        return
    place = checked(device)
    try:
        subject.model.to(place)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as problem:
        text = " ".join(str(problem).split())[:160]
        raise InputError(f"The model cannot be moved to the device {device!r} ({text}).") from None


def _named(load: Load, code: UserCode | None) -> Subject:
    where, separator, name = load.subject.rpartition(":")
    if not separator or (len(where) == 1 and where.isalpha()):  # a drive of Windows
        raise InputError(_unknown(load.subject))
    if code is None and not load.trusted:
        raise InputError(f"{where} is code; it runs only after you have agreed to trust it.")
    if where.endswith(".py"):
        module = import_file(path_of(where), code)
    else:
        append_folder(str(Path.cwd()))
        module = _import_module(where, code)
    return _call(module, name, load.arguments, f"{Path(where).name}:{name}")


def _unknown(subject: str) -> str:
    suffix = Path(subject).suffix
    if is_a_folder(subject):
        return _folder(Path(subject))
    if suffix in known_suffixes():
        return f"There is no file {subject}; a checkpoint holds weights: name the model too, file.py:callable."
    foreign = by_name(Path(subject))
    if foreign is not None:
        return f"{subject} is {foreign.what}, which cannot be opened; give file.py:callable and a state dict."
    if suffix == ".py":
        return f"{subject} is a Python file; say which callable in it makes the model: {subject}:NAME."
    near = instead(subject, (sample.name for sample in list_samples()))
    return f"There is no sample {subject!r} ({near}); expected file.py:callable, module:callable or a sample."


def _folder(path: Path) -> str:
    """Why a folder is not a subject, and what to give in its place."""
    held = checkpoints_in(path_of(path))
    if held:
        with_it = f"--checkpoint {path / held[0]}" if len(held) == 1 else f"one of {few(held)} as --checkpoint"
        many = counted(len(held), "checkpoint")
        return f"{path} is a folder with {many}; name the model, file.py:callable, and {with_it}."
    return f"{path} is a folder; name the file in it that makes the model, and the callable: file.py:callable."


def _import_sample(sample: Sample, code: UserCode | None) -> ModuleType:
    """A sample of an installed package;
    this package's own are those in its folder, never others of that name somewhere else."""
    if sample.module.partition(".")[0] != OWN:
        return _import_module(sample.module, code)
    found = importlib.util.find_spec(OWN)
    places = list(found.submodule_search_locations or ()) if found is not None else []
    if not places or not sample.file.parent.samefile(places[0]):
        hides = places[0] if places else "something else"
        raise InputError(f"The samples in {sample.file.parent} are hidden by {hides}: it comes first in sys.path.")
    return _import_module(sample.module)


def _import_module(name: str, code: UserCode | None = None) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise InputError(f"{name!r} is not the name of a module; expected file.py:callable or package.module:callable.")
    if code is not None:
        code.require_module(name)
    try:
        with put_back(making=True):
            return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        raise InputError(f"There is no module {problem.name!r} (asked for {name}).") from None
    except (Exception, SystemExit) as fault:  # importing runs the user's code
        raise _import_failure(name, fault) from fault


def _import_failure(name: str, fault: BaseException) -> ModelError:
    return model_error(fault, f"Importing {name}")


def import_file(path: Path, code: UserCode | None = None) -> ModuleType:
    """Run a user's file as a module; its folder is appended to the path, so it cannot hide a standard module."""
    try:
        regular_stat(path)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {in_words(problem)}.") from None
    path = path.resolve()  # the file that is hashed is the file that runs, wherever a link points by then
    append_folder(str(path.parent))
    if code is not None:
        code.require_file(path)
    require_own_modules(path)
    name = f"inspected_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be imported as Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with put_back(making=True):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as fault:  # importing runs the user's code
        sys.modules.pop(name, None)
        raise _import_failure(path.name, fault) from fault
    return module


def _call(module: ModuleType, name: str, arguments: Mapping[str, Any], title: str) -> Subject:
    thing: Any = module
    for part in name.split("."):
        if not hasattr(thing, part):
            raise InputError(f"{title.rpartition(':')[0]} has no {part!r}; it has {_callables(module)}.")
        thing = getattr(thing, part)
    if isinstance(thing, nn.Module) or isinstance(getattr(thing, "model", None), nn.Module):
        return adopt(thing, title)
    if not callable(thing):
        raise InputError(f"{title} is {a_class(thing)}; expected a class or function that makes a model.")
    try:
        inspect.signature(thing).bind(**arguments)
    except TypeError as problem:
        raise InputError(f"{title} cannot be called with {dict(arguments)!r}: {problem}.") from None
    except ValueError:
        pass  # no signature to check against: calling will report the error
    try:
        with put_back(making=True):
            made = thing(**arguments)
    except (Exception, SystemExit) as fault:  # the user's factory may raise anything
        raise model_error(fault, title) from fault
    return adopt(made, title)


def _callables(module: ModuleType) -> str:
    names = [
        name for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == module.__name__
    ]  # fmt: skip
    return ", ".join(names[:12]) or "no classes or functions of its own"


def places(model: nn.Module) -> tuple[Place, ...]:
    """The model as a tree, parents first: qualified name, class, own parameters."""
    return tuple(
        Place(
            name=name, module=type(module).__name__,
            parameters=sum(one.numel() for one in module.parameters(recurse=False) if not is_lazy(one)),
        )
        for name, module in model.named_modules()
    )  # fmt: skip
