"""Runs when a Python starts below `inspector watch`, before the script: notices when optimizers of torch's are made.

Nothing but this file is loaded until the script makes one. A sitecustomize of the user's own runs as it would have.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

VARIABLE = "INSPECTOR_WATCH"
OPTIMIZERS = "torch.optim.optimizer"
OLDEST = (3, 11)
HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[3]
_state: dict[str, Any] = {"supervisor": None, "failed": False}


def _own_path() -> list[str]:
    """`sys.path` without this folder."""
    return [entry for entry in sys.path if not entry or Path(entry).resolve() != HERE]


def _run_the_users() -> None:
    """Run the sitecustomize that this one hides, under its name. Its errors are shown by Python as ever."""
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get("sitecustomize")
    sys.modules["sitecustomize"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if before is not None:
            sys.modules["sitecustomize"] = before
        raise


class _WhenImported:
    """Finds torch's optimizer module as the other finders do, and adds to it when it has been loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec that another finder has; None for everything else."""
        if name != OPTIMIZERS:
            return None
        for finder in [one for one in sys.meta_path if one is not self]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                _after_loading(spec.loader)
                return spec
        return None


def _after_loading(loader: Any) -> None:
    load = loader.exec_module

    def load_and_add(module: Any) -> None:
        del loader.exec_module  # the class has torch's own
        load(module)
        _add_to(module)

    loader.exec_module = load_and_add


def _add_to(module: Any) -> None:
    """Be told of every optimizer that is made."""
    make = module.Optimizer.__init__

    @functools.wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        _told(self)

    module.Optimizer.__init__ = made


def _told(optimizer: Any) -> None:
    if _state["failed"]:
        return
    try:
        if _state["supervisor"] is None:
            _state["supervisor"] = _supervisor()
        _state["supervisor"].made(optimizer)
    except Exception as fault:  # noqa: BLE001 - whatever is wrong with watching, the script runs as it is
        _state["failed"] = True
        said = " ".join(str(fault).split())
        why = f"{said[:300]}{'…' if len(said) > 300 else ''}"
        told = f"inspector: this script cannot be watched ({why}); it runs on."
        _leave_word(told)


def _leave_word(told: str) -> None:
    try:
        sys.stderr.write(f"{told}\n")
        folder = Path(json.loads(os.environ[VARIABLE])["folder"])
        (folder / f"fault-{os.getpid()}").write_text(told, "utf-8")
    except (OSError, ValueError, KeyError, AttributeError):
        pass


def _supervisor() -> Any:
    """What attaches watchers, of the inspector that this script can import, or else of the one that started it."""
    if sys.version_info < OLDEST:
        raise RuntimeError(f"it runs in Python {sys.version.split()[0]}; inspector needs {OLDEST[0]}.{OLDEST[1]}")
    if "inspector" not in sys.modules:
        _make_importable()
    return importlib.import_module("inspector.engine.watch.scripts.supervisor").Supervisor()


def _make_importable() -> None:
    """Where the script's environment has no inspector, its modules, and nothing beside them, are found here."""
    spec = importlib.machinery.PathFinder.find_spec("inspector", sys.path)
    if spec is None:
        spec = importlib.util.spec_from_file_location(
            "inspector", PACKAGE / "__init__.py", submodule_search_locations=[str(PACKAGE)]
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["inspector"] = module
        spec.loader.exec_module(module)
    elif not any((Path(folder) / "engine" / "watch").is_dir() for folder in spec.submodule_search_locations or ()):
        raise ImportError(f"it has a module of its own that is named inspector, {spec.origin}")


if VARIABLE in os.environ:
    sys.path[:] = _own_path()
    sys.meta_path.insert(0, _WhenImported())
    _run_the_users()
