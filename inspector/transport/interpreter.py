"""Which Python runs the worker, and what is wrong with it where the worker did not start.

The window may be in one environment and the model, with its libraries, in another: what they share is this package, in
the same version.
"""

from __future__ import annotations

import os
import subprocess
import sys

from inspector.capture.regular import is_a_folder, path_of
from inspector.version import __version__

VARIABLE = "INSPECTOR_PYTHON"
OLDEST = (3, 11)
NEEDED = ("numpy", "torch", "platformdirs", "safetensors")
UNKNOWN = "0"
"""The version of a source tree that was not installed: it is not compared."""
PATIENCE = 30.0
"""Seconds that an interpreter gets to report its packages."""
ASKED = f"""
import sys
sys.path[:] = [folder for folder in sys.path if folder]
print("python %d.%d" % sys.version_info[:2])
if sys.version_info >= {OLDEST}:
    from importlib.util import find_spec
    print(*[name for name in {NEEDED} if find_spec(name) is None], sep=" ")
    if find_spec("inspector") is not None and find_spec("inspector.engine") is not None:
        from importlib.metadata import PackageNotFoundError, version
        try:
            print(version("sequence-inspector"))
        except PackageNotFoundError:
            print({UNKNOWN!r})
"""
ANOTHER = "name another with --python or {variable}"


def chosen(python: str | None = None) -> str:
    """The interpreter of the worker: the one named, else that in INSPECTOR_PYTHON, else the one that runs this.

    A folder is taken as an environment, and its interpreter is used.
    """
    named = python or os.environ.get(VARIABLE, "")
    if not named:
        return sys.executable
    folder = path_of(named)
    if is_a_folder(folder):
        inside = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        return str(inside) if inside.exists() else str(folder)
    return str(folder) if any(mark in named for mark in ("/", "\\", "~")) else named


def is_same_version(other: str) -> bool:
    """Whether the other end of a pipe is of this version, as far as both know theirs."""
    return other == __version__ or UNKNOWN in (other, __version__)


def cannot_be_run(python: str, problem: OSError | ValueError) -> str:
    """The message about an interpreter that the system cannot run; a ValueError is raised for a name with a NUL."""
    if isinstance(problem, FileNotFoundError):
        return f"There is no Python interpreter {python}; {ANOTHER.format(variable=VARIABLE)}."
    reason = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return f"{python} cannot be run as a Python interpreter ({reason}); {ANOTHER.format(variable=VARIABLE)}."


def what_is_wrong(python: str) -> str:
    """Why no worker starts in an interpreter, as one line, found out by running the interpreter; "" where it could."""
    try:
        asked = subprocess.run(
            [python, "-c", ASKED], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False
        )
    except (OSError, ValueError) as problem:
        return cannot_be_run(python, problem)
    except subprocess.TimeoutExpired:
        return f"{python} did not answer within {PATIENCE:.0f} seconds; is it a Python interpreter?"
    return _judged(python, asked.stdout.decode("utf-8", "replace").splitlines())


def _judged(python: str, said: list[str]) -> str:
    if not said or not said[0].startswith("python "):
        return f"{python} is not a Python interpreter; {ANOTHER.format(variable=VARIABLE)}."
    version = said[0].removeprefix("python ")
    oldest = ".".join(map(str, OLDEST))
    if tuple(map(int, version.split("."))) < OLDEST:
        return f"{python} is Python {version}; the worker needs {oldest} or newer."
    missing, *installed = said[1:] or [""]
    if not installed:
        return f"{python} has no inspector; install version {__version__} in that environment."
    if not is_same_version(installed[0]):
        return f"{python} has version {installed[0]} of inspector, and this is {__version__}; both must be the same."
    if missing:
        return f"{python} has no {' and no '.join(missing.split())}; install it in that environment."
    return ""
