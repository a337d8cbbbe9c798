"""Opening a model: a sample by name, `file.py:callable`, `package.module:callable`, a folder of Hugging Face's; and
fitting a checkpoint to it."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from inspector.capture.regular import in_words, is_a_folder, open_regular, path_of, regular_stat
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
from inspector.engine.opening.refused_formats import by_content, by_name
from inspector.engine.opening.user_code import UserCode
from inspector.engine.opening.weights_alone.open_weights import open_weights
from inspector.engine.opening.weights_alone.tensors_alone import tensors_alone
from inspector.engine.registries import LOADERS
from inspector.engine.wording import a_class
from inspector.records import CheckpointReport, Load, Place, counted
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
    sample, wanted = _sample(load)
    folder = _model_folder(load.subject) if sample is None else None
    program = program_of(load.subject) if sample is None and folder is None else None
    alone = _weights_alone(load.subject) if sample is None and folder is None and program is None else None
    own: CheckpointReport | None = None
    weights = alone or folder
    if program is not None:
        subject, own, folder = *open_program(*program, load, code), program[0]
        path, title = path_of(load.checkpoint) if load.checkpoint else None, subject.name
    elif weights is not None:
        try:
            if (only := _tensors(weights, load)) is not None:
                return only
            subject, own = _without_code(weights, load, is_folder=folder is not None)
        except (InputError, ModelError) as problem:
            if (only := _tensors(weights, load, problem)) is None:
                raise
            return only
        folder = weights
        path, title = path_of(load.checkpoint) if load.checkpoint else None, subject.name
    elif sample is not None:
        subject = _call(_import_sample(sample, code), "build", load.arguments, sample.name)
        path, title = _sample_checkpoint(sample, wanted), sample.title
    else:
        subject = _named(load, code)
        path = path_of(load.checkpoint) if load.checkpoint else None
        title = subject.name
    subject.model = unwrap_(subject.model)
    _check_ready(subject)
    subject.set_to_eval = in_training(subject.model)
    subject.model.eval()
    opened = Opened(subject, title, str(path or folder or ""), own, own is not None and not (own.fits or load.partial))
    subject.checkpoint = opened.checkpoint
    if path is not None:
        state, sha256 = read_and_hashed(path, read_checkpoint)
        report, plan = fit(subject.model, state, path)
        opened.report = replace(report, sha256=sha256)
        opened.pending = not (opened.report.fits or load.partial)
        if not opened.pending:
            plan.apply(subject.model)
    _move(subject, load.device)
    return opened


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
        held = _checkpoints_in(path)
        return path if _loader_of_folder(path) is not None else path / held[0] if len(held) == 1 else None
    return path if path.suffix.lower() in _suffixes() or _begins_as_checkpoint(path) else None


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
    windows_drive = len(where) == 1 and where.isalpha()
    if not separator or windows_drive:
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
    names = ", ".join(sample.name for sample in list_samples()) or "none installed"
    if suffix in _suffixes():
        return f"There is no file {subject}; a checkpoint holds weights: name the model too, file.py:callable."
    foreign = by_name(Path(subject))
    if foreign is not None:
        return f"{subject} is {foreign.what}, which cannot be opened; give file.py:callable and a state dict."
    if suffix == ".py":
        return f"{subject} is a Python file; say which callable in it makes the model: {subject}:NAME."
    return f"There is no sample {subject!r}; expected file.py:callable, module:callable, or one of the samples {names}."


def _folder(path: Path) -> str:
    """Why a folder is not a subject, and what to give in its place."""
    held = _checkpoints_in(path_of(path))
    if held:
        with_it = f"--checkpoint {path / held[0]}" if len(held) == 1 else f"one of {_few(held)} as --checkpoint"
        many = counted(len(held), "checkpoint")
        return f"{path} is a folder with {many}; name the model, file.py:callable, and {with_it}."
    return f"{path} is a folder; name the file in it that makes the model, and the callable: file.py:callable."


def _checkpoints_in(path: Path) -> list[str]:
    """Names of the files of a folder that end as checkpoints do."""
    try:
        return sorted(one.name for one in path.iterdir() if one.suffix.lower() in _suffixes() and one.is_file())
    except OSError:
        return []


def _few(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


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


def read_checkpoint(path: Path) -> State:
    """The tensors in a checkpoint, by the first loader that knows it. Raises InputError."""
    return loader_of(path).load(path)


def loader_of(path: Path) -> Loader:
    """The first loader that knows a file or folder. Raises InputError."""
    folder = _loader_of_folder(path) if path.is_dir() else None
    if folder is not None:
        return folder
    head = _head(path)
    if not head:
        raise InputError(f"{path.name} is empty; expected a checkpoint.")
    for key in _loaders(path):
        loader = LOADERS[key]
        if loader.sniff(path, head) and not (_is_ours(key) and _only_by_name(key, path, head)):
            return loader
    foreign = by_content(path, head) or by_name(path)
    if foreign is not None:
        raise InputError(f"{path.name} is {foreign.what}, {foreign.advice}.")
    raise InputError(f"{path.name} is not a checkpoint of a known format; there are {', '.join(_suffixes())}.")


def _loader_of_folder(path: Path) -> Loader | None:
    """The loader of a checkpoint that is a folder; None where it is a folder of something else."""
    able = (LOADERS[key] for key in _loaders(path) if getattr(LOADERS[key], "folders", False))
    return next((loader for loader in able if loader.sniff(path, b"")), None)


def _loaders(path: Path) -> list[str]:
    """The keys of all loaders, those first that name the file's suffix, and of these those of other packages."""
    suffix = path.suffix.lower()
    return sorted(LOADERS, key=lambda key: (suffix not in LOADERS[key].suffixes, _is_ours(key)))


def _is_ours(key: str) -> bool:
    return LOADERS.origin(key).startswith(f"{LOADERS.package}.")


def _only_by_name(key: str, path: Path, head: bytes) -> bool:
    """Whether a file that begins like something else is recognised by its name alone:
    a GGUF file named .safetensors."""
    foreign = by_content(path, head)
    if foreign is None or path.suffix.lower() in foreign.suffixes or foreign.loader == key:
        return False
    return not LOADERS[key].sniff(path.with_suffix(""), head)


def _suffixes() -> tuple[str, ...]:
    return tuple(suffix for _, loader in LOADERS.items() for suffix in loader.suffixes)


def _head(path: Path) -> bytes:
    """The first 4096 bytes. Raises InputError."""
    if path.is_dir():
        held = _checkpoints_in(path)
        one = (
            f"the checkpoint in it is {path / held[0]}" if len(held) == 1 else f"the checkpoints in it are {_few(held)}"
        )
        raise InputError(f"{path} is a folder; {one if held else 'there is no checkpoint in it'}.")
    try:
        with open_regular(path) as file:
            return file.read(4096)
    except FileNotFoundError:
        raise InputError(f"There is no checkpoint {path}.") from None
    except (OSError, ValueError) as problem:
        why = in_words(problem) if isinstance(problem, OSError) else problem
        raise InputError(f"{path} cannot be read: {why}.") from None


def places(model: nn.Module) -> tuple[Place, ...]:
    """The model as a tree, parents first: qualified name, class, own parameters."""
    return tuple(
        Place(
            name=name, module=type(module).__name__,
            parameters=sum(one.numel() for one in module.parameters(recurse=False) if not is_lazy(one)),
        )
        for name, module in model.named_modules()
    )  # fmt: skip
