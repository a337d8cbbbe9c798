"""What a report of a problem needs to say of the programs that were running."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from inspector.version import __version__

PACKAGES = ("PySide6_Essentials", "pyqtgraph", "numpy", "torch")


def versions() -> list[tuple[str, str]]:
    """(program, version) of this process; torch is named as it is installed here, without loading it."""
    found = [("inspector", __version__), ("Python", f"{platform.python_version()} ({sys.executable})")]
    for name in PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            found.append((name, "not installed here"))
    return [*found, ("system", platform.platform())]


def as_text(pairs: list[tuple[str, str]]) -> str:
    """One line for each."""
    return "\n".join(f"{name}: {value}" for name, value in pairs)
