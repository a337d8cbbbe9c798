"""What a model changes of the process that runs it is put back once it returns: the worker needs it for the rest.

Only in a worker, which says so by `keep`: in a program of the user's own such a change is the program's. In front of a
call what there is is noted; behind it everything that other code counts on is as it was: modules and what they define,
builtins, hooks of imports, standard files, folder, environment, mask of files, handlers of signals, modes of torch. A
forked child that comes back from the model ends there, or two workers would answer.
"""

from __future__ import annotations

import builtins
import gc
import inspect
import json
import os
import queue
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from inspector.engine.torch_state import STATES, Defined

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_MODULES = (os, time, threading, json, sqlite3, queue, signal, socket, gc, np, torch, torch.nn, torch.nn.functional)
"""Those whose names are put back; of others only that they are there."""
_SYS = ("stdin", "stdout", "stderr", "excepthook", "unraisablehook", "displayhook", "modules", "path", "meta_path")
_LISTS: tuple[list[Any], ...] = (sys.path, sys.meta_path, sys.path_hooks)
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_limited = sorted({value for name, value in vars(resource or os).items() if name.startswith("RLIMIT_")})
_needed = ("RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_STACK", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_CPU")
"""Limits without which a worker cannot work, as far as the system has them."""
_pid = 0
_exit, _getpid, _write = os._exit, os.getpid, os.write


def keep() -> None:
    """From here on this process is a worker."""
    global _pid
    _pid = os.getpid()
    _environment.update(os.environ)
    _first.update(_settings())
    _defined.append(Defined())


@contextmanager
def fresh() -> Iterator[None]:
    """Another model is opened inside, with a process as new; where that fails, what the one before chose is there."""
    if not _pid:
        yield
        return
    before = _settings()
    _settings_put_back(_first)
    try:
        yield
    except BaseException:
        _settings_put_back(before)
        raise


@contextmanager
def put_back(*, making: bool = False) -> Iterator[None]:
    """Code of a model runs inside. What it changed is told on the standard error, by name.

    `making`: it is imported or made, when it may well choose a dtype, a folder, or its own version of a function, for
    all its calls.
    """
    if not _pid:
        yield
        return
    restore = _noted(making)
    try:
        yield
    finally:
        restore()


def _noted(making: bool) -> Callable[[], None]:
    """How everything is now; calling it puts that back."""
    own, modules = vars(builtins), sys.modules
    names, loaded = own.copy(), modules.copy()
    defined = [] if making else [(vars(module), vars(module).copy()) for module in _MODULES]
    methods = {} if making else dict(vars(torch.Tensor))
    attributes = {name: getattr(sys, name) for name in _SYS}
    entries: list[tuple[list[Any], list[Any]]] = [(one, one.copy()) for one in _LISTS]
    settings = {} if making else _settings()

    def restore() -> None:
        changed = []
        own.update(names)  # first, and without any of them
        modules.update(loaded)
        if _getpid() != _pid:
            _exit(0)
        for table, before in defined:
            changed += _names_put_back(table, before)
        for name, value in methods.items():
            if vars(torch.Tensor).get(name) is not value:
                with suppress(TypeError, AttributeError):
                    setattr(torch.Tensor, name, value)
                    changed.append(f"Tensor.{name}")
        for name, value in attributes.items():
            if getattr(sys, name, None) is not value or getattr(value, "closed", False):
                setattr(sys, name, _open_again(name, value))
                changed.append(f"sys.{name}")
        for one, before_list in entries:
            one.extend(entry for entry in before_list if entry not in one)
        changed += _settings_put_back(settings)
        if changed:
            _tell(changed)

    return restore


def _open_again(name: str, value: Any) -> Any:
    """A standard file; where the model has closed it another one of the same descriptor, or of none."""
    number = {"stdout": 1, "stderr": 2}.get(name)
    if number is None or not getattr(value, "closed", False):
        return value
    try:
        os.fstat(number)
    except OSError:
        return Path(os.devnull).open("w", encoding="utf-8")
    return os.fdopen(number, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _names_put_back(table: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """What a module defines, as it was; names that are new stay."""
    other = [name for name, value in before.items() if table.get(name, table) is not value]
    own = [name for name in other if not isinstance(before[name], (ModuleType, int, str, dict)) and name[:2] != "__"]
    for name in own:
        table[name] = before[name]
    return [f"{before.get('__name__', '')}.{name}" for name in own]


def _settings() -> Settings:
    """{what it is: (its value, what sets it)}."""
    found: Settings = {}
    for name, (read, write) in SETTINGS.items():
        with suppress(Exception):
            found[name] = read(), write
    return found


def _settings_put_back(before: Settings) -> list[str]:
    changed = []
    for name, (value, write) in before.items():
        now: Any = None
        with suppress(Exception):
            now = SETTINGS[name][0]()
        if now != value:
            with suppress(Exception):
                write(value)
                if SETTINGS[name][0]() == value:
                    changed.append(name)
    for key, text in _environment.items():
        os.environ.setdefault(key, text)
    return changed


def _tell(changed: list[str]) -> None:
    more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
    with suppress(OSError):
        _write(2, f"The model changed {', '.join(changed[:5])}{more} of its process, which was put back.\n".encode())


def _set_mask(mask: int) -> None:
    os.umask(mask)


def _mask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now


def _set_device(device: torch.device) -> None:
    torch.set_default_device(None if device.type == "cpu" else device)  # None: without a mode that costs each call


def _limits() -> list[tuple[int, int]]:
    return [] if resource is None else [resource.getrlimit(number) for number in _limited]


def _set_limits(limits: list[tuple[int, int]]) -> None:
    """As far as the system lets: what only an administrator may raise again stays."""
    assert resource is not None
    for number, one in zip(_limited, limits, strict=True):
        with suppress(ValueError, OSError):
            resource.setrlimit(number, one)


def most_allowed() -> dict[str, int]:
    """Hard limits of this process, which can be lowered and never lifted again; {} where the system has none."""
    found = {name: getattr(resource, name) for name in _needed if hasattr(resource, name)}
    return {name: resource.getrlimit(number)[1] for name, number in found.items()}


def is_spent(before: dict[str, int]) -> bool:
    """Whether less is allowed now than before: what runs here next would fail for want of it."""
    unlimited = getattr(resource, "RLIM_INFINITY", -1)
    now = most_allowed()
    return any(
        now[name] != unlimited and (most == unlimited or now[name] < most) for name, most in before.items()
    )  # fmt: skip


def _handlers() -> list[Any]:
    return [signal.getsignal(number) for number in _SIGNALS]


def _set_handlers(handlers: list[Any]) -> None:
    for number, handler in zip(_SIGNALS, handlers, strict=True):
        signal.signal(number, handler)


def altered(is_installed: Callable[[str], bool]) -> str:
    """What does something else for the next model than it did for the first one of this worker; "" for nothing. Asked
    for the first time before any code of a user's has run. `is_installed`: whether a file of code is no user's."""
    others = {one for one in threading.enumerate() if _is_of_a_user(one, is_installed)}
    if not _threads:
        _threads.update(others, {threading.main_thread()})
    left = next((f"the thread {one.name}" for one in others - _threads), "")
    return next((one.altered() for one in _defined), "") or left


def _is_of_a_user(thread: threading.Thread, is_installed: Callable[[str], bool]) -> bool:
    """Whether a user's code has started a thread: no library (a bar of progress, a pool), nor this package."""
    does = getattr(thread, "_target", None) or getattr(thread, "function", None) or type(thread).run
    code = getattr(inspect.unwrap(does), "__code__", None)
    return not isinstance(thread, threading._DummyThread) and (code is None or not is_installed(code.co_filename))


_defined: list[Defined] = []
_threads: set[threading.Thread] = set()
Settings = dict[str, tuple[Any, Callable[[Any], object]]]
_environment: dict[str, str] = {}
_first: Settings = {}
SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "the profile hook": (sys.getprofile, sys.setprofile),
    "the trace hook": (sys.gettrace, sys.settrace),
    "the limit of recursion": (sys.getrecursionlimit, sys.setrecursionlimit),
    "the folder": (os.getcwd, os.chdir),
    "the mask of new files": (_mask, _set_mask),
    "handlers of signals": (_handlers, _set_handlers),
    "the collector": (gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    "the dtype of new tensors": (torch.get_default_dtype, torch.set_default_dtype),
    "the device of new tensors": (torch.get_default_device, _set_device),
    "whether gradients are kept": (torch.is_grad_enabled, torch.set_grad_enabled),
    "deterministic algorithms": (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    "anomaly detection": (torch.is_anomaly_enabled, lambda on: torch.autograd.set_detect_anomaly(on, False)),
    "limits of the process": (_limits, _set_limits),
    "errors of numpy": (np.geterr, lambda how: np.seterr(**how)),
    **STATES,
}
